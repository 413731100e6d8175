"""What we know of each query: one immutable record a query, replaced whole when something happens.

Pure: time is passed in, so every judgement can be tested without a clock. One thread (the worker)
calls the methods of `Fleet`; any thread may read `Fleet.queries` and hold on to what it got.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .events import Event, Idle, Progress, Started, Terminated
from .lag import SourceLag, take_batch, take_idle, take_look, weigh
from .observations import CheckpointNames, Gone, QueryStatus, RunDetails, SourceBacklog, Unseen
from .query import End, Moment, Query
from .sources.broker_offsets import BrokerOffsets

HOUR = 3600.0
_MOMENTS = 64  # how much of a query's pace is remembered
_MOMENT_GAP = 10.0
_GAPS = 10
_STARTS = 3600  # one a second for an hour
_RUNS = 16
_LATE = 60.0  # how long the end of a run may come after the start of the next
_QUERIES = 5000  # past so many, those that ended first are forgotten


class Fleet:
    """All queries of the application, keyed by query id."""

    def __init__(
        self,
        *,
        silence_floor: Callable[[str], float] = lambda _: 300.0,
        watch_seconds: float = 5.0,
        grace_seconds: float = 300.0,
        failed_limit: int = 500,
    ) -> None:
        self._silence_floor = silence_floor
        self._watch_seconds = watch_seconds
        self._grace_seconds = grace_seconds
        self._failed_limit = failed_limit
        self._runs: dict[str, int] = {}  # run id → newest batch id seen in it
        self._ended: dict[str, None] = {}  # run ids whose end was seen
        self._unended: dict[str, tuple[str, float]] = {}  # run id → query id, when overtaken
        self._faded: set[str] = set()  # failed runs of which only the last word is left
        self._pending: dict[str, tuple[Idle, float]] = {}
        self._renamed: list[Query] = []  # as they were, until the next sweep
        self.queries: Mapping[str, Query] = {}

    # ---- events ----------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> Query | None:
        """Take in an event; return the query as it is now, or None for one seen before."""
        if self._is_known(event):
            return None
        query = self.queries.get(event.query_id)
        if isinstance(event, Started):
            return self._keep(self._start(query, event, now))
        if query is None:
            if isinstance(event, Idle):
                self._pending[event.query_id] = (event, now)  # its name is not known yet
                return None
            self._pending.pop(event.query_id, None)
            name = event.name if isinstance(event, Progress) else None
            query = self._admit(event.query_id, event.run_id, name, now)
        elif query.run_id != event.run_id and event.run_id not in self._runs:
            query = self._begin_unseen(query, event.run_id, now)
        if isinstance(event, Progress):
            query = self._progress(query, event, now)
        elif isinstance(event, Idle):
            query = self._idle(query, event, now)
        else:
            query = self._terminate(query, event, now)
        return self._keep(query)

    def _is_known(self, event: Event) -> bool:
        """Whether this very event came before, from a second listener or a second add."""
        if isinstance(event, Started):
            return event.run_id in self._runs
        if isinstance(event, Progress):
            newest = self._runs.get(event.run_id)
            return newest is not None and event.batch_id <= newest
        if isinstance(event, Terminated):
            return event.run_id in self._ended
        query = self.queries.get(event.query_id)
        again = query is not None and event.at is not None and query.idle_trigger_at == event.at
        return again or event.run_id in self._ended

    def _start(self, old: Query | None, event: Started, now: float) -> Query:
        at = event.at or now
        if old is None:
            query = self._admit(event.query_id, event.run_id, event.name, now)
        else:
            query = self._renew(old, event.run_id, now)
            if event.name != old.name:
                query = self._rename(query, old, event.name)
        self._note_run(event.run_id, -1)
        starts = (*(s for s in query.starts if s > now - HOUR), at)[-_STARTS:]
        return msgspec.structs.replace(query, started_at=at, starts=starts)

    def _rename(self, query: Query, old: Query, name: str | None) -> Query:
        """A run under another name than the last one of this checkpoint: the old name is over."""
        self._renamed.append(msgspec.structs.replace(old, end=None))  # it did not fail, it went on
        label, _ = self._claim_label(query.query_id, name)
        floor = self._silence_floor(name or label)
        return msgspec.structs.replace(query, name=name, label=label, silence_floor=floor)

    def _begin_unseen(self, query: Query, run_id: str, now: float) -> Query:
        """A run whose Started event did not reach us: when it began is not known."""
        return msgspec.structs.replace(self._renew(query, run_id, now), started_at=None)

    def _renew(self, old: Query, run_id: str, now: float) -> Query:
        """The record of a new run: what belonged to the old run goes, the history stays."""
        label = old.label
        if old.live:
            self._note_overtaken(old, now)
        if not old.live and self._taken(label, old.query_id):
            label = f"{label}-{old.query_id[:8]}"
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

    def _admit(self, query_id: str, run_id: str, name: str | None, now: float) -> Query:
        """The record of a query never seen before."""
        label, replaced = self._claim_label(query_id, name)
        return Query(
            query_id=query_id,
            run_id=run_id,
            label=label,
            name=name,
            first_seen_at=now,
            last_event_at=now,
            replaced_query_id=replaced if name else None,
            silence_floor=self._silence_floor(name or label),
            watch_seconds=self._watch_seconds,
        )

    def _claim_label(self, query_id: str, name: str | None) -> tuple[str, str | None]:
        """The label of a name, and the id of the ended query that had it: that one is forgotten.

        The start of the id is in it where there is no name, or where another live query has the same.
        """
        label = name or f"unnamed-{query_id[:8]}"
        if self._taken(label, query_id):
            label = f"{label}-{query_id[:8]}"
        replaced = None
        for other in list(self.queries.values()):
            if other.label == label and other.query_id != query_id:
                replaced = other.query_id
                self._forget(other.query_id)
        return label, replaced

    def _taken(self, label: str, query_id: str) -> bool:
        """Whether another query that lives has this label."""
        return any(
            q.live and q.label == label and q.query_id != query_id for q in self.queries.values()
        )

    def _progress(self, query: Query, event: Progress, now: float) -> Query:
        missed = self._count_unseen(query, event.batch_id)
        self._note_run(event.run_id, event.batch_id)
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
            gaps=(*query.gaps, now - query.last_event_at)[-_GAPS:],
            longest=tuple(longest.items()),
        )

    def _idle(self, query: Query, event: Idle, now: float) -> Query:
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
            gaps=(*query.gaps, now - query.last_event_at)[-_GAPS:],
        )

    def _terminate(self, query: Query, event: Terminated, now: float) -> Query:
        self._note_end(event.run_id)
        end = End(
            at=now,
            outcome="failed" if event.exception else "stopped",
            error_class=event.error_class,
            exception=event.exception,
        )
        return self._finish(self._note_unseen(query, event.run_id), event.run_id, end)

    def _note_unseen(self, query: Query, run_id: str) -> Query:
        """Count the batches that the last look found done: whose event has not come before the end comes no more."""
        look = query.status
        if run_id != query.run_id or look is None or look.batch_id is None:
            return query
        new = self._count_unseen(query, look.batch_id)
        return msgspec.structs.replace(
            query, missed=query.missed + new, counted_to=query.counted_to + new
        )

    def _finish(self, query: Query, run_id: str, end: End) -> Query:
        if run_id != query.run_id:  # the next run was quicker than the word of this one's end
            return msgspec.structs.replace(query, last_end=end)
        return msgspec.structs.replace(
            query,
            end=end,
            last_event_at=end.at,
            active_since=None,
            data_since=None,
            lags=weigh(query.lags, {}, until=0.0),
        )

    def _count_unseen(self, query: Query, batch_id: int) -> int:
        """Batches before this one, since the last that was seen, of which no event came."""
        newest = self._runs.get(query.run_id, -1)
        newest = query.counted_to if newest < 0 else newest
        return max(0, batch_id - newest - 1) if newest >= 0 else 0

    # ---- looks -----------------------------------------------------------------------------

    def learn(self, details: RunDetails, now: float) -> Query | None:
        """Take in how a run is configured; a query only heard of through idle events gets its name."""
        query = self.queries.get(details.query_id)
        if query is None:
            if details.query_id not in self._pending:
                return None
            event, heard_at = self._pending.pop(details.query_id)
            query = self._admit(details.query_id, details.run_id, details.name, heard_at)
            query = self._idle(query, event, heard_at)
            self._note_run(event.run_id, self._runs.get(event.run_id, -1))
        if query.run_id != details.run_id or query.details == details:
            return None
        return self._keep(msgspec.structs.replace(query, details=details))

    def look(self, seen: QueryStatus) -> Query | None:
        """Take in one look at a live query; None if it is of another run or an older look."""
        query = self.queries.get(seen.query_id)
        if query is None or query.run_id != seen.run_id or not query.live:
            return None
        if seen.at < query.last_event_at:
            return None
        newest = self._runs.get(seen.run_id, -1)
        first = query.first_batch if query.first_batch is not None else seen.batch_id
        known = newest if newest >= 0 else first
        ahead = seen.batch_id is not None and known is not None and seen.batch_id >= known + 2
        query = self._end_overtaken(query, seen.at)
        return self._keep(
            msgspec.structs.replace(
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
        )

    def _end_overtaken(self, query: Query, now: float) -> Query:
        """End a run that was overtaken by this one, if the word of its end is too late to come still."""
        for run_id, (query_id, at) in self._unended.items():
            if query_id == query.query_id and now - at > _LATE:
                self._note_end(run_id)
                why = "a new run began, and no Terminated event came"
                return self._finish(query, run_id, End(at=at, outcome="unknown", why=why))
        return query

    def inspect(self, seen: CheckpointNames | SourceBacklog) -> Query | None:
        """Take in what lies in a query's checkpoint or waits in its sources; None if of another run."""
        query = self.queries.get(seen.query_id)
        if query is None or query.run_id != seen.run_id or not query.live:
            return None
        if isinstance(seen, CheckpointNames):
            return self._keep(msgspec.structs.replace(query, checkpoint=seen))
        lags = weigh(query.lags, seen.waiting, until=seen.until)
        return self._keep(msgspec.structs.replace(query, lags=lags))

    def witness(self, seen: BrokerOffsets) -> list[Query]:
        """Take in what a source itself says; return the queries, also ended ones, that it changes."""
        changed = []
        for query in self.queries.values():
            lags = {label: take_look(lag, seen) for label, lag in query.lags.items()}
            if any(lags[label] is not query.lags[label] for label in lags):
                changed.append(self._keep(msgspec.structs.replace(query, lags=lags)))
        return changed

    def hide(self, unseen: Unseen) -> Query | None:
        """Take in that a live query can't be seen now; None if it is of another run."""
        query = self.queries.get(unseen.query_id)
        if query is None or query.run_id != unseen.run_id or not query.live:
            return None
        return self._keep(msgspec.structs.replace(query, unseen=unseen))

    def lose(self, gone: Gone) -> Query | None:
        """End a run whose Terminated event never came; None if it has ended already."""
        query = self.queries.get(gone.query_id)
        if query is None or query.run_id != gone.run_id or not query.live:
            return None
        self._note_end(gone.run_id)
        end = End(
            at=gone.at,
            outcome="failed" if gone.exception else "unknown",
            why=gone.why,
            error_class=gone.error_class,
            exception=gone.exception,
        )
        return self._keep(self._finish(query, gone.run_id, end))

    def sweep(self, now: float) -> list[Query]:
        """Forget, and return, the queries that ended well longer than the grace period ago, and old names.

        A failed one stays until it starts again, but of too many the first to fail go: a job that
        makes a new query for each attempt must not fill the memory.
        """
        ended = sorted((q for q in self.queries.values() if q.end), key=_ended_at)
        failed = [query for query in ended if _has_failed(query)]
        well = [query for query in ended if not _has_failed(query)]
        gone = (
            *(query for query in well if now - _ended_at(query) > self._grace_seconds),
            *failed[: max(0, len(failed) - self._failed_limit)],
            *ended[: max(0, len(self.queries) - _QUERIES)],
        )
        old = {query.query_id: query for query in gone}
        for query_id in old:
            self._forget(query_id)
        renamed, self._renamed = self._renamed, []
        taken = {query.label for query in self.queries.values()}
        return [*old.values(), *(query for query in renamed if query.label not in taken)]

    def fading(self, now: float) -> list[Query]:
        """The queries that failed just over the grace period ago; each is returned once."""
        old = [
            query
            for query in self.queries.values()
            if _has_failed(query)
            and now - _ended_at(query) > self._grace_seconds
            and query.run_id not in self._faded
        ]
        self._faded = {q.run_id for q in self.queries.values() if not q.live} & (
            self._faded | {q.run_id for q in old}
        )
        return old

    # ---- bookkeeping -----------------------------------------------------------------------

    def _keep(self, query: Query) -> Query:
        self.queries = {**self.queries, query.query_id: query}
        return query

    def _forget(self, query_id: str) -> None:
        self.queries = {k: v for k, v in self.queries.items() if k != query_id}

    def _note_run(self, run_id: str, batch_id: int) -> None:
        self._runs.pop(run_id, None)
        self._runs[run_id] = batch_id
        live = {q.run_id for q in self.queries.values() if q.live}
        for old in [r for r in self._runs if r not in live][: -_RUNS * 4]:
            del self._runs[old]

    def _note_overtaken(self, query: Query, now: float) -> None:
        self._unended[query.run_id] = (query.query_id, now)
        for old in list(self._unended)[: -_RUNS * 16]:
            del self._unended[old]

    def _note_end(self, run_id: str) -> None:
        self._unended.pop(run_id, None)
        self._ended[run_id] = None
        for old in list(self._ended)[: -_RUNS * 16]:
            del self._ended[old]


