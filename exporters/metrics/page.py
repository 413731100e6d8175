"""The series of one query: written by the worker, published whole, read by any scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prometheus_client.samples import Exemplar, Sample

from streamgauge.config import QueryConfig
from streamgauge.model.causes import one_line
from streamgauge.model.events import Operator, Progress
from streamgauge.model.lag import SourceLag
from streamgauge.model.query import Query
from streamgauge.model.timeshift import shift_query
from streamgauge.model.verdict import STATES, Verdict

from .budget import Budget
from .histogram import BATCH_SECONDS, Histogram
from .live_series import AFTER_END, Times, live_of_query
from .observed_series import counted_of, observed_of, speaks_of
from .operator_series import (
    Write,
    counters_of_operator,
    custom_of_operator,
    gauges_of_operator,
)
from .series_key import Key
from .source_series import LIVE, counters_of, gauges_of, live_of
from .standing_series import standing_of
from .table import METRICS, PREFIX

_MOST_ERROR_CLASSES = 20
_ALWAYS = len(STATES) + 46  # what every query has besides counters and its last batch, at most
_FROM_THE_START = (
    *("query_starts_total", "batches_replayed_total", "input_rows_total"),
    "checkpoint_resets_total",
)
_ENDS = "query_terminations_total"
_WATERMARK = "watermark_timestamp_seconds"
_EVENT_TIMES = (
    "event_time_min_timestamp_seconds",
    "event_time_avg_timestamp_seconds",
    "event_time_max_timestamp_seconds",
)
_OBSERVED, _OBSERVED_TOTAL = "observed", "observed_counted_total"
# Gauges that a batch may leave as they are; they go with the code that made them.
_OF_THE_CODE = frozenset({_WATERMARK, *_EVENT_TIMES, _OBSERVED})
# The settings stay as well: an opt-out must outlive whatever Prometheus remembers of it.
_STAYS_AFTER_FAILURE = frozenset(
    {
        *("query_info", "query_failure_info"),
        *("query_started_timestamp_seconds", "query_ended_timestamp_seconds"),
        *("last_committed_batch_id", "last_commit_timestamp_seconds"),
        *("alerting_enabled", "query_expected"),
    }
)


class _Published(NamedTuple):
    """What a scrape may read: never changed after it was published."""

    query: Query
    values: Mapping[Key, float]
    fixed: Mapping[Key, float]  # wall times that no later step of the clock may move
    durations: Histogram | None = None  # None of a failed query, of which little is left


class _Rendered(NamedTuple):
    """The samples of what was published; most scrapes find more than one page unchanged."""

    published: _Published
    offset: float
    samples: Mapping[str, list[Sample]]


class Page:
    """The series of one query.

    The worker writes, and publishes what it has written whole; `samples` and `live_samples` are for any
    thread. Samples are made when somebody asks: most events come between two scrapes.
    """

    def __init__(self, app: str, query: Query, settings: QueryConfig, budget: Budget) -> None:
        self.labels = {"app": app, "query": query.label}
        self.query = query
        self._settings = settings
        self._budget = budget
        self._counters: dict[Key, float] = {}
        self._gauges: dict[Key, float] = {}  # of the last batch; replaced with the next
        self._seen_lags: Mapping[str, SourceLag] = {}
        self._lags: Mapping[str, SourceLag] = {}  # those for which there is room
        self._sources: dict[Key, float] = {}  # of the sources as they were last seen
        self._fixed: dict[
            str, tuple[object, float]
        ] = {}  # what it is the time of, and the wall time
        self._published = _Published(query, {}, {})
        self._rendered = _Rendered(self._published, 0.0, {})
        self._names: Mapping[Key, tuple[str, dict[str, str]]] = {}  # full name and labels
        self._counted = self.least()
        self._error_classes: set[str] = set()
        self._durations = Histogram(BATCH_SECONDS)
        budget.take(self._counted)
        self.renew()

    # ---- writing ---------------------------------------------------------------------------

    def add(self, name: str, by: float | None, *labels: str) -> None:
        """Add to a counter; unknown adds nothing, and does not make the series."""
        if by is None:
            return
        key = (name, labels)
        if key in self._counters:
            self._counters[key] += by
        elif self._budget.admit(key in self._published.values):
            self._counters[key] = by

    def pass_on(self, name: str, total: float, *labels: str) -> None:
        """Set a counter that Spark itself keeps."""
        key = (name, labels)
        if key in self._counters or self._budget.admit(key in self._published.values):
            self._counters[key] = total

    def set(self, name: str, value: float | None, *labels: str) -> None:
        """Set a gauge of the last batch; unknown is absent."""
        if value is not None and self._budget.admit((name, labels) in self._published.values):
            self._gauges[name, labels] = value

    def renew(self) -> None:
        """Make the page ready for a run: rules need their zeros, and new code has its own gauges."""
        for name in _FROM_THE_START:
            self.add(name, 0)
        for data in ("true", "false"):
            self.add("batches_total", 0, data)
        for outcome, error_class in (("stopped", ""), ("failed", "other"), ("unknown", "")):
            self.add(_ENDS, 0, outcome, error_class)
        self._gauges = {k: v for k, v in self._gauges.items() if k[0] not in _OF_THE_CODE}

    def start(self, *, reset: bool) -> None:
        """A run began; `reset`: the first of a new query under the name of an old one."""
        self.add("query_starts_total", 1)
        self.add("checkpoint_resets_total", int(reset))

    def terminate(self, outcome: str, error_class: str | None) -> None:
        """A run ended."""
        known = error_class or ""
        if known and known not in self._error_classes:
            if len(self._error_classes) >= _MOST_ERROR_CLASSES:
                known = "other"
            else:
                self._error_classes.add(known)
        self.add(_ENDS, 1, outcome, known)

    def progress(self, batch: Progress, exemplar: Exemplar | None = None) -> None:
        """A batch was committed."""
        self._gauges = {k: v for k, v in self._gauges.items() if _outlives(k, batch)}
        self._add_rows(batch)
        self._set_batch(batch)
        self._add_times(batch, exemplar)
        for operator in batch.operators:
            self._write_operator(operator, batch.batch_id)
        for name, field, value in observed_of(batch):
            self.set(_OBSERVED, value, name, field)
        for name, field, value in counted_of(batch, self._settings.observed_counts or ()):
            self.add(_OBSERVED_TOTAL, value, name, field)

    # At the series limit the first to come are shown: what matters most is written first.

    def _add_rows(self, batch: Progress) -> None:
        self.add("batches_total", 1, "true" if batch.has_data else "false")
        self.add("batches_replayed_total", int(batch.replayed))
        self.add("input_rows_total", batch.input_rows)
        self.add("output_rows_total", batch.sink.rows)

    def _add_times(self, batch: Progress, exemplar: Exemplar | None) -> None:
        if batch.has_data and batch.seconds is not None:
            self._durations.observe(batch.seconds, exemplar)
        for phase, seconds in batch.phases.items():
            self.add("phase_duration_seconds_total", seconds, phase)
        for source in batch.sources:
            self.add("source_input_rows_total", source.rows, source.label)

    def _set_batch(self, batch: Progress) -> None:
        self.set(_WATERMARK, batch.watermark)
        times = (batch.event_min, batch.event_avg, batch.event_max)
        for name, time in zip(_EVENT_TIMES, times, strict=True):
            self.set(name, time)

    def _write_operator(self, operator: Operator, batch_id: int) -> None:
        label = operator.label
        for name, value in gauges_of_operator(operator, batch_id):
            self.set(name, value, label)
        for name, by in counters_of_operator(operator):
            self.add(name, by, label)
        for write, name, value, labels in custom_of_operator(operator):
            if write is Write.ADD:
                self.add(name, value, label)
            elif write is Write.TOTAL:
                self.pass_on(name, value, label)
            else:
                self.set(name, value, label, *labels)

    def _measure(self, lags: Mapping[str, SourceLag]) -> None:
        """Write how far behind each source is; nothing to do unless something changed."""
        if lags is self._seen_lags:
            return
        self._seen_lags = lags
        known = self._lags
        self._lags = {k: lag for k, lag in lags.items() if self._budget.admit(k in known, LIVE)}
        found: dict[Key, float] = {}
        for label, lag in self._lags.items():
            for name, total in counters_of(lag):
                self.pass_on(name, total, label)
            for name, labels, value in gauges_of(lag, self._settings.partition_series):
                key = (name, (label, *labels))
                if self._budget.admit(key in self._published.values):
                    found[key] = value
        self._sources = found

    # ---- publishing ------------------------------------------------------------------------

    def publish(self, query: Query, offset: float = 0.0) -> None:
        """Make what was written readable, all at once; `offset` brings times to the wall clock."""
        self.query = query
        self._measure(query.lags)
        counted = sum(map(len, (self._counters, self._gauges, self._sources)))
        self._count(self.least() + counted + len(self._settings.thresholds))
        values = {**self._counters, **self._gauges, **self._sources}
        fixed = self._fix_times(query, offset)
        self._published = _Published(query, values, fixed, self._durations.copy())

    def shrink(self, query: Query, offset: float = 0.0) -> None:
        """Keep of a failed query only what a page about it needs; of sources, what the probe sees.

        The rest of the budget goes to others; a query that starts again takes its place back.
        """
        self.query = query
        ends = {k: number for k, number in self._counters.items() if k[0] == _ENDS and number}
        self._counters.clear()
        self._gauges.clear()
        self._measure({k: lag for k, lag in query.lags.items() if lag.looked_at is not None})
        self._counters = ends
        self._durations = Histogram(BATCH_SECONDS)
        fixed = self._fix_times(query, offset)
        self._published = _Published(query, {**ends, **self._sources}, fixed)
        standing = self._standing_of(self._published, 0.0)
        self._count(len(self._published.values) + len(standing) + AFTER_END)

    def _fix_times(self, query: Query, offset: float) -> dict[Key, float]:
        """Start and end as the clock had them: rules count their changes, and a step is no start."""
        times = {
            "query_started_timestamp_seconds": (query.run_id, query.started_at),
            "query_ended_timestamp_seconds": (query.run_id, query.end.at if query.end else None),
        }
        for name, (run_id, at) in times.items():
            if at is None:
                self._fixed.pop(name, None)
            elif name not in self._fixed or self._fixed[name][0] != (run_id, at):
                self._fixed[name] = ((run_id, at), at + offset)
        return {(name, ()): wall for name, (_, wall) in self._fixed.items()}

    def leave(self) -> None:
        """Give the budget back."""
        self._budget.take(-self._counted)

    @staticmethod
    def least() -> int:
        """How many series a query takes at the least."""
        return len(BATCH_SECONDS) + 3 + _ALWAYS

    def _count(self, series: int) -> None:
        """Take so many from the budget, and what is computed for each scrape of a source."""
        series += LIVE * len(self._lags)
        self._budget.take(series - self._counted)
        self._counted = series

    # ---- reading (any thread) --------------------------------------------------------------

    def samples(self, offset: float = 0.0) -> Mapping[str, list[Sample]]:
        """What was published, by family; `offset` brings its times to the wall clock."""
        published, rendered = self._published, self._rendered
        if rendered.published is published and rendered.offset == offset:
            return rendered.samples
        values = {**published.values, **self._standing_of(published, offset)}
        known = self._names
        names = {key: known.get(key) or self._name(key) for key in values}
        samples: dict[str, list[Sample]] = {}
        for key, value in values.items():
            samples.setdefault(key[0], []).append(Sample(*names[key], value))
        if published.durations is not None:
            full_name = PREFIX + "batch_duration_seconds"
            samples["batch_duration_seconds"] = published.durations.samples(full_name, self.labels)
        self._names = names
        self._rendered = _Rendered(published, offset, samples)
        return samples

    def _standing_of(self, published: _Published, offset: float) -> Mapping[Key, float]:
        """What holds until something happens; of a query that failed long ago, what a page about it needs."""
        standing = standing_of(shift_query(published.query, offset), self._settings)
        standing.update(published.fixed)
        if published.durations is not None:
            return standing
        return {k: value for k, value in standing.items() if k[0] in _STAYS_AFTER_FAILURE}

    def _name(self, key: Key) -> tuple[str, dict[str, str]]:
        metric = METRICS[key[0]]
        extra = dict(zip(metric.labels[2:], key[1], strict=True))
        return metric.full_name, {**self.labels, **extra}

    def live_samples(
        self, query: Query, verdict: Verdict, times: Times, shared: frozenset[str]
    ) -> Iterator[tuple[str, Sample]]:
        """What depends on the time, computed for this scrape; `verdict` is the query's at that time."""
        for name, value, labels in live_of_query(query, verdict, times, shared):
            yield name, Sample(PREFIX + name, {**self.labels, **labels}, value)
        if verdict.cause:  # and not the reason: ages in it would make a series with each scrape
            words = one_line(verdict.cause)
            labels = {**self.labels, "state": verdict.state, "reason": words}
            yield "query_reason_info", Sample(PREFIX + "query_reason_info", labels, 1.0)
        for source, lag in self._lags.items():
            for name, value in live_of(lag, times.now):
                yield name, Sample(PREFIX + name, {**self.labels, "source": source}, value)


def _outlives(key: Key, batch: Progress) -> bool:
    """Which gauges of earlier batches still hold when a batch does not speak of them."""
    name, labels = key
    if name == _OBSERVED:
        return not speaks_of(batch, labels[0])
    if name in _EVENT_TIMES:
        return batch.event_max is None
    return name == _WATERMARK and batch.watermark is None
