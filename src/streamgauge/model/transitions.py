"""How one event or observation changes what is known of one query: pure functions, Query in, Query out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .causes import find_cause
from .events import Idle, Progress, Terminated
from .lag import SourceLag, take_batch, take_idle, weigh
from .observations import Gone, GoneCause, QueryStatus, UnseenCause
from .query import EVENTS_MISSING, Backlog, End, Moment, Query, Recovery
from .sources.waiting import Waiting

HOUR_SECONDS = 3600.0
_MOMENTS_KEPT = 64  # how much of a query's pace is remembered
_MOMENT_GAP_SECONDS = 10.0
_GAPS_KEPT = 10
# Somebody stopped what the query ran in. A process that just ends was perhaps to go on: that is unknown.
_WANTED = frozenset(
    {
        *(GoneCause.APPLICATION_STOPPED, GoneCause.SESSION_STOPPED),
        GoneCause.PROCESS_TERMINATED,
    }
)
_STARTS_KEPT = 3600  # one per second for an hour
# For so long events must have come again without a gap, before a query that was hidden is believed.
RECOVERY_SECONDS = 30.0
_RECOVERY_EVENTS = 2


def begin_run(query: Query, at: float, now: float) -> Query:
    """Note the start of a run that was seen to begin."""
    end = query.last_end
    unclean = query.unclean_starts if end and end.clean else (*query.unclean_starts, at)
    return msgspec.structs.replace(
        query,
        started_at=at,
        starts=_of_last_hour((*query.starts, at), now),
        unclean_starts=_of_last_hour(unclean, now),
    )


def _of_last_hour(times: tuple[float, ...], now: float) -> tuple[float, ...]:
    return tuple(time for time in times if time > now - HOUR_SECONDS)[-_STARTS_KEPT:]


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
        recovery=None,
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
    minute, lags = int(now // 60), _measure(query, event)
    longest = {m: s for m, s in query.longest if m > minute - 60}
    if event.seconds is not None:
        longest[minute] = max(longest.get(minute, 0.0), event.seconds)
    return msgspec.structs.replace(
        query,
        last_event_at=now,
        last=event,
        committed=event,
        backwards=query.backwards or _goes_back(query, event),
        read_data=query.read_data or event.has_data,
        idle_since=None,
        active_since=None,
        data_since=None,
        tasks_changed_at=None,
        waits_since=None,
        missed=query.missed + missed,
        counted_to=event.batch_id,
        lags=lags,
        longest=tuple(longest.items()),
        longest_ever=max(query.longest_ever, event.seconds or 0.0),
        **_hear(query, now, moments=_remember(query, event, lags), missed=missed),
    )


def take_idle_event(query: Query, event: Idle, now: float) -> Query:
    """A trigger found nothing to do."""
    at = now if event.at is None else event.at
    return msgspec.structs.replace(
        query,
        lags={label: take_idle(lag, at) for label, lag in query.lags.items()},
        last_event_at=now,
        last_idle_at=now,
        idle_trigger_at=event.at,
        idle_since=query.idle_since or now,
        active_since=None,
        tasks_changed_at=None,
        waits_since=None,
        **_hear(query, now, moments=query.moments),
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
        recovery=_see(query, seen, ahead=ahead),
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
    gone = cause.cause if isinstance(cause, Gone) else None
    if not cause.exception:
        wanted = isinstance(cause, Terminated) or gone in _WANTED
        return End(at=at, outcome="stopped" if wanted else "unknown", why=why, gone=gone)
    found = find_cause(cause.exception, cause.error_class)
    return End(
        at=at,
        outcome="failed",
        why=why,
        gone=gone,
        error_class=cause.error_class,
        cause_class=found.cause_class,
        message=found.message,
        exception=cause.exception,
    )


def finish(query: Query, run_id: str, end: End) -> Query:
    """A run ended; the next one may have begun before this was heard of."""
    if run_id != query.run_id:
        return msgspec.structs.replace(query, last_end=end, unclean_starts=_excuse(query, end))
    return msgspec.structs.replace(
        query,
        end=end,
        last_event_at=end.at,
        active_since=None,
        data_since=None,
        lags=weigh(query.lags, {}, until=0.0),
    )


def _excuse(query: Query, end: End) -> tuple[float, ...]:
    """The unclean starts, when the clean end of the run before is heard of after the start."""
    starts = query.unclean_starts
    return starts[:-1] if end.clean and starts and starts[-1] == query.started_at else starts


def _hear(
    query: Query, now: float, *, moments: tuple[Moment, ...], missed: int = 0
) -> dict[str, Any]:
    """An event came: what it changes for a query that was hidden, or of which events were missing."""
    old, why = query.recovery, _hidden_by(query, now)
    gap = why is not None or (old is not None and (query.ahead_since is not None or missed > 0))
    new = None
    if gap:
        words = why or (old.why if old else "")
        new = Recovery(why=words, since=now, sight=query.unseen is not None)
    elif old is not None:
        enough = old.sight or now - old.since >= RECOVERY_SECONDS
        if old.signs + 1 >= _RECOVERY_EVENTS and enough:
            moments = tuple(moment for moment in moments if moment.at >= old.since)
        else:
            new = msgspec.structs.replace(old, signs=old.signs + 1)
    # A gap without events in it that came is a wait; one in which events were lost tells nothing.
    known = not gap and old is None and not missed
    gaps = (*query.gaps, now - query.last_event_at)[-_GAPS_KEPT:] if known else query.gaps
    return {
        "unseen": None,
        "ahead_since": None,
        "recovery": new,
        "moments": moments,
        "gaps": gaps,
    }


def _hidden_by(query: Query, now: float) -> str | None:
    """What has hidden the query until now; None when nothing has."""
    if query.unseen is not None:
        return query.unseen.cause.sentence
    if _is_deaf(query.status):
        return UnseenCause.LISTENER_REMOVED.sentence
    if query.ahead_since is not None and now - query.ahead_since > RECOVERY_SECONDS:
        return EVENTS_MISSING
    return None


def _is_deaf(status: QueryStatus | None) -> bool:
    """Whether a poll found that our listener is not on the query's bus."""
    return status is not None and status.listening is False


