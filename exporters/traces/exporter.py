"""Traces: every batch a trace, every start a story, and the failure on the batch that failed.

Spans are made in the worker's thread when all is known of them; Spark's threads never see this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from msgspec import Struct, field
from opentelemetry.trace import SpanContext

from streamgauge.exporters import Exporter
from streamgauge.model.events import Event, Idle, Progress, Started, Terminated
from streamgauge.model.query import End, Query

from . import ids as span_ids
from .attributes import (
    ERROR_TYPE,
    OVERDUE,
    PREFIX,
    describe_batch,
    describe_exception,
    describe_phase,
    describe_query,
    describe_root,
    describe_running,
    describe_start,
)
from .delta_commit import DeltaCommits
from .failed_batch import (
    Planned,
    Traced,
    find_failed,
    find_local,
    find_start,
    read_planned,
    recall_planned,
)
from .ids import BATCH, RUNNING, START, Ids
from .pipeline import Failure, Key, Pipeline, SpanRecord

# Engine order. A phase that is not here has no known place, and gets no span.
PHASES = (
    *("latest_offset", "get_offset", "wal_commit", "get_batch"),
    *("query_planning", "add_batch", "commit_offsets"),
)
# Real-time mode writes the offset log after the data.
_REAL_TIME = (*(p for p in PHASES[:-1] if p != "wal_commit"), "wal_commit", "commit_offsets")
_LATE = 4  # runs of one query after which the end of an older one is not waited for any more


class _Run(Traced):
    """One run and the spans that later ones point to."""

    query_id: str = ""
    pending: bool = False  # its start is told, but not yet written
    start: SpanContext | None = None  # only what was sampled
    previous: SpanContext | None = None
    overdue: dict[int, float] = field(default_factory=dict)  # told of by `running` alone; starts


class _Written(Struct, frozen=True):
    """The newest root of a run: what log lines and exemplars refer to."""

    key: Key
    ids: Ids
    sampled: bool


class TraceExporter(Exporter):
    """Writes traces to a pipeline, which is made with the first span."""

    name = "traces"

    def __init__(
        self,
        make_pipeline: Callable[[], Pipeline],
        planned: Callable[[str | None], Planned | None] = read_planned,
    ) -> None:
        self._make_pipeline = make_pipeline
        self._planned = planned
        self._made: Pipeline | None = None
        self._making = threading.Lock()  # `batch_span` asks from the user's threads
        self._runs: dict[str, _Run] = {}
        self._delta = DeltaCommits()
        self._failed: dict[str, SpanContext] = {}  # query id → its last failed batch
        self._checkpoints: dict[str, str] = {}  # query id → where it is, as an earlier run had it
        self._written: dict[str, _Written] = {}  # run id →

    @property
    def pipeline(self) -> Pipeline:
        """Where spans are written; made when it is first asked for."""
        with self._making:
            if self._made is None:
                self._made = self._make_pipeline()
            return self._made

    def introduce(self, attributes: Mapping[str, str]) -> None:
        """Have the spans from now on come from another application. Any thread.

        A pipeline that is not made yet asks by itself. A file takes the resource of the first span it gets
        in one go: spans of both applications that wait together, for 5 s at most, bear the old one.
        """
        if self._made is not None:
            self._made.introduce(attributes)

    # ---- what others ask (worker's thread) -------------------------------------------------

    def ids_of(self, subject: Event | Query) -> Ids | None:
        """Ids for a log line, of an event that was just handled or of a query as it is now."""
        written = self._written.get(subject.run_id)
        return written.ids if written is not None and not isinstance(subject, Idle) else None

    def exemplar_of(self, event: Progress) -> Ids | None:
        """Ids for an exemplar: only of a batch whose trace was sampled."""
        written = self._written.get(event.run_id)
        if written is None or not written.sampled or written.key[1] != event.batch_id:
            return None
        return written.ids

    def context_of(self, run_id: str, batch_id: int, query: Query | None) -> SpanContext | None:
        """Context of a batch that runs now, for what the user's code does in it. Any thread."""
        since = query.active_since if query is not None and query.run_id == run_id else None
        name = _name("batch", query) if query is not None else "batch"
        return self.pipeline.context_of(
            (run_id, batch_id),
            name,
            _ns(since) if since else None,
            describe_root(query, run_id, batch_id),
        )

    # ---- events ----------------------------------------------------------------------------

    def handle(self, event: Event, query: Query) -> None:
        """Write what an event completes."""
        if isinstance(event, Started):
            self._start(event, query)
        elif isinstance(event, Progress):
            self._progress(event, query)
        elif isinstance(event, Terminated):
            end = query.end if query.run_id == event.run_id else query.last_end
            if end is not None:
                self._end(query, event.run_id, end)
        else:
            self._run(event.run_id, query).see(query.last_idle_at)

    def observe(self, query: Query) -> None:
        """A run that was lost ends here; a batch that does not end is told of, once."""
        if query.details is not None and query.details.checkpoint:
            self._checkpoints[query.query_id] = query.details.checkpoint
        if query.end is not None:
            if query.run_id in self._runs:
                self._end(query, query.run_id, query.end)
            return
        run = self._run(query.run_id, query)
        run.look, run.active_since = query.status, query.active_since
        run.see(query.inactive_at)
        self._tell_overdue(run, query)

    def forget(self, query: Query) -> None:
        """Let go of a query that has left the fleet."""
        self._failed.pop(query.query_id, None)
        self._checkpoints.pop(query.query_id, None)
        self._runs.pop(query.run_id, None)
        self._written.pop(query.run_id, None)

    def close(self) -> None:
        """Send what is left, within a second."""
        if self._made is not None:
            self._made.close()

    # ---- one kind each ---------------------------------------------------------------------

    def _start(self, event: Started, query: Query) -> None:
        run = self._run(event.run_id, query)
        run.started_at = query.started_at
        run.see(query.started_at)
        run.pending = True
        key = (event.run_id, START)
        context = self.pipeline.context_of(
            key, _name("start", query), _ns(query.started_at), describe_query(query, event.run_id)
        )
        self._remember(key, context, sampled=False)

    def _progress(self, event: Progress, query: Query) -> None:
        run = self._run(event.run_id, query)
        self._write_start(run, query, event.run_id, event.ended_at, first=event)
        attributes = describe_batch(event, query, self._delta.find(event))
        if run.overdue.pop(event.batch_id, None) is not None:
            attributes[OVERDUE] = True
        self._write_overdue(run, query, event.run_id, event.at, "unknown", before=event.batch_id)
        key = (event.run_id, event.batch_id)
        record = SpanRecord(
            name=_name("batch", query),
            part=BATCH,
            start=_ns(event.at),
            end=_ns(event.at) + _length(event),
            attributes=attributes,
            links=_links(previous_batch=run.previous, start=run.start),
            children=_lay_out(event, _REAL_TIME if query.trigger == "real_time" else PHASES),
        )
        run.previous = self._write(key, record)
        run.last = event
        run.active_since = None
        run.see(event.ended_at)

    def _end(self, query: Query, run_id: str, end: End) -> None:
        run = self._runs.pop(run_id, None) or _Run()
        if end.outcome == "failed":
            self._fail(run, query, run_id, end)
        else:
            self._write_start(run, query, run_id, end.at, outcome=end.outcome)
            if run.start is not None:
                self._remember((run_id, START), run.start, sampled=True)
        self._write_overdue(run, query, run_id, end.at, end.outcome)
        self.pipeline.end_open(run_id, _ns(end.at))
        self._trim()

    def _fail(self, run: _Run, query: Query, run_id: str, end: End) -> None:
        """Put the failure on the batch that failed; before any batch, on the start."""
        alone = query.run_id == run_id  # else the next run is at work in the checkpoint already
        planned = self._find_planned(query) if alone else None
        batch_id = find_failed(run, planned, end.exception or "")
        error_type = end.error_class or "unknown"
        exception = describe_exception(end.exception or "", error_type)
        words = str(exception["exception.message"])
        whole = Failure(error_type, words, exception)
        if batch_id is None:
            run.pending = True
            self._write_start(run, query, run_id, end.at, outcome="failed", failure=whole)
            failed = run.start
        else:
            told = Failure(error_type, f"batch {batch_id} failed before any was committed")
            self._write_start(run, query, run_id, end.at, outcome="failed", failure=told)
            failed = self._write_failed(run, query, (run_id, batch_id), end, whole)
        if failed is not None:
            self._failed[query.query_id] = failed

    def _find_planned(self, query: Query) -> Planned | None:
        """What its checkpoint says was planned: read now, else as it was last looked at."""
        checkpoint = self._checkpoints.get(query.query_id)
        if find_local(checkpoint) is not None:
            return self._planned(checkpoint)
        return recall_planned(query.checkpoint)

    def _write_failed(
        self, run: _Run, query: Query, key: Key, end: End, failure: Failure
    ) -> SpanContext | None:
        run_id, batch_id = key
        start, estimated = find_start(run, int(batch_id), end.at)
        attributes = describe_root(query, run_id, int(batch_id))
        attributes[ERROR_TYPE] = failure.error_type
        if estimated:
            attributes[f"{PREFIX}batch.start_estimated"] = True
        if run.overdue.pop(int(batch_id), None) is not None:
            attributes[OVERDUE] = True
        record = SpanRecord(
            name=_name("batch", query),
            part=BATCH,
            start=_ns(start),
            end=_ns(end.at),
            attributes=attributes,
            links=_links(previous_batch=run.previous, start=run.start),
            failure=failure,
        )
        return self._write(key, record)

    def _write_start(
        self,
        run: _Run,
        query: Query,
        run_id: str,
        at: float,
        *,
        first: Progress | None = None,
        outcome: str = "committed",
        failure: Failure | None = None,
    ) -> None:
        """Write a run's start, once: with its first commit, or when there will be none."""
        if not run.pending:
            return
        run.pending = False
        began = run.started_at if run.started_at is not None else query.first_seen_at
        attributes = describe_start(query, run_id, first, outcome)
        if failure is not None:
            attributes[ERROR_TYPE] = failure.error_type
        record = SpanRecord(
            name=_name("start", query),
            part=START,
            start=_ns(min(began, at)),
            end=_ns(at),
            attributes=attributes,
            links=_links(failed_batch=self._failed.get(query.query_id)),
            failure=failure,
        )
        run.start = self._write((run_id, START), record)

    def _tell_overdue(self, run: _Run, query: Query) -> None:
        """A batch past its silence budget: no event comes before it ends, so say it now."""
        look, since = query.status, query.active_since
        if look is None or since is None or not look.trigger_active:
            return
        age = look.at - max(since, query.started_at or since)
        batch_id = look.batch_id if look.batch_id is not None else _next(run)
        if age <= query.silence_budget or batch_id is None or batch_id in run.overdue:
            return
        if run.last is not None and batch_id <= run.last.batch_id:
            return  # its end was quicker than the look
        run.overdue[batch_id] = since
        record = SpanRecord(
            name=RUNNING,
            part=RUNNING,
            start=_ns(since),
            end=_ns(look.at),
            attributes=describe_running(query, look, batch_id, round(age, 3)),
        )
        key, name = (query.run_id, batch_id), _name("batch", query)
        known = {**describe_root(query, query.run_id, batch_id), OVERDUE: True}
        self._remember(key, self.pipeline.context_of(key, name, record.start, known), sampled=False)
        self.pipeline.write_below(key, record, name)

    def _write_overdue(
        self,
        run: _Run,
        query: Query,
        run_id: str,
        at: float,
        outcome: str,
        *,
        before: float = float("inf"),
    ) -> None:
        """Write the roots that spans `running` are below, when no event of theirs will come."""
        for batch_id in [number for number in run.overdue if number < before]:
            start = min(run.overdue.pop(batch_id), at)
            attributes = describe_root(query, run_id, batch_id)
            attributes |= {OVERDUE: True, f"{PREFIX}batch.outcome": outcome}
            record = SpanRecord(
                name=_name("batch", query),
                part=BATCH,
                start=_ns(start),
                end=_ns(at),
                attributes=attributes,
                links=_links(previous_batch=run.previous, start=run.start),
            )
            self.pipeline.write((run_id, batch_id), record)

    # ---- bookkeeping -----------------------------------------------------------------------

    def _run(self, run_id: str, query: Query) -> _Run:
        if run_id not in self._runs:
            self._runs[run_id] = _Run(query_id=query.query_id)
            self._end_lost(query)
        return self._runs[run_id]

    def _end_lost(self, query: Query) -> None:
        """End the runs of which Spark's word never came, though others have followed."""
        runs = [(key, run) for key, run in self._runs.items() if run.query_id == query.query_id]
        for run_id, run in runs[:-_LATE]:
            seen_at = max(run.moments, default=query.last_event_at)
            self._end(query, run_id, End(at=seen_at, outcome="unknown"))

    def _write(self, key: Key, record: SpanRecord) -> SpanContext | None:
        context = self.pipeline.write(key, record)
        if context is not None:
            self._remember(key, context, sampled=True)
        else:
            unsampled = self.pipeline.computed(key)
            self._remember(key, unsampled, sampled=False)
        return context

    def _remember(self, key: Key, context: SpanContext | None, *, sampled: bool) -> None:
        self._written.pop(key[0], None)
        if context is not None:
            ids = span_ids.to_hex(context.trace_id, context.span_id)
            self._written[key[0]] = _Written(key, ids, sampled)

    def _trim(self) -> None:
        """Ids of runs that ended stay for their last log line; not for ever."""
        ended = [run_id for run_id in self._written if run_id not in self._runs]
        for run_id in ended[:-16]:
            del self._written[run_id]


def _links(**contexts: SpanContext | None) -> list[tuple[str, SpanContext]]:
    return [(what, context) for what, context in contexts.items() if context is not None]


def _next(run: _Run) -> int | None:
    return run.last.batch_id + 1 if run.last else None


def _name(what: str, query: Query) -> str:
    return f"{what} {query.name}" if query.name else what


def _ns(seconds: float | None) -> int:
    """Nanoseconds of a time, true to the millisecond, which is all that Spark gives."""
    return round((seconds or 0.0) * 1000) * 1_000_000


def _length(event: Progress) -> int:
    """Length of the trigger; without Spark's figure, what its phases add up to."""
    if event.seconds is not None:
        return _ns(event.seconds)
    return sum(_ns(event.phases.get(phase)) for phase in PHASES)


def _lay_out(event: Progress, order: tuple[str, ...]) -> list[SpanRecord]:
    """The phases one after the other; what they don't cover stays uncovered."""
    found, at = [], _ns(event.at)
    for phase in order:
        if phase not in event.phases:
            continue
        end = at + _ns(event.phases[phase])
        found.append(
            SpanRecord(name=phase, part=phase, start=at, end=end, attributes=describe_phase(phase))
        )
        at = end
    return found
