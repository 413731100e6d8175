"""The spans of a run as records: names, times, attributes and links. Pure."""

from __future__ import annotations

from opentelemetry.trace import SpanContext

from streamgauge.model.events import Progress
from streamgauge.model.observations import QueryStatus
from streamgauge.model.phases import ENGINE_ORDER, REAL_TIME_ORDER
from streamgauge.model.query import End, Query

from .attributes import (
    ERROR_TYPE,
    OVERDUE,
    PREFIX,
    describe_batch,
    describe_phase,
    describe_root,
    describe_running,
    describe_start,
)
from .failed_batch import find_start
from .ids import BATCH, RUNNING, START
from .pipeline import Failure, SpanRecord
from .runs import Run


def make_name(what: str, query: Query | None) -> str:
    """Name of a root span: `batch <query>` or `start <query>`."""
    return f"{what} {query.name}" if query is not None and query.name else what


def to_nanoseconds(seconds: float | None) -> int:
    """Nanoseconds of a time, true to the millisecond, which is all that Spark gives."""
    return round((seconds or 0.0) * 1000) * 1_000_000


def record_batch(run: Run, query: Query, batch: Progress, *, overdue: bool) -> SpanRecord:
    """A batch that was committed, with its phases below it."""
    attributes = describe_batch(batch, query, _version_of(query, batch))
    if overdue:
        attributes[OVERDUE] = True
    start = to_nanoseconds(batch.at)
    order = REAL_TIME_ORDER if query.trigger == "real_time" else ENGINE_ORDER
    return SpanRecord(
        name=make_name("batch", query),
        part=BATCH,
        start=start,
        end=start + _length(batch),
        attributes=attributes,
        links=_links(previous_batch=run.previous, start=run.start),
        children=_lay_out(batch, order),
    )


def record_failed(
    run: Run, query: Query, *, run_id: str, batch_id: int, end: End, failure: Failure
) -> SpanRecord:
    """A batch that failed."""
    start, estimated = find_start(run, batch_id, end.at)
    attributes = describe_root(query, run_id, batch_id)
    attributes[ERROR_TYPE] = failure.error_type
    if estimated:
        attributes[f"{PREFIX}batch.start_estimated"] = True
    if batch_id in run.overdue:
        attributes[OVERDUE] = True
    return SpanRecord(
        name=make_name("batch", query),
        part=BATCH,
        start=to_nanoseconds(start),
        end=to_nanoseconds(end.at),
        attributes=attributes,
        links=_links(previous_batch=run.previous, start=run.start),
        failure=failure,
    )


def record_start(
    run: Run,
    query: Query,
    *,
    run_id: str,
    at: float,
    first: Progress | None,
    outcome: str,
    failure: Failure | None,
    failed_before: SpanContext | None,
) -> SpanRecord:
    """A run's start, from its first moment to its first commit or its end."""
    began = run.started_at if run.started_at is not None else query.first_seen_at
    attributes = describe_start(query, run_id, first, outcome)
    if failure is not None:
        attributes[ERROR_TYPE] = failure.error_type
    return SpanRecord(
        name=make_name("start", query),
        part=START,
        start=to_nanoseconds(min(began, at)),
        end=to_nanoseconds(at),
        attributes=attributes,
        links=_links(failed_batch=failed_before),
        failure=failure,
    )


def record_running(
    query: Query, status: QueryStatus, *, batch_id: int, since: float, age: float
) -> SpanRecord:
    """A batch that has not ended, as a span below its own."""
    return SpanRecord(
        name=RUNNING,
        part=RUNNING,
        start=to_nanoseconds(since),
        end=to_nanoseconds(status.at),
        attributes=describe_running(query, status, batch_id, round(age, 3)),
    )


def record_unfinished(
    run: Run, query: Query, *, run_id: str, batch_id: int, since: float, at: float, outcome: str
) -> SpanRecord:
    """An overdue batch of which no event will come."""
    attributes = describe_root(query, run_id, batch_id)
    attributes |= {OVERDUE: True, f"{PREFIX}batch.outcome": outcome}
    return SpanRecord(
        name=make_name("batch", query),
        part=BATCH,
        start=to_nanoseconds(min(since, at)),
        end=to_nanoseconds(at),
        attributes=attributes,
        links=_links(previous_batch=run.previous, start=run.start),
    )


def _version_of(query: Query, batch: Progress) -> int | None:
    """The version of a Delta table that this batch made, where it is known."""
    made = query.table_version
    known = made is not None and (made.run_id, made.batch_id) == (batch.run_id, batch.batch_id)
    return made.version if made is not None and known else None


def _links(**contexts: SpanContext | None) -> list[tuple[str, SpanContext]]:
    return [(what, context) for what, context in contexts.items() if context is not None]


def _length(batch: Progress) -> int:
    """Length of the trigger; without Spark's figure, what its phases add up to."""
    if batch.seconds is not None:
        return to_nanoseconds(batch.seconds)
    return sum(to_nanoseconds(batch.phases.get(phase)) for phase in ENGINE_ORDER)


def _lay_out(batch: Progress, order: tuple[str, ...]) -> list[SpanRecord]:
    """The phases one after the other; what they don't cover stays uncovered."""
    found, at = [], to_nanoseconds(batch.at)
    for phase in order:
        if phase not in batch.phases:
            continue
        end = at + to_nanoseconds(batch.phases[phase])
        found.append(
            SpanRecord(name=phase, part=phase, start=at, end=end, attributes=describe_phase(phase))
        )
        at = end
    return found
