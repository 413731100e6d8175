"""The series of the agent itself, from what it has counted. Any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.samples import Sample

from streamgauge.model.application import Application
from streamgauge.model.stats import Stats
from streamgauge.version import __version__

from .budget import Budget
from .histogram import AGENT_SECONDS, Histogram
from .table import EVENT_KINDS, PARTS, PREFIX, SPAN_OUTCOMES


class AgentSeries:
    """What the agent says of itself with each scrape."""

    def __init__(
        self,
        stats: Stats,
        budget: Budget,
        *,
        dropped: Callable[[], Mapping[str, int]],
        inbox_events: Callable[[], int],
    ) -> None:
        self._stats = stats
        self._budget = budget
        self._dropped = dropped
        self._inbox_events = inbox_events
        self.callback_seconds = Histogram(AGENT_SECONDS)
        self.handling_seconds = Histogram(AGENT_SECONDS)

    def samples(
        self, application: Application, worker_seen_at: float, now: float, offset: float
    ) -> Iterator[tuple[str, Sample]]:
        """Name without the prefix, and sample; `offset` brings steady times to the wall clock."""
        yield from self._counts()
        timed = {"agent_handling_seconds": self.handling_seconds}
        if (
            self.callback_seconds.count
        ):  # Python runs on Spark's listener thread on some bridges only
            timed["agent_callback_seconds"] = self.callback_seconds
        for name, histogram in timed.items():
            yield from ((name, sample) for sample in histogram.samples(PREFIX + name, {}))
        yield _sample("agent_heartbeat_timestamp_seconds", worker_seen_at + offset)
        yield _sample("agent_heartbeat_age_seconds", max(0.0, now - worker_seen_at))
        yield _sample("agent_clock_timestamp_seconds", now + offset)
        yield _sample("agent_inbox_events", self._inbox_events())
        yield _sample("agent_series", self._budget.used)
        yield _sample("agent_series_limit", self._budget.limit)
        yield _sample(
            "build_info",
            1,
            app=application.name,
            version=__version__,
            spark_version=application.spark_version or "",
        )

    def _counts(self) -> Iterator[tuple[str, Sample]]:
        events, errors = self._stats.of("events"), self._stats.of("errors")
        dropped, spans = self._dropped(), self._stats.of("spans")
        for kind in dict.fromkeys((*EVENT_KINDS, "duplicate", *events)):
            yield _sample("agent_events_total", events.get(kind, 0), kind=kind)
        for kind in dict.fromkeys((*EVENT_KINDS, *dropped)):
            yield _sample("agent_events_dropped_total", dropped.get(kind, 0), kind=kind)
        for part in dict.fromkeys((*PARTS, *errors)):
            yield _sample("agent_errors_total", errors.get(part, 0), part=part)
        for what in ("fallback_events", "missed_batches", "bus_dropped_events"):
            yield _sample(f"agent_{what}_total", sum(self._stats.of(what).values()))
        for outcome in SPAN_OUTCOMES:
            yield _sample("agent_spans_total", spans.get(outcome, 0), outcome=outcome)


def _sample(name: str, value: float, **labels: str) -> tuple[str, Sample]:
    return name, Sample(PREFIX + name, labels, value)
