"""What is known of each query: one immutable record per query, replaced whole when something happens.

Pure: time is passed in, so every judgement can be tested without a clock. One thread (the worker)
calls the methods of `Fleet`; any thread may read `Fleet.queries` and keep what it got.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from .events import Event, Idle, Progress, Started, Terminated
from .lag import take_look, weigh
from .observations import (
    ApplicationStatus,
    ApplicationStopping,
    CheckpointNames,
    Gone,
    Observation,
    PlannedBatch,
    QueryStatus,
    RunDetails,
    SourceBacklog,
    TableVersion,
    Unseen,
)
from .query import End, Query
from .retention import find_expired, find_faded
from .runs import RunLog
from .sources.broker_offsets import BrokerOffsets
from .transitions import (
    begin_run,
    end_of,
    finish,
    renew,
    take_idle_event,
    take_progress,
    take_status,
)
from .update import Applied

# Observations of one run of one query.
_OfRun = QueryStatus | Gone | CheckpointNames | SourceBacklog | Unseen | PlannedBatch | TableVersion


_NOTHING = Applied()


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
        self._runs = RunLog()
        self._faded: set[str] = set()  # failed runs of which only the last word is left
        self._stopping: frozenset[str] = frozenset()  # runs that the application's end breaks
        self._unnamed: dict[str, tuple[Idle, float]] = {}  # idle, and their name is not known yet
        self._renamed: list[Query] = []  # as they were, until the next sweep
        self._bus_dropped: int | None = None
        self.queries: Mapping[str, Query] = {}

    def apply(self, cause: Event | Observation, now: float) -> Applied:
        """Take in what the agent learned, whatever it is: the one way in. Its times are steady ones."""
        if isinstance(cause, Started | Progress | Idle | Terminated):
            return self._apply_event(cause, now)
        if isinstance(cause, ApplicationStatus):
            return Applied(bus_dropped=self._count_dropped(cause))
        if isinstance(cause, ApplicationStopping):
            self._stopping = frozenset(q.run_id for q in self.queries.values() if q.live)
            return _NOTHING
        if isinstance(cause, BrokerOffsets):
            return Applied(queries=tuple(self._take_broker_offsets(cause)))
        if isinstance(cause, RunDetails):
            return self._changed(self._take_details(cause, now))
        return self._changed(self._observe(cause))

    def _changed(self, query: Query | None) -> Applied:
        """Put a record in the place of the one before."""
        if query is None:
            return _NOTHING
        before = self.queries.get(query.query_id)
        self.queries = {**self.queries, query.query_id: query}
        missed = query.missed - (before.missed if before else 0)
        return Applied(queries=(query,), missed=max(0, missed))

    # ---- events ----------------------------------------------------------------------------

    def _apply_event(self, event: Event, now: float) -> Applied:
        if self._is_known(event):
            return Applied(repeated=True)
        if isinstance(event, Terminated) and event.exception and event.run_id in self._stopping:
            return _NOTHING  # not a failure of its own: the application's end broke it
        if isinstance(event, Started):
            applied = self._changed(self._start(event, now))
            wanted = (event.query_id, event.run_id)
            return msgspec.structs.replace(applied, wants_details=wanted)
        query = self.queries.get(event.query_id)
        if query is None and isinstance(event, Idle):
            self._unnamed[event.query_id] = (event, now)
            return Applied(wants_details=(event.query_id, event.run_id))
        return self._changed(self._go_on(query, event, now))

    def _go_on(self, query: Query | None, event: Progress | Idle | Terminated, now: float) -> Query:
        if query is None:
            self._unnamed.pop(event.query_id, None)
            name = event.name if isinstance(event, Progress) else None
            query = self._admit(event.query_id, event.run_id, name, now)
        elif query.run_id != event.run_id and not self._runs.knows(event.run_id):
            # Its Started event did not reach us: when it began is not known.
            query = msgspec.structs.replace(self._renew(query, event.run_id, now), started_at=None)
        if isinstance(event, Progress):
            missed = self._count_unseen(query, event.batch_id)
            self._note_batch(event.run_id, event.batch_id)
            return take_progress(query, event, now, missed=missed)
        if isinstance(event, Idle):
            return take_idle_event(query, event, now)
        return self._terminate(query, event, now)

    def _is_known(self, event: Event) -> bool:
        """Whether this very event came before, from a second listener or a second add."""
        if isinstance(event, Started):
            return self._runs.knows(event.run_id)
        if isinstance(event, Progress):
            newest = self._runs.newest_batch(event.run_id)
            return newest is not None and event.batch_id <= newest
        if self._runs.has_ended(event.run_id):
            return True
        query = self.queries.get(event.query_id)
        return (
            isinstance(event, Idle)
            and query is not None
            and event.at is not None
            and query.idle_trigger_at == event.at
        )

    def _start(self, event: Started, now: float) -> Query:
        old = self.queries.get(event.query_id)
        if old is None:
            query = self._admit(event.query_id, event.run_id, event.name, now)
        else:
            query = self._renew(old, event.run_id, now)
            if event.name != old.name:
                query = self._rename(query, old, event.name)
        self._note_batch(event.run_id, -1)
        return begin_run(query, event.at or now, now)

    def _terminate(self, query: Query, event: Terminated, now: float) -> Query:
        self._runs.note_end(event.run_id)
        known = self._count_unreported(query, event.run_id)
        return finish(known, event.run_id, end_of(event, now))

    def _count_unreported(self, query: Query, run_id: str) -> Query:
        """Count the batches that the last poll found done: no event of theirs comes after the end."""
        status = query.status
        if run_id != query.run_id or status is None or status.batch_id is None:
            return query
        new = self._count_unseen(query, status.batch_id)
        return msgspec.structs.replace(
            query, missed=query.missed + new, counted_to=query.counted_to + new
        )

    def _count_unseen(self, query: Query, batch_id: int) -> int:
        """Batches before this one, since the last that was seen, of which no event came."""
        newest = self._runs.newest_batch(query.run_id)
        newest = query.counted_to if newest is None or newest < 0 else newest
        return max(0, batch_id - newest - 1) if newest >= 0 else 0

    # ---- records and labels ----------------------------------------------------------------

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

    def _renew(self, old: Query, run_id: str, now: float) -> Query:
        label = old.label
        if old.live:
            self._runs.note_replaced(old.run_id, old.query_id, now)
        elif self._is_taken(label, old.query_id):
            label = f"{label}-{old.query_id[:8]}"
        return renew(old, run_id=run_id, label=label, now=now)

    def _rename(self, query: Query, old: Query, name: str | None) -> Query:
        """A run under another name than the last one of this checkpoint: the old name is over."""
        self._renamed.append(msgspec.structs.replace(old, end=None))  # it did not fail, it went on
        label, _ = self._claim_label(query.query_id, name)
        floor = self._silence_floor(name or label)
        return msgspec.structs.replace(query, name=name, label=label, silence_floor=floor)

    def _claim_label(self, query_id: str, name: str | None) -> tuple[str, str | None]:
        """The label of a name, and the id of the ended query that had it: that one is forgotten.

        The start of the id is in it where there is no name, or where another live query has the same.
        """
        label = name or f"unnamed-{query_id[:8]}"
        if self._is_taken(label, query_id):
            label = f"{label}-{query_id[:8]}"
        replaced = None
        for other in list(self.queries.values()):
            if other.label == label and other.query_id != query_id:
                replaced = other.query_id
                self._forget({other.query_id})
        return label, replaced

    def _is_taken(self, label: str, query_id: str) -> bool:
        """Whether another query that lives has this label."""
        return any(
            q.live and q.label == label and q.query_id != query_id for q in self.queries.values()
        )

    # ---- observations ----------------------------------------------------------------------

    def _observe(self, cause: _OfRun) -> Query | None:
        """The query with an observation of its run taken in; None if that is out of date."""
        query = self.queries.get(cause.query_id)
        if query is None or query.run_id != cause.run_id:
            return None
        if isinstance(cause, PlannedBatch):  # what is read of a run at its end
            return msgspec.structs.replace(query, planned=cause)
        if isinstance(cause, TableVersion):
            return msgspec.structs.replace(query, table_version=cause)
        return self._observe_live(query, cause) if query.live else None

    def _observe_live(
        self, query: Query, cause: QueryStatus | Gone | CheckpointNames | SourceBacklog | Unseen
    ) -> Query | None:
        if isinstance(cause, QueryStatus):
            if cause.at < query.last_event_at:
                return None
            newest = self._runs.newest_batch(cause.run_id)
            query = self._end_replaced(query, cause.at)
            return take_status(query, cause, -1 if newest is None else newest)
        if isinstance(cause, Gone):
            return self._lose(query, cause)
        if isinstance(cause, CheckpointNames):
            return msgspec.structs.replace(query, checkpoint=cause)
        if isinstance(cause, Unseen):
            return msgspec.structs.replace(query, unseen=cause, recovery=None)
        lags = weigh(query.lags, cause.waiting, until=cause.until)
        return msgspec.structs.replace(query, lags=lags)

    def _take_details(self, details: RunDetails, now: float) -> Query | None:
        """How a run is configured; a query only heard of through idle events gets its name."""
        query = self.queries.get(details.query_id)
        if query is None:
            if details.query_id not in self._unnamed:
                return None
            event, heard_at = self._unnamed.pop(details.query_id)
            query = self._admit(details.query_id, details.run_id, details.name, heard_at)
            query = take_idle_event(query, event, heard_at)
            newest = self._runs.newest_batch(event.run_id)
            self._note_batch(event.run_id, -1 if newest is None else newest)
        if query.run_id != details.run_id or query.details == details:
            return None
        location = details.checkpoint or query.location
        return msgspec.structs.replace(query, details=details, location=location)

    def _end_replaced(self, query: Query, now: float) -> Query:
        """End a run that this one replaced, if the word of its end is too late to come still."""
        overdue = self._runs.overdue_end(query.query_id, now)
        if overdue is None:
            return query
        run_id, at = overdue
        self._runs.note_end(run_id)
        why = "a new run began, and no Terminated event came"
        return finish(query, run_id, End(at=at, outcome="unknown", why=why))

    def _lose(self, query: Query, gone: Gone) -> Query:
        """End a run whose Terminated event never came."""
        self._runs.note_end(gone.run_id)
        return finish(query, gone.run_id, end_of(gone, gone.at))

    def _take_broker_offsets(self, seen: BrokerOffsets) -> list[Query]:
        """What a broker itself says; it changes ended queries too."""
        changed: list[Query] = []
        for query in self.queries.values():
            lags = {label: take_look(lag, seen) for label, lag in query.lags.items()}
            if any(lags[label] is not query.lags[label] for label in lags):
                changed += self._changed(msgspec.structs.replace(query, lags=lags)).queries
        return changed

    def _count_dropped(self, status: ApplicationStatus) -> int:
        if status.bus_dropped is None:
            return 0
        before, self._bus_dropped = self._bus_dropped, status.bus_dropped
        return 0 if before is None else max(0, status.bus_dropped - before)

    # ---- time ------------------------------------------------------------------------------

    def sweep(self, now: float) -> list[Query]:
        """Forget, and return, the queries whose time is over, and old names."""
        old = find_expired(
            self.queries.values(),
            now,
            grace_seconds=self._grace_seconds,
            failed_limit=self._failed_limit,
        )
        if old:
            self._forget(set(old))
        renamed, self._renamed = self._renamed, []
        taken = {query.label for query in self.queries.values()}
        return [*old.values(), *(query for query in renamed if query.label not in taken)]

    def fading(self, now: float) -> list[Query]:
        """The queries that failed just over the grace period ago; each is returned once."""
        known = self.queries.values()
        faded = find_faded(known, now, grace_seconds=self._grace_seconds)
        new = [query for query in faded if query.run_id not in self._faded]
        self._faded = {q.run_id for q in known if not q.live} & (
            self._faded | {q.run_id for q in new}
        )
        return new

    # ---- bookkeeping -----------------------------------------------------------------------

    def _forget(self, query_ids: set[str]) -> None:
        self.queries = {k: v for k, v in self.queries.items() if k not in query_ids}

    def _note_batch(self, run_id: str, batch_id: int) -> None:
        live = (q.run_id for q in self.queries.values() if q.live)
        self._runs.note_batch(run_id, batch_id, live)
