"""The slow pollers beside the watchdog: those that the settings ask for and the driver allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from streamgauge.config import Config, is_properties_file
from streamgauge.model.query import Query

from .driver import Driver
from .inbox import Inbox
from .poller import Poller


def make_pollers(
    config: Config,
    driver: Driver,
    inbox: Inbox,
    queries: Callable[[], Mapping[str, Query]],
    report_error: Callable[[str, BaseException], None],
) -> list[Poller]:
    """Build them, not started; modules of what is not asked for are not imported.

    `report_error` gets the part of the agent that failed, and is called on the pollers' threads.
    """
    pollers: list[Poller] = []
    files = driver.checkpoint_files() if config.checkpoint_seconds else None
    if files is not None:
        from .classic.checkpoint_poller import CheckpointPoller  # noqa: PLC0415 - where asked for

        pollers.append(
            CheckpointPoller(
                files,
                inbox,
                queries,
                interval_seconds=config.checkpoint_seconds,
                with_state_size=config.checkpoint_state_size,
                report_error=partial(report_error, "checkpoint"),
            )
        )
    if config.kafka:
        from .kafka.broker import KafkaBroker  # noqa: PLC0415 - where asked for
        from .kafka.poller import KafkaPoller  # noqa: PLC0415

        in_file = is_properties_file(config.kafka)
        pollers.append(
            KafkaPoller(
                partial(
                    KafkaBroker,
                    bootstrap=None if in_file else config.kafka,
                    properties=config.kafka if in_file else None,
                ),
                inbox,
                queries,
                interval_seconds=config.watch_seconds,
                report_error=partial(report_error, "kafka"),
            )
        )
    return pollers
