"""The slow timers beside the watchdog: each looks somewhere and puts what it finds on the inbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from streamgauge.listener.classic.checkpoint_poller import CheckpointWatch
from streamgauge.listener.inbox import Inbox
from streamgauge.listener.kafka.broker import KafkaBroker
from streamgauge.listener.kafka.probe import KafkaProbe
from streamgauge.model.query import Query

from .config import Config, is_properties_file


class Timer(Protocol):
    """A thread of its own; neither method waits or raises."""

    def start(self) -> None:
        """Begin to look."""

    def close(self) -> None:
        """Stop looking."""


def make_timers(
    config: Config,
    driver: Any,
    inbox: Inbox,
    queries: Callable[[], Mapping[str, Query]],
    failed: Callable[[str, BaseException], None],
) -> list[Timer]:
    """Those that the settings ask for, and the driver allows."""
    timers: list[Timer] = []
    if config.checkpoint_seconds and hasattr(driver, "checkpoint"):
        timers.append(
            CheckpointWatch(
                driver,
                inbox,
                queries,
                seconds=config.checkpoint_seconds,
                sizes=config.checkpoint_state_size,
                failed=lambda error: failed("checkpoint", error),
            )
        )
    if config.kafka:
        in_file = is_properties_file(config.kafka)
        named = (None, config.kafka) if in_file else (config.kafka, None)
        timers.append(
            KafkaProbe(
                lambda: KafkaBroker(*named),
                inbox,
                queries,
                seconds=config.watch_seconds,
                failed=lambda error: failed("kafka", error),
            )
        )
    return timers
