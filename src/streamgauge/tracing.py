"""Traces, put together: from the settings to a tracer, or to none.

OpenTelemetry's SDK is imported only when traces are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from streamgauge.exporters.traces.target import choose_targets, find_exporter
from streamgauge.model.application import Application
from streamgauge.model.query import Query
from streamgauge.model.stats import Stats

from .config import Config

if TYPE_CHECKING:
    from streamgauge.exporters.traces.pipeline import Pipeline
    from streamgauge.exporters.traces.tracer import Tracer

LOST = frozenset({"failed", "dropped"})


def make_tracer(
    config: Config,
    stats: Stats,
    *,
    application: Callable[[], Application],
    queries: Callable[[], Mapping[str, Query]],
    report_error: Callable[[BaseException], None],
    provider: Any = None,
) -> Tracer | None:
    """Build the tracer that the settings ask for; None when they ask for none.

    `provider` is the user's own TracerProvider. Raises `TargetError` when traces can't be sent where
    they should go; `report_error` is called, from any thread, for what goes wrong later.
    """
    targets = choose_targets(config.traces)
    if provider is None and not targets:
        return None
    from streamgauge.exporters.traces.tracer import Tracer  # noqa: PLC0415 - takes 100 ms

    def count(outcome: str, spans: int) -> None:
        stats.count("spans", outcome, by=spans)
        if outcome in LOST:
            stats.count("errors", "traces", by=spans)

    if provider is not None:
        return Tracer(lambda: _use(provider, count), queries)
    makers = [find_exporter(target) for target in targets]

    def make() -> Pipeline:
        from streamgauge.exporters.traces.own_pipeline import make_own  # noqa: PLC0415
        from streamgauge.exporters.traces.resource import describe_resource  # noqa: PLC0415

        return make_own(
            makers,
            describe_resource(application(), queries()),
            count,
            report_error,
            keep_seconds=config.trace_keep_seconds,
        )

    return Tracer(make, queries)


def _use(provider: Any, count: Callable[[str, int], None]) -> Pipeline:
    from streamgauge.exporters.traces.users_pipeline import UsersPipeline  # noqa: PLC0415

    return UsersPipeline(provider, count)
