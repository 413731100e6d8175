"""Traces: one per batch and one per start, and each failure on the batch that failed.

A stage of the worker, before the exporters: what it returns names the trace in log lines and
exemplars. Spans are made when all is known of them; Spark's threads never see this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from opentelemetry.trace import SpanContext

from streamgauge.model.application import Application
from streamgauge.model.events import Event, Idle, Progress, Started, Terminated
from streamgauge.model.query import End, Query
from streamgauge.model.update import TraceIds, Update

from .attributes import OVERDUE, describe_exception, describe_query, describe_root
from .failed_batch import find_failed, find_planned
from .ids import START
from .pipeline import Failure, Key, Pipeline, SpanRecord
from .records import (
    make_name,
    record_batch,
    record_failed,
    record_running,
    record_start,
    record_unfinished,
    to_nanoseconds,
)
from .resource import describe_resource
from .runs import NewestRoots, Run, Runs


class Tracer:
    """Writes traces to a pipeline, which is made with the first span.

    The worker alone calls `trace`; any thread may call the other methods.
    """

    def __init__(
        self,
        make_pipeline: Callable[[], Pipeline],
        queries: Callable[[], Mapping[str, Query]] = dict,
    ) -> None:
        self._make_pipeline = make_pipeline
        self._queries = queries
        self._made: Pipeline | None = None
        self._making = threading.Lock()  # `batch_span` asks from the user's threads
        self._runs = Runs()
        self._roots = NewestRoots()
        self._failed: dict[str, SpanContext] = {}  # query id → its last failed batch

    @property
    def pipeline(self) -> Pipeline:
        """Where spans are written; made when it is first asked for."""
        with self._making:
            if self._made is None:
                self._made = self._make_pipeline()
            return self._made

    def enter(self, application: Application) -> None:
        """Have the spans from now on come from another application.

        A pipeline that is not made yet asks by itself. A file takes the resource of the first span it
        gets in one go: spans of both applications that wait together, for 5 s at most, have the old one.
        """
        if self._made is not None:
            self._made.set_resource(describe_resource(application, self._queries()))

    def context_of(self, run_id: str, batch_id: int, query: Query | None) -> SpanContext | None:
        """Context of a batch that runs now, for what the user's code does in it."""
        since = query.active_since if query is not None and query.run_id == run_id else None
        return self.pipeline.context_of(
            (run_id, batch_id),
            make_name("batch", query),
            to_nanoseconds(since) if since else None,
            describe_root(query, run_id, batch_id),
        )

    def close(self) -> None:
        """Send what is left, within a second."""
        if self._made is not None:
            self._made.close()

    # ---- updates (worker's thread) ---------------------------------------------------------

    def trace(self, update: Update) -> TraceIds | None:
        """Write the spans that an update completes; return the ids of the trace it belongs to."""
        cause, query = update.cause, update.query
        if update.forgotten:
            self._forget(query)
            return None
        if isinstance(cause, Started | Progress | Idle | Terminated):
            self._handle(cause, query)
        else:
            self._observe(query)
        if isinstance(cause, Progress):
            return self._roots.ids_of(cause.run_id, cause.batch_id)
        return self._roots.ids_of(cause.run_id if isinstance(cause, Terminated) else query.run_id)

    def _handle(self, event: Event, query: Query) -> None:
        if isinstance(event, Started):
            self._start(event, query)
        elif isinstance(event, Progress):
            self._progress(event, query)
        elif isinstance(event, Terminated):
            end = query.end if query.run_id == event.run_id else query.last_end
            if end is not None:
                self._end(query, event.run_id, end)
        else:
            self._run(event.run_id, query).see_idle(query.last_idle_at)

    def _observe(self, query: Query) -> None:
        """A run that was lost ends here; a batch that does not end is told of, once."""
        if query.end is not None:
            if query.run_id in self._runs:
                self._end(query, query.run_id, query.end)
            return
        run = self._run(query.run_id, query)
        run.status, run.active_since = query.status, query.active_since
        run.see_idle(query.inactive_at)
        self._write_running(run, query)

    def _forget(self, query: Query) -> None:
        self._failed.pop(query.query_id, None)
        self._runs.end(query.run_id)
        self._roots.forget(query.run_id)

    # ---- starts, batches, ends -------------------------------------------------------------

    def _start(self, event: Started, query: Query) -> None:
        run = self._run(event.run_id, query)
        run.started_at = query.started_at
        run.see_idle(query.started_at)
        run.pending = True
        key = (event.run_id, START)
        context = self.pipeline.context_of(
            key,
            make_name("start", query),
            to_nanoseconds(query.started_at),
            describe_query(query, event.run_id),
        )
        self._roots.remember(key, context, sampled=False)

    def _progress(self, event: Progress, query: Query) -> None:
        run = self._run(event.run_id, query)
        self._write_start(run, query, event.run_id, event.ended_at, first=event)
        overdue = run.overdue.pop(event.batch_id, None) is not None
        self._write_unfinished(
            run, query, event.run_id, event.at, outcome="unknown", before=event.batch_id
        )
        record = record_batch(run, query, event, overdue=overdue)
        run.previous = self._write((event.run_id, event.batch_id), record)
        run.last = event
        run.active_since = None
        run.see_idle(event.ended_at)

    def _end(self, query: Query, run_id: str, end: End) -> None:
        run = self._runs.end(run_id)
        if end.outcome == "failed":
            self._fail(run, query, run_id, end)
        else:
            self._write_start(run, query, run_id, end.at, outcome=end.outcome)
            if run.start is not None:
                self._roots.remember((run_id, START), run.start, sampled=True)
        self._write_unfinished(run, query, run_id, end.at, outcome=end.outcome)
        self.pipeline.end_open(run_id, to_nanoseconds(end.at))
        self._roots.trim(self._runs)

    def _fail(self, run: Run, query: Query, run_id: str, end: End) -> None:
        """Put the failure on the batch that failed; before any batch, on the start."""
        batch_id = find_failed(run, find_planned(query, run_id), end.exception or "")
        error_type = end.error_class or "unknown"
        exception = describe_exception(end.exception or "", error_type)
        whole = Failure(
            error_type=error_type, words=str(exception["exception.message"]), exception=exception
        )
        if batch_id is None:
            run.pending = True
            self._write_start(run, query, run_id, end.at, outcome="failed", failure=whole)
            failed = run.start
        else:
            brief = Failure(
                error_type=error_type, words=f"batch {batch_id} failed before any was committed"
            )
            self._write_start(run, query, run_id, end.at, outcome="failed", failure=brief)
            record = record_failed(
                run, query, run_id=run_id, batch_id=batch_id, end=end, failure=whole
            )
            run.overdue.pop(batch_id, None)
            failed = self._write((run_id, batch_id), record)
        if failed is not None:
            self._failed[query.query_id] = failed

    # ---- writing ---------------------------------------------------------------------------

    def _write_start(
        self,
        run: Run,
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
        record = record_start(
            run,
            query,
            run_id=run_id,
            at=at,
            first=first,
            outcome=outcome,
            failure=failure,
            failed_before=self._failed.get(query.query_id),
        )
        run.start = self._write((run_id, START), record)

    def _write_running(self, run: Run, query: Query) -> None:
        """A batch past its silence budget: no event comes before it ends, so say it now."""
        status, since = query.status, query.active_since
        if status is None or since is None or not status.trigger_active:
            return
        age = status.at - max(since, query.started_at or since)
        batch_id = status.batch_id if status.batch_id is not None else run.next_batch_id
        if age <= query.silence_budget or batch_id is None or batch_id in run.overdue:
            return
        if run.last is not None and batch_id <= run.last.batch_id:
            return  # its end was quicker than the poll
        run.overdue[batch_id] = since
        record = record_running(query, status, batch_id=batch_id, since=since, age=age)
        key, name = (query.run_id, batch_id), make_name("batch", query)
        known = {**describe_root(query, query.run_id, batch_id), OVERDUE: True}
        context = self.pipeline.context_of(key, name, record.start, known)
        self._roots.remember(key, context, sampled=False)
        self.pipeline.write_below(key, record, name)

    def _write_unfinished(
        self,
        run: Run,
        query: Query,
        run_id: str,
        at: float,
        *,
        outcome: str,
        before: float = float("inf"),
    ) -> None:
        """Write the roots that spans `running` are below, when no event of theirs will come."""
        for batch_id in [number for number in run.overdue if number < before]:
            record = record_unfinished(
                run,
                query,
                run_id=run_id,
                batch_id=batch_id,
                since=run.overdue.pop(batch_id),
                at=at,
                outcome=outcome,
            )
            self.pipeline.write((run_id, batch_id), record)

    def _write(self, key: Key, record: SpanRecord) -> SpanContext | None:
        context = self.pipeline.write(key, record)
        if context is not None:
            self._roots.remember(key, context, sampled=True)
        else:
            self._roots.remember(key, self.pipeline.computed(key), sampled=False)
        return context

    def _run(self, run_id: str, query: Query) -> Run:
        """The record of a run; with a new one, those that were lost long ago end."""
        new = run_id not in self._runs
        run = self._runs.of(run_id, query)
        for lost_id, lost in self._runs.find_lost(query.query_id) if new else ():
            seen_at = query.last_event_at if lost.idle_at is None else lost.idle_at
            self._end(query, lost_id, End(at=seen_at, outcome="unknown"))
        return run