def _ended_at(query: Query) -> float:
    return query.end.at if query.end else math.inf


def _has_failed(query: Query) -> bool:
    return query.end is not None and query.end.outcome == "failed"


def _goes_back(query: Query, event: Progress) -> bool:
    """Whether a batch comes again that was committed long ago; the last one may, as a replay."""
    return query.committed is not None and event.batch_id < query.committed.batch_id


def _measure(query: Query, event: Progress) -> dict[str, SourceLag]:
    """How far behind each source is after a batch; sources that are no longer read go."""
    # An AvailableNow run looks once, at its start, and repeats what it saw with every batch.
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
    if len(moments) > 1 and moments[-1].at - moments[-2].at < _MOMENT_GAP:
        moments = moments[:-1]
    return (*moments, moment)[-_MOMENTS:]


def _active_since(query: Query, seen: QueryStatus) -> float | None:
    """Start of the running trigger: exact where Spark tells, else the first look that found it."""
    if not seen.trigger_active:
        return None
    if seen.trigger_started_at is not None:
        return seen.trigger_started_at
    return query.active_since or seen.at


def _waited(query: Query, seen: QueryStatus) -> dict[str, Any]:
    """Since when it is seen to wait for a trigger; the longest wait that is over is one of its gaps."""
    if seen.phase == "waiting_for_trigger":
        return {"waits_since": seen.at if query.waits_since is None else query.waits_since}
    over = query.trigger_wait
    longest = over > max(query.gaps, default=0.0)
    return {"waits_since": None, **({"gaps": (*query.gaps, over)[-_GAPS:]} if longest else {})}


def _tasks_changed_at(query: Query, seen: QueryStatus) -> float | None:
    """When a task of the running batch was last seen to have finished."""
    before: Any = query.status.tasks if query.status else None
    if seen.tasks is None or not seen.trigger_active:
        return None
    if before is not None and seen.tasks.completed != before.completed:
        return seen.at
    if before is None and seen.tasks.completed:
        return seen.at
    return query.tasks_changed_at
