"""What came of an event or observation, and what exporters are told of it: immutable records."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from .events import Event, Idle, Progress, Started, Terminated
from .observations import Observation
from .query import Query
from .timeshift import shift_event, shift_query
from .verdict import Verdict


class Applied(Struct, frozen=True, kw_only=True):
    """What came of one event or observation."""

    queries: tuple[Query, ...] = ()  # those that it changed, as they are now
    repeated: bool = False  # an event that came before, from a second listener
    wants_details: tuple[str, str] | None = None  # ask how this (query id, run id) is configured
    missed: int = 0  # batches that are known to have been done without an event
    bus_dropped: int = 0  # events that Spark's bus dropped since the last poll


class TraceIds(Struct, frozen=True):
    """The trace that an update belongs to, in hexadecimal as logs and exemplars have it."""

    trace_id: str
    span_id: str
    sampled: bool = False  # it is this very batch's, and somebody will find it in a trace store


class Update(Struct, frozen=True, kw_only=True):
    """One event or observation, with what is known after it. Safe to keep, on any thread."""

    at: float  # the steady clock, or the wall clock: see `Exporter.steady_times`
    cause: Event | Observation | None  # None: only time has passed
    query: Query  # with the cause taken in
    verdict: Verdict
    previous: Verdict | None = None  # the verdict before this update; None for a new query
    trace: TraceIds | None = None
    forgotten: bool = False  # the query has left the fleet; this is the last update of it

    @property
    def changes_state(self) -> bool:
        """Whether the verdict's state is another one than before."""
        return self.previous is None or self.previous.state != self.verdict.state


def shift_update(update: Update, by: float) -> Update:
    """The update with its times moved from the steady clock to the wall clock."""
    if not by:
        return update
    cause = update.cause
    is_event = isinstance(cause, Started | Progress | Idle | Terminated)
    return msgspec.structs.replace(
        update,
        at=update.at + by,
        cause=shift_event(cause, by) if is_event else cause,  # type: ignore[arg-type]
        query=shift_query(update.query, by),
    )
