"""Traces, put together: from the settings to an exporter, or to none.

OpenTelemetry's SDK is imported only when traces are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from streamgauge.exporters.traces.target import choose_targets, find_exporter
from streamgauge.model.stats import Stats

from .config import Config

if TYPE_CHECKING:
    from streamgauge.exporters.traces.exporter import TraceExporter
    from streamgauge.exporters.traces.pipeline import Pipeline

LOST = frozenset({"failed", "dropped"})


def make_trace_exporter(
    config: Config,
    stats: Stats,
    complain: Callable[[BaseException], None],
    describe: Callable[[], Mapping[str, str]],
    provider: Any = None,
) -> TraceExporter | None:
    """Build the exporter that the settings ask for; None when they ask for none.

    `provider` is the user's own TracerProvider; `describe` gives the resource's attributes when the
    first span is written. Raises `TargetError` when traces can't be sent where they should go.
    """
    targets = choose_targets(config.traces)
    if provider is None and not targets:
        return None
    from streamgauge.exporters.traces.exporter import TraceExporter  # noqa: PLC0415 - takes 100 ms

    def count(outcome: str, spans: int) -> None:
        stats.count("spans", outcome, by=spans)
        if outcome in LOST:
            stats.count("errors", "traces", by=spans)

    if provider is not None:
        return TraceExporter(lambda: _use(provider, count))
    makers = [find_exporter(target) for target in targets]

    def make() -> Pipeline:
        from streamgauge.exporters.traces.own_pipeline import make_own  # noqa: PLC0415

        return make_own(makers, describe(), count, complain, keep_seconds=config.trace_keep_seconds)

    return TraceExporter(make)


def _use(provider: Any, count: Callable[[str, int], None]) -> Pipeline:
    from streamgauge.exporters.traces.users_pipeline import UsersPipeline  # noqa: PLC0415

    return UsersPipeline(provider, count)
