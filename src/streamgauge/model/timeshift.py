"""Between Spark's wall clock and the steady clock of the model: pure functions of records and an offset.

Times of events are the driver's wall clock, or that of a Connect server. `to_steady` brings them to the steady
clock, and cuts lengths that this clock rules out. `shift_event` and `shift_query` go back, for those who write
times for others to read. With an offset of 0 they return what they were given.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from .events import Event, Progress, Terminated
from .query import Query

_SLACK_SECONDS = 1.0  # events are late, clocks are coarse: less than this is no sign of a step
_FOREIGN_SLACK_SECONDS = (
    60.0  # the same while this host's clock had none: a Connect server's may be ahead
)
_QUERY_TIMES = (
    *("first_seen_at", "last_event_at", "started_at", "last_idle_at", "idle_trigger_at"),
    *("idle_since", "active_since", "data_since", "tasks_changed_at", "inactive_at"),
    *("waits_since", "ahead_since"),
)
_QUERY_PARTS = ("end", "last_end", "status", "unseen", "checkpoint", "last", "committed")

Timed = TypeVar("Timed")


def to_steady(event: Event, query: Query | None, now: float, offset: float) -> Event:
    """The event in the steady clock, as received at `now`; `query` is what was known before.

    A length that is longer than the time since the run's last sign spans a step of the clock, and is cut to
    that. Where the clock went back during the batch, its length is unknown.
    """
    if isinstance(event, Terminated):
        return event
    if not isinstance(event, Progress):
        at = None if event.at is None else min(now, _nearest(event.at, now, offset))
        return event if at == event.at else msgspec.structs.replace(event, at=at)
    ended = _nearest(event.ended_at, now, offset)
    seconds = event.seconds
    if seconds == 0.0 and event.has_data:  # Spark's word for a negative length
        seconds = None
    elif seconds is not None and query is not None:
        since = _last_sign(query, event.run_id)
        longest = seconds if since is None else max(0.0, now - since)
        slack = _SLACK_SECONDS if offset else _FOREIGN_SLACK_SECONDS
        seconds = longest if seconds > longest + slack else seconds
    return _retime(event, min(ended, now), seconds)


def shift_event(event: Event, by: float) -> Event:
    """The event with its times moved; lengths stay."""
    return event if isinstance(event, Terminated) or not by else _shift(event, by)


def shift_query(query: Query, by: float) -> Query:
    """The record with its times moved, for readers of the wall clock. Histories and lags stay as they are."""
    if not by:
        return query
    changes: dict[str, Any] = {
        name: value + by for name in _QUERY_TIMES if (value := getattr(query, name)) is not None
    }
    changes |= {
        name: _shift(part, by)
        for name in _QUERY_PARTS
        if (part := getattr(query, name)) is not None
    }
    changes["starts"] = tuple(at + by for at in query.starts)
    return msgspec.structs.replace(query, **changes)


def _shift(part: Timed, by: float) -> Timed:
    at = getattr(part, "at", None)
    moved: Timed = part if at is None else msgspec.structs.replace(part, at=at + by)  # type: ignore[type-var]
    return moved


def _nearest(at: float, now: float, offset: float) -> float:
    """A time of an event just received: by this host's clock, or by that of a Connect server, which had no step."""
    return min(at - offset, at, key=lambda time: abs(now - time))


def _last_sign(query: Query, run_id: str) -> float | None:
    """When the run was last known to be between two batches; None when it was not seen before."""
    if query.run_id != run_id:
        return None
    signs = [query.started_at, query.idle_trigger_at]
    if query.last is not None and query.has_batch:
        signs.append(query.last.ended_at)
    return max((sign for sign in signs if sign is not None), default=None)


def _retime(batch: Progress, ended: float, seconds: float | None) -> Progress:
    at = ended - (seconds or 0.0)
    if seconds == batch.seconds:
        return batch if ended == batch.ended_at else msgspec.structs.replace(batch, at=at)
    most = 0.0 if seconds is None else seconds
    return msgspec.structs.replace(
        batch,
        at=at,
        seconds=seconds,
        # What rests on the same clock is as wrong as the length.
        phases={name: spent for name, spent in batch.phases.items() if spent <= most},
        input_rate=None,
        processed_rate=None,
    )