def _see(query: Query, seen: QueryStatus, *, ahead: bool) -> Recovery | None:
    """A poll found the query: what is left of the time in which it was hidden."""
    old = query.recovery
    if query.unseen is not None:
        return Recovery(why=query.unseen.cause.sentence, since=seen.at, sight=True)
    if _is_deaf(query.status) and not _is_deaf(seen):
        return Recovery(why=UnseenCause.LISTENER_REMOVED.sentence, since=seen.at, signs=0)
    if old is None or ahead or (old.sight and old.signs + 1 >= _RECOVERY_EVENTS):
        return old if ahead else None
    if seen.at - old.since >= max(RECOVERY_SECONDS, query.silence_budget):
        return None
    return msgspec.structs.replace(old, signs=old.signs + 1) if old.sight else old


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


def _remember(query: Query, event: Progress, lags: Mapping[str, SourceLag]) -> tuple[Moment, ...]:
    """Keep a bounded history: the newest moment always, older ones ten seconds apart."""
    moments, backlogs = query.moments, tuple(_backlogs(event, lags))
    moment = Moment(
        at=event.ended_at,
        rows=event.input_rows,
        backlog=event.backlog,
        backlogs=backlogs,
        complete={each.source for each in backlogs} == {source.label for source in event.sources},
        busy=(moments[-1].busy if moments else 0.0) + (event.seconds or 0.0),
        input_rate=event.input_rate,
        processed_rate=event.processed_rate,
    )
    if len(moments) > 1 and moments[-1].at - moments[-2].at < _MOMENT_GAP_SECONDS:
        moments = moments[:-1]
    return (*moments, moment)[-_MOMENTS_KEPT:]


def _backlogs(event: Progress, lags: Mapping[str, SourceLag]) -> Iterator[Backlog]:
    """What each source says of itself, and where it does not, what was last found in it."""
    for source in event.sources:
        lag = lags[source.label]
        found = (lag.waiting if event.ended_at < lag.waiting_until else None) or Waiting()
        for unit, said, seen in (
            ("rows", source.backlog, None),
            ("files", source.files, found.files),
            ("bytes", source.bytes, found.bytes),
            ("versions", source.versions, found.versions),
        ):
            amount = seen if said is None else said
            if amount is not None:
                yield Backlog(source.label, unit, float(amount))


def _active_since(query: Query, seen: QueryStatus) -> float | None:
    """Start of the running trigger: exact where Spark tells, else the first poll that found it.

    Spark's clock may have been set since. A trigger that the last poll found has not begun again; a new one
    has begun after that poll.
    """
    if not seen.trigger_active:
        return None
    known, said = query.active_since, seen.trigger_started_at
    if said is None:
        return known or seen.at
    before = query.status
    if known is not None and before is not None and before.trigger_started_at == said:
        return known
    began = min(seen.at, said - seen.clock_offset)
    return began if before is None or before.trigger_started_at == said else max(began, before.at)


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
