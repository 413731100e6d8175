"""How one event or observation changes what is known of one query: pure functions, Query in, Query out."""

from __future__ import annotations

from typing import Any

import msgspec

from .causes import find_cause
from .events import Idle, Progress, Terminated
from .lag import SourceLag, take_batch, take_idle, weigh
from .observations import Gone, QueryStatus
from .query import End, Moment, Query

HOUR_SECONDS = 3600.0
_MOMENTS_KEPT = 64  # how much of a query's pace is remembered
_MOMENT_GAP_SECONDS = 10.0
_GAPS_KEPT = 10
_STARTS_KEPT = 3600  # one per second for an hour


def begin_run(query: Query, at: float, now: float) -> Query:
    """Note the start of a run that was seen to begin."""
    starts = (*(s for s in query.starts if s > now - HOUR_SECONDS), at)[-_STARTS_KEPT:]
    return msgspec.structs.replace(query, started_at=at, starts=starts)


def renew(old: Query, *, run_id: str, label: str, now: float) -> Query:
    """The record of a new run: what belonged to the old run goes, the history stays."""
    return msgspec.structs.replace(
        old,
        run_id=run_id,
        label=label,
        last_event_at=now,
        end=None,
        last_end=old.end,
        last_trigger=old.trigger,
        last_idle_at=None,
        idle_trigger_at=None,
        idle_since=None,
        read_data=False,
        details=None,
        checkpoint=None,
        planned=None,
        table_version=None,
        status=None,
        unseen=None,
        first_batch=None,
        active_since=None,
        data_since=None,
        tasks_changed_at=None,
        inactive_at=None,
        waits_since=None,
        ahead_since=None,
        moments=(),
        gaps=(max(old.gaps),) if old.gaps else (),
    )


def take_progress(query: Query, event: Progress, now: float, *, missed: int) -> Query:
    """A batch was committed; `missed` batches before it were never reported."""
    minute = int(now // 60)
    longest = {m: s for m, s in query.longest if m > minute - 60}
    if event.seconds is not None:
        longest[minute] = max(longest.get(minute, 0.0), event.seconds)
    return msgspec.structs.replace(
        query,
        last_event_at=now,
        unseen=None,
        last=event,
        committed=event,
        backwards=query.backwards or _goes_back(query, event),
        read_data=query.read_data or event.has_data,
        idle_since=None,
        active_since=None,
        data_since=None,
        tasks_changed_at=None,
        waits_since=None,
        ahead_since=None,
        missed=query.missed + missed,
        counted_to=event.batch_id,
        lags=_measure(query, event),
        moments=_remember(query.moments, event),
        gaps=(*query.gaps, now - query.last_event_at)[-_GAPS_KEPT:],
        longest=tuple(longest.items()),
    )


def take_idle_event(query: Query, event: Idle, now: float) -> Query:
    """A trigger found nothing to do."""
    at = now if event.at is None else event.at
    return msgspec.structs.replace(
        query,
        lags={label: take_idle(lag, at) for label, lag in query.lags.items()},
        last_event_at=now,
        unseen=None,
        last_idle_at=now,
        idle_trigger_at=event.at,
        idle_since=query.idle_since or now,
        active_since=None,
        tasks_changed_at=None,
        waits_since=None,
        ahead_since=None,
        gaps=(*query.gaps, now - query.last_event_at)[-_GAPS_KEPT:],
    )


def take_status(query: Query, seen: QueryStatus, newest_batch: int) -> Query:
    """A poll of a live query; `newest_batch` is the newest of its run that was reported, or -1."""
    first = query.first_batch if query.first_batch is not None else seen.batch_id
    known = newest_batch if newest_batch >= 0 else first
    ahead = seen.batch_id is not None and known is not None and seen.batch_id >= known + 2
    return msgspec.structs.replace(
        query,
        status=seen,
        unseen=None,
        first_batch=first,
        active_since=_active_since(query, seen),
        inactive_at=query.inactive_at if seen.trigger_active else seen.at,
        data_since=(query.data_since or seen.at) if seen.data_available else None,
        tasks_changed_at=_tasks_changed_at(query, seen),
        ahead_since=(query.ahead_since or seen.at) if ahead else None,
        **_waited(query, seen),
    )


def end_of(cause: Terminated | Gone, at: float) -> End:
    """How a run ended, from Spark's word for it or from what was found instead."""
    why = cause.why if isinstance(cause, Gone) else ""
    if not cause.exception:
        return End(at=at, outcome="unknown" if isinstance(cause, Gone) else "stopped", why=why)
    found = find_cause(cause.exception, cause.error_class)
    return End(
        at=at,
        outcome="failed",
        why=why,
        error_class=cause.error_class,
        cause_class=found.cause_class,
        message=found.message,
        exception=cause.exception,
    )


def finish(query: Query, run_id: str, end: End) -> Query:
    """A run ended; the next one may have begun before this was heard of."""
    if run_id != query.run_id:
        return msgspec.structs.replace(query, last_end=end)
    return msgspec.structs.replace(
        query,
        end=end,
        last_event_at=end.at,
        active_since=None,
        data_since=None,
        lags=weigh(query.lags, {}, until=0.0),
    )


def _goes_back(query: Query, event: Progress) -> bool:
    """Whether a batch comes again that was committed long ago; the last one may, as a replay."""
    return query.committed is not None and event.batch_id < query.committed.batch_id


def _measure(query: Query, event: Progress) -> dict[str, SourceLag]:
    """How far behind each source is after a batch; sources that are no longer read go."""
    # An AvailableNow run asks its sources once, at its start, and repeats that with every batch.
    fresh = query.trigger != "available_now"
    return {
        source.label: take_batch(query.lags.get(source.label), source, event, fresh=fresh)
        for source in event.sources
    }


def _remember(moments: tuple[Moment, ...], event: Progress) -> tuple[Moment, ...]:
    """Keep a bounded history: the newest moment always, older ones ten seconds apart."""
    moment = Moment(
        event.ended_at, event.input_rows, event.backlog, event.input_rate, event.processed_rate
    )
    if len(moments) > 1 and moments[-1].at - moments[-2].at < _MOMENT_GAP_SECONDS:
        moments = moments[:-1]
    return (*moments, moment)[-_MOMENTS_KEPT:]


def _active_since(query: Query, seen: QueryStatus) -> float | None:
    """Start of the running trigger: exact where Spark tells, else the first poll that found it."""
    if not seen.trigger_active:
        return None
    if seen.trigger_started_at is not None:
        return seen.trigger_started_at
    return query.active_since or seen.at


def _waited(query: Query, seen: QueryStatus) -> dict[str, Any]:
    """Since when it waits for a trigger; the longest wait that is over is one of its gaps."""
    if seen.phase == "waiting_for_trigger":
        return {"waits_since": seen.at if query.waits_since is None else query.waits_since}
    over = query.trigger_wait
    longest = over > max(query.gaps, default=0.0)
    return {"waits_since": None, **({"gaps": (*query.gaps, over)[-_GAPS_KEPT:]} if longest else {})}


def _tasks_changed_at(query: Query, seen: QueryStatus) -> float | None:
    """When a task of the running batch was last seen to have finished."""
    before = query.status.tasks if query.status else None
    if seen.tasks is None or not seen.trigger_active:
        return None
    if before is not None and seen.tasks.completed != before.completed:
        return seen.at
    if before is None and seen.tasks.completed:
        return seen.at
    return query.tasks_changed_at
