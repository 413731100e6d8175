"""The series of one query: written by the worker, published whole, read by any scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from prometheus_client.samples import Exemplar, Sample

from streamgauge.config import QueryConfig
from streamgauge.masking import LONGEST_NAME, clean
from streamgauge.model.checkpoint_names import look_at_names
from streamgauge.model.events import Operator, Progress
from streamgauge.model.lag import SourceLag
from streamgauge.model.query import Query
from streamgauge.model.sinks import find_sink
from streamgauge.model.verdict import STATES, is_idle, judge

from .budget import Budget
from .histogram import BATCH_BOUNDS, Histogram
from .providers import CUMULATIVE, NEVER_MEASURED, PROVIDER_METRICS
from .source_series import LIVE, counters_of, gauges_of, live_of
from .table import INFO, METRICS, PREFIX

Key = tuple[str, tuple[str, ...]]  # name of a metric, values of its labels past app and query
_ERROR_CLASSES = 20
_ALWAYS = len(STATES) + 36  # what every query has besides counters and its last batch, at most
_FROM_THE_START = (
    *("query_starts_total", "batches_replayed_total", "input_rows_total"),
    "checkpoint_resets_total",
)
_OF_THE_CODE = (
    "watermark_",
    "event_time_",
    "observed",
)  # gauges that a batch may leave as they are
# The settings stay as well: an opt-out must outlive whatever Prometheus remembers of it.
_STAYS_AFTER_FAILURE = (
    *("query_info", "query_started_timestamp_seconds"),
    *("alerting_enabled", "query_expected"),
)
_LIVE_AFTER_FAILURE = len(STATES) + 1  # query_state and query_active


class Page:
    """The series of one query. Only the worker calls its methods; `samples` is swapped whole."""

    def __init__(self, app: str, query: Query, settings: QueryConfig, budget: Budget) -> None:
        self.labels = {"app": app, "query": query.label}
        self.query = query
        self.samples: Mapping[str, list[Sample]] = {}
        self._settings = settings
        self._budget = budget
        self._counters: dict[Key, float] = {}
        self._gauges: dict[Key, float] = {}  # of the last batch; replaced with the next
        self._seen_lags: Mapping[str, SourceLag] = {}
        self._lags: Mapping[str, SourceLag] = {}  # those for which there is room
        self._sources: dict[Key, float] = {}  # of the sources as they were last seen
        self._series: dict[Key, Sample] = {}
        self._counted = self.least()
        self._error_classes: set[str] = set()
        self._durations = Histogram(BATCH_BOUNDS)
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
        elif self._budget.admit(key in self._series):
            self._counters[key] = by

    def pass_on(self, name: str, total: float, *labels: str) -> None:
        """Set a counter that Spark itself keeps."""
        key = (name, labels)
        if key in self._counters or self._budget.admit(key in self._series):
            self._counters[key] = total

    def set(self, name: str, value: float | None, *labels: str) -> None:
        """Set a gauge of the last batch; unknown is absent."""
        if value is not None and self._budget.admit((name, labels) in self._series):
            self._gauges[name, labels] = value

    def renew(self) -> None:
        """Make the page ready for a run: rules need their zeros, and new code has its own gauges."""
        for name in _FROM_THE_START:
            self.add(name, 0)
        for data in ("true", "false"):
            self.add("batches_total", 0, data)
        for outcome, error_class in (("stopped", ""), ("failed", "other"), ("unknown", "")):
            self.add("query_terminations_total", 0, outcome, error_class)
        self._gauges = {k: v for k, v in self._gauges.items() if not k[0].startswith(_OF_THE_CODE)}

    def start(self, *, reset: bool) -> None:
        """A run began; `reset`: the first of a new query under the name of an old one."""
        self.add("query_starts_total", 1)
        self.add("checkpoint_resets_total", int(reset))

    def terminate(self, outcome: str, error_class: str | None) -> None:
        """A run ended."""
        known = error_class or ""
        if known and known not in self._error_classes:
            if len(self._error_classes) >= _ERROR_CLASSES:
                known = "other"
            else:
                self._error_classes.add(known)
        self.add("query_terminations_total", 1, outcome, known)
        for rate in ("input_rows_per_second", "processed_rows_per_second"):
            self._gauges.pop((rate, ()), None)

    def progress(self, batch: Progress, exemplar: Exemplar | None = None) -> None:
        """A batch was committed."""
        kept = {k: v for k, v in self._gauges.items() if _outlives(k[0], batch)}
        self._gauges = kept
        self.add("batches_total", 1, "true" if batch.has_data else "false")
        self.add("batches_replayed_total", int(batch.replayed))
        self.add("input_rows_total", batch.input_rows)
        self.add("output_rows_total", batch.sink.rows)
        self.set("input_rows_per_second", batch.input_rate)
        self.set("processed_rows_per_second", batch.processed_rate)
        self.set("watermark_timestamp_seconds", batch.watermark)
        self.set("event_time_min_timestamp_seconds", batch.event_min)
        self.set("event_time_avg_timestamp_seconds", batch.event_avg)
        self.set("event_time_max_timestamp_seconds", batch.event_max)
        if batch.has_data and batch.seconds is not None:
            self._durations.observe(batch.seconds, exemplar)
        for phase, seconds in batch.phases.items():
            self.add("phase_duration_seconds_total", seconds, phase)
        for source in batch.sources:
            self.add("source_input_rows_total", source.rows, source.label)
        for operator in batch.operators:
            self._operator(operator, batch.batch_id)
        for name, fields in batch.observed.items():
            for field, value in fields.items():
                self.set("observed", value, name, field)

    def _operator(self, operator: Operator, batch_id: int) -> None:
        label = operator.label
        self.set("state_rows", operator.rows, label)
        self.set("state_memory_bytes", operator.memory, label)
        self.set("state_store_instances", operator.instances, label)
        self.set("state_snapshot_lag_versions", _snapshot_lag(operator, batch_id), label)
        self.add("state_rows_updated_total", operator.updated, label)
        self.add("state_rows_removed_total", operator.removed, label)
        self.add("state_rows_dropped_by_watermark_total", operator.dropped, label)
        self.add("state_commit_seconds_total", operator.commit_seconds, label)
        self.add("state_update_seconds_total", operator.update_seconds, label)
        self.add("state_removal_seconds_total", operator.removal_seconds, label)
        for spark_name, value in operator.custom.items():
            if spark_name in NEVER_MEASURED:
                continue
            metric = PROVIDER_METRICS.get(spark_name)
            if metric is None:
                self.set("state_custom", value, label, spark_name)
            elif value < 0:
                continue
            elif metric.kind == CUMULATIVE:
                self.pass_on(metric.name, value * metric.scale, label)
            elif metric.counter:
                self.add(metric.name, value * metric.scale, label)
            else:
                self.set(metric.name, value * metric.scale, label)

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
                if self._budget.admit(key in self._series):
                    found[key] = value
        self._sources = found

    def publish(self, query: Query) -> None:
        """Make what was written readable, all at once."""
        self.query = query
        self._measure(query.lags)
        counted = sum(map(len, (self._counters, self._gauges, self._sources)))
        self._count(self.least() + counted + len(self._settings.thresholds))
        values = {**self._counters, **self._gauges, **self._sources, **self._standing(query)}
        series = {key: self._sample(key, value) for key, value in values.items()}
        self._series = series
        samples = _group(series)
        samples["batch_duration_seconds"] = self._durations.samples(
            PREFIX + "batch_duration_seconds", self.labels
        )
        self.samples = samples

    def _count(self, series: int) -> None:
        """Take so many from the budget, and what is computed for each scrape of a source."""
        series += LIVE * len(self._lags)
        self._budget.take(series - self._counted)
        self._counted = series

    def _sample(self, key: Key, value: float) -> Sample:
        old = self._series.get(key)
        if old is not None:
            return old if old.value == value else Sample(old.name, old.labels, value)
        metric = METRICS[key[0]]
        extra = dict(zip(metric.labels[2:], key[1], strict=True))
        return Sample(metric.full_name, {**self.labels, **extra}, value)

    def _standing(self, query: Query) -> dict[Key, float]:
        """What holds until something happens, whatever the time."""
        commit = query.committed
        sink = query.committed.sink.kind if query.committed else None
        sink = sink or (query.details.sink if query.details else None)
        known = find_sink(sink)
        idempotent = known.idempotent if known else None
        standing: dict[str, float | None] = {
            "query_started_timestamp_seconds": query.started_at,
            "last_event_timestamp_seconds": query.last_event_at,
            "last_idle_timestamp_seconds": query.last_idle_at,
            "last_progress_timestamp_seconds": query.last.ended_at if query.last else None,
            "last_commit_timestamp_seconds": commit.ended_at if commit else None,
            "last_committed_batch_id": commit.batch_id if commit else None,
            "trigger_interval_seconds": query.trigger_seconds,
            "sink_idempotent": None if idempotent is None else float(idempotent),
            "alerting_enabled": float(self._settings.alerting),
            "query_expected": float(self._settings.expected),
        }
        found: dict[Key, float] = {
            (name, ()): value for name, value in standing.items() if value is not None
        }
        found["query_info", info_of(query, self._settings)] = 1.0
        for name, value in self._settings.thresholds.items():
            found["alert_threshold", (name,)] = value
        return {**found, **dict(_checkpoint(query))}

    def shrink(self, query: Query) -> None:
        """Keep of a failed query only what a page about it needs; of sources, what the probe sees.

        The rest of the budget goes to others; a query that starts again takes its place back.
        """
        self.query = query
        self._counters.clear()
        self._gauges.clear()
        self._measure({k: lag for k, lag in query.lags.items() if lag.looked_at is not None})
        self._counters.clear()
        self._durations = Histogram(BATCH_BOUNDS)
        kept = {k: s for k, s in self._series.items() if k[0] in _STAYS_AFTER_FAILURE}
        self._series = {**kept, **{k: self._sample(k, v) for k, v in self._sources.items()}}
        self._count(len(self._series) + _LIVE_AFTER_FAILURE)
        self.samples = _group(self._series)

    def leave(self) -> None:
        """Give the budget back."""
        self._budget.take(-self._counted)

    @staticmethod
    def least() -> int:
        """How many series a query takes at the least."""
        return len(BATCH_BOUNDS) + 3 + _ALWAYS

    # ---- reading (any thread) --------------------------------------------------------------

    def live_samples(
        self, now: float, worker_seen_at: float, shared: frozenset[str]
    ) -> Iterator[tuple[str, Sample]]:
        """What depends on the time, computed for this scrape."""
        query = self.query
        verdict = judge(query, now, worker_seen_at=worker_seen_at)
        for state in STATES:
            yield self._live("query_state", float(verdict.state == state), state=state)
        yield self._live("query_active", float(query.live))
        for label, lag in self._lags.items():
            yield from (self._live(n, v, source=label) for n, v in live_of(lag, now))
        if not query.live:
            return
        yield self._live("silence_budget_seconds", query.silence_budget)
        if query.details and query.details.checkpoint:
            yield self._live("checkpoint_shared", float(query.details.checkpoint in shared))
        if (longest := query.longest_batch(now)) is not None:
            yield self._live("batch_duration_max_seconds", longest)
        if (freshness := freshness_of(query, now, verdict.state)) is not None:
            yield self._live("freshness_lag_seconds", freshness)
        yield from self._seen_samples(query, now)

    def _seen_samples(self, query: Query, now: float) -> Iterator[tuple[str, Sample]]:
        """What the last look at the driver found; an old look says nothing of now."""
        look = query.fresh_status(now)
        if look is None:
            return
        yield self._live("query_trigger_active", float(look.trigger_active))
        yield self._live("query_data_available", float(look.data_available))
        since = query.inflight_since(now)
        yield self._live("inflight_batch_seconds", max(0.0, now - since) if since else 0.0)
        if since is None:
            return
        yield self._live("inflight_batch_started_timestamp_seconds", since)
        if look.tasks is not None:
            for state in ("running", "completed", "failed"):
                yield self._live("inflight_tasks", getattr(look.tasks, state), state=state)
        if query.tasks_changed_at is not None:
            yield self._live("inflight_last_task_timestamp_seconds", query.tasks_changed_at)

    def _live(self, name: str, value: float, **labels: str) -> tuple[str, Sample]:
        return name, Sample(PREFIX + name, {**self.labels, **labels}, value)


def _group(series: Mapping[Key, Sample]) -> dict[str, list[Sample]]:
    """The samples of each family."""
    samples: dict[str, list[Sample]] = {}
    for (name, _), sample in series.items():
        samples.setdefault(name, []).append(sample)
    return samples


def _outlives(name: str, batch: Progress) -> bool:
    """Which gauges of earlier batches still hold when a batch does not speak of them."""
    if name == "observed":
        return not batch.observed
    if name.startswith("event_time_"):
        return batch.event_max is None
    return name == "watermark_timestamp_seconds" and batch.watermark is None


def _checkpoint(query: Query) -> Iterator[tuple[Key, float]]:
    """What the names in the checkpoint tell, as of the last look at them."""
    rules = {"batch-backwards"} if query.backwards else set()
    seen = query.checkpoint
    if seen is not None:
        names = look_at_names(map(str, seen.offsets), map(str, seen.commits))
        rules |= set(names.findings)
        yield ("checkpoint_uncommitted_batches", ()), float(names.uncommitted)
        for name, number in (
            ("checkpoint_last_offset_batch_id", names.last_offset),
            ("checkpoint_last_commit_batch_id", names.last_commit),
            ("checkpoint_last_commit_timestamp_seconds", seen.last_commit_at),
            ("checkpoint_state_bytes", seen.state_bytes),
        ):
            if number is not None:
                yield (name, ()), float(number)
    for rule in rules:
        yield ("checkpoint_findings", (rule,)), 1.0


def _snapshot_lag(operator: Operator, batch_id: int) -> float | None:
    """Versions between the newest state and the oldest of the last uploaded snapshots.

    Spark names only the stores that lag most, and -1 for one that has uploaded none since its
    executor started, which says nothing of what is in the checkpoint: unknown.
    """
    oldest = min(operator.snapshot_versions.values(), default=-1)
    return None if oldest < 0 else float(max(0, batch_id + 1 - oldest))


def freshness_of(query: Query, now: float, state: str) -> float | None:
    """Age of what readers of the output see: 0 when idle, unknown before the first commit.

    A query that had nothing to do had read all there was: after a quiet night a batch is not a night old.
    """
    if state == "idle" or (state in {"starting", "restarting"} and is_idle(query, now)):
        return 0.0
    if query.committed is None:
        return None
    return max(0.0, now - max(query.committed.at, query.last_idle_at or 0.0))


def _label_of(path: str) -> str:
    """A path as a label: bounded, and still not that of another path."""
    if len(path) <= LONGEST_NAME:
        return clean(path)
    return f"{clean(path)[: LONGEST_NAME - 9]}…{sha256(path.encode()).hexdigest()[:8]}"


def info_of(query: Query, settings: QueryConfig) -> tuple[str, ...]:
    """Label values of `query_info`, in the order of `INFO`; what is not known is empty."""
    details = query.details
    sink = query.committed.sink.kind if query.committed else None
    stateful = query.committed is not None and bool(query.committed.operators)
    known = {
        "query_id": query.query_id,
        "run_id": query.run_id,
        "app_id": details and details.app_id,
        "spark_version": details and details.spark_version,
        "sink": sink or (details and details.sink),
        "output_mode": details and details.output_mode,
        "trigger": query.trigger,
        "state_provider": details and details.state_provider if stateful else None,
        "checkpoint": details and details.checkpoint and _label_of(details.checkpoint),
        "code_version": settings.code_version,
        "team": settings.team,
        "env": settings.env,
        "tier": settings.tier,
    }
    return tuple(known[name] or "" for name in INFO)
