"""The parts of an agent that depend on the settings or on the kind of Spark, imported only when wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from streamgauge.listener.driver import Driver
from streamgauge.listener.host import SparkKind
from streamgauge.listener.registrations import Registrations
from streamgauge.model.application import Application
from streamgauge.model.observations import GoneCause
from streamgauge.model.query import Query

from .config import Config
from .error_guard import ErrorGuard
from .tracing import make_tracer

if TYPE_CHECKING:
    from streamgauge.exporters.metrics.pushgateway import PushgatewayExporter
    from streamgauge.exporters.traces.tracer import Tracer
    from streamgauge.listener.disk.reader import DiskReader


def choose_driver(
    kind: SparkKind,
    *,
    registrations: Registrations,
    lose_all: Callable[[GoneCause], None],
    wake: Callable[[], None],
    clock: Callable[[], float],
    wall_offset: Callable[[], float],
) -> Driver:
    """The driver of a classic application, or of a Connect client, which follows its sessions."""
    if kind is SparkKind.CONNECT:
        from streamgauge.listener.connect.driver import ConnectDriver  # noqa: PLC0415 - needs gRPC

        return ConnectDriver(lose_all=lose_all, wake=wake, clock=clock)
    from streamgauge.listener.classic.driver import ClassicDriver  # noqa: PLC0415 - needs Py4J

    return ClassicDriver(
        listeners=registrations.listeners,
        everywhere=registrations.bus,
        drain=registrations.drain,
        clock=clock,
        wall_offset=wall_offset,
    )


def try_tracer(
    config: Config,
    guard: ErrorGuard,
    *,
    application: Callable[[], Application],
    queries: Callable[[], Mapping[str, Query]],
    provider: Any,
) -> Tracer | None:
    """The tracer that the settings ask for; one that can't be made is counted, and there is none."""
    try:
        return make_tracer(
            config,
            guard.stats,
            application=application,
            queries=queries,
            report_error=lambda error: guard.report_error("traces", error),
            provider=provider,
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the query must not notice
        guard.count_error("traces", error)
        return None


def make_disk_reader(tracer: Tracer | None, guard: ErrorGuard) -> DiskReader | None:
    """What reads files for traces; without traces nobody asks for it."""
    if tracer is None:
        return None
    from streamgauge.listener.disk.reader import DiskReader  # noqa: PLC0415 - only with traces

    return DiskReader(lambda error: guard.count_error("traces", error))


def make_pushgateway(
    config: Config,
    guard: ErrorGuard,
    *,
    registry: CollectorRegistry,
    application: Callable[[], Application],
) -> PushgatewayExporter | None:
    """What pushes to the Pushgateway of the settings."""
    if not config.pushgateway_url:
        return None
    from streamgauge.exporters.metrics.pushgateway import (  # noqa: PLC0415 - only if set
        PushgatewayExporter,
    )

    return PushgatewayExporter(
        config.pushgateway_url,
        registry,
        application=application,
        failed=lambda error: guard.count_error("pushgateway", error),
    )


def make_recorder(config: Config) -> Callable[[str, str, str], None] | None:
    """What keeps events as they came, in the folder of the settings."""
    if not config.flight_recorder_dir:
        return None
    from streamgauge.exporters.recorder import FlightRecorder  # noqa: PLC0415 - only if set

    return FlightRecorder(config.flight_recorder_dir).record
