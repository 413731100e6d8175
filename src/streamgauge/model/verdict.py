"""What is wrong with a query, if anything: a pure function of what is known and the time.

The alert rules rest on the same series and the same budget, so that page and verdict agree. Idle is
never mistaken for stalled: silence counts only while something should be happening.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct

from .query import End, Moment, Query
from .thresholds import default_number

STATES = (
    "starting",
    "running",
    "idle",
    "catching_up",
    "falling_behind",
    "stalled",
    "restarting",
    "failed",
    "stopped",
    "blind",
)
BLIND_SECONDS = 30.0
RESTARTS, RESTART_WINDOW_SECONDS = default_number("restart_count"), default_number("restart_window")
TREND_BATCHES, TREND_SECONDS = 5, 300.0
_MARGIN = 1.05  # rates wobble; a few percent are no trend
_CHANCE = 2.4  # so many times what chance makes of values without a trend: one time in a hundred
_QUIET_SECONDS = 30.0


class Verdict(Struct, frozen=True):
    """A state of the contract, and the reason in words."""

    state: str
    reason: str


def judge(query: Query, now: float, *, worker_seen_at: float | None = None) -> Verdict:
    """Judge one query at one moment; `worker_seen_at` is the agent's own last sign of life."""
    if query.end:
        return _ended(query)
    if reason := _blind(query, now, worker_seen_at):
        return Verdict("blind", reason)
    if reason := _stalled(query, now):
        return Verdict("stalled", reason)
    if reason := _restarting(query, now):
        return Verdict("restarting", reason)
    if query.continuous:
        return Verdict("running", "continuous mode: Spark reports no batches, only start and end")
    if not query.has_batch and query.last_idle_at is None:
        since = query.started_at or query.first_seen_at
        return Verdict("starting", f"no batch yet, {_span(now - since)} after the start")
    return _pace(query, now)


def is_idle(query: Query, now: float) -> bool:
    """Whether it has nothing to do, which a verdict of its starts alone does not tell."""
    if query.has_batch or query.last_idle_at is not None:
        return _pace(query, now).state == "idle"
    look = query.fresh_status(now)
    return look is not None and look.phase == "waiting_for_data"


def _ended(query: Query) -> Verdict:
    end = query.end
    if end is None:  # pragma: no cover - the caller asked
        raise ValueError("the query has not ended")
    if end.outcome == "failed":
        return Verdict("failed", _words(end))
    if end.outcome == "stopped":
        nothing = "; it processed nothing new" if query.did_nothing_new else ""
        return Verdict("stopped", f"ended without an error{nothing}")
    return Verdict("stopped", f"ended, and how is not known: {end.why}")


def _words(end: End) -> str:
    """Both classes, and what the innermost exception says."""
    cause = f", caused by {end.cause_class}" if end.cause_class else ""
    message = f": {end.message}" if end.message else ""
    return f"{end.error_class or 'unknown error'}{cause}{message}"


def _blind(query: Query, now: float, worker_seen_at: float | None) -> str | None:
    if worker_seen_at is not None and now - worker_seen_at > BLIND_SECONDS:
        return f"the agent's own worker has been blocked for {_span(now - worker_seen_at)}"
    if query.unseen is not None:
        return query.unseen.why
    look = query.status
    if look is not None and look.listening is False:
        return "the listener was removed from this query's session"
    if look is not None and query.ahead_since and now - query.ahead_since > BLIND_SECONDS:
        return f"the query is at batch {look.batch_id}, and no event came for its last batches"
    return None


def _stalled(query: Query, now: float) -> str | None:
    """Silent beyond its budget while something should happen and no task finishes."""
    if query.continuous:
        return None
    budget = query.silence_budget
    look = query.fresh_status(now)
    quiet = now - query.last_event_at
    if look is None:
        words = f"no event for {_span(quiet)}, allowed are {_span(budget)}"
        return words if quiet > budget else None
    if look.trigger_active and query.active_since is not None:
        return _hung(query, now, budget)
    if look.phase == "waiting_for_data":
        return _uncommitted(query, now, budget)
    if quiet > budget:
        return f"no event for {_span(quiet)}, allowed are {_span(budget)}"
    return _uncommitted(query, now, budget)


def _hung(query: Query, now: float, budget: float) -> str | None:
    """The trigger that runs has run too long, and none of its tasks has finished for as long."""
    age = now - max(query.active_since or now, query.started_at or 0.0)
    if age <= budget:
        return _uncommitted(query, now, budget)
    look = query.status
    tasks = look.tasks if look else None
    if tasks is None:
        return f"{_batch(query)} has run for {_span(age)}, and no task of it can be seen"
    done_ago = now - (query.tasks_changed_at or query.active_since or now)
    if done_ago <= budget:
        return None  # slow, not hung
    if tasks.failed and not tasks.completed:
        return (
            f"{_batch(query)} has run for {_span(age)}: {tasks.failed} tasks failed, none finished"
        )
    tried = f"; {tasks.failed} failed and were tried again" if tasks.failed else ""
    quiet = f"no task finished for {_span(done_ago)}{tried}"
    return f"{_batch(query)} has run for {_span(age)}, and {quiet}"


def _uncommitted(query: Query, now: float, budget: float) -> str | None:
    """Data is there, the loop turns, and still nothing was committed."""
    if query.data_since is None or not query.has_batch:
        return None
    finished = query.tasks_changed_at
    if finished is not None and now - finished <= budget:
        return None
    since = max(query.data_since, query.last.ended_at if query.last else 0.0)
    if now - since <= budget:
        return None
    return f"data is available and nothing was committed for {_span(now - since)}"


def _restarting(query: Query, now: float) -> str | None:
    recent = [start for start in query.starts if now - start <= RESTART_WINDOW_SECONDS]
    if len(recent) < RESTARTS:
        return None
    if query.by_itself_over and not (query.last_end and query.last_end.outcome == "failed"):
        return None
    return f"{len(recent)} starts in {_span(RESTART_WINDOW_SECONDS)}"


def _pace(query: Query, now: float) -> Verdict:
    """The states of a query that does its work."""
    since = query.inflight_since(now)
    if since is not None and _is_at_work(query, now - since):
        return Verdict("running", _slow(query, now, now - since))
    if query.idle_since is not None:
        return Verdict("idle", f"waiting for data for {_span(now - query.idle_since)}")
    if reason := _falling_behind(query.moments):
        return Verdict("falling_behind", reason)
    if reason := _catching_up(query.moments):
        return Verdict("catching_up", reason)
    last = query.last
    if last is not None and since is None and now - last.ended_at > _QUIET_SECONDS:
        return _waiting(query, now)
    if last is not None and _not_advancing(query.moments):
        return Verdict("running", f"batches read nothing while {last.backlog:.0f} rows wait")
    took = f" in {_span(last.seconds)}" if last and last.seconds is not None else ""
    return Verdict("running", f"batch {last.batch_id if last else '?'} done{took}")


def _is_at_work(query: Query, age: float) -> bool:
    """Whether the trigger that runs is worth more words than the last batch: long, or the first after a wait.

    A query that waits for data asks its sources now and then, and is found at that.
    """
    look = query.status
    awake = query.idle_since is not None and look is not None and look.phase == "processing"
    return awake or age > max(_QUIET_SECONDS, query.batch_limit_seconds)


def _waiting(query: Query, now: float) -> Verdict:
    """Between two triggers that are far apart, or between batches of a query that can't be seen."""
    interval, look = query.trigger_seconds, query.status
    was_at_work = look is not None and look.trigger_active  # and it could not be seen since
    if interval and not was_at_work:
        return Verdict("idle", f"waiting for its next trigger, every {_span(interval)}")
    if look is None or was_at_work:
        return Verdict("running", f"last batch {_span(now - query.last_event_at)} ago")
    if look.phase == "waiting_for_trigger" and interval is None:
        return Verdict("idle", "waiting for its next trigger, and how long is not known")
    return Verdict("idle", "waiting for data")


def _slow(query: Query, now: float, age: float) -> str:
    look = query.status
    tasks = look.tasks if look else None
    words = f"{_batch(query)} has run for {_span(age)}"
    if tasks is None:
        return words
    done = f"{tasks.completed} tasks done, {tasks.running} running"
    if tasks.failed:
        done += f", {tasks.failed} failed and tried again"
    if query.tasks_changed_at:
        done += f", the last finished {_span(now - query.tasks_changed_at)} ago"
    return f"{words}: {done}"


def _falling_behind(moments: tuple[Moment, ...]) -> str | None:
    """More than a batch behind, and worse over at least five batches and five minutes."""
    window = _window(moments)
    if not window:
        return None
    backlogs = [m.backlog for m in window if m.backlog is not None]
    if len(backlogs) == len(window):
        first, last = backlogs[0], backlogs[-1]
        behind = last > max(first * _MARGIN, window[-1].rows or 0)
        grew = f"backlog grew from {first:.0f} to {last:.0f} rows"
        return grew if behind and _rises(backlogs) else None
    rates = [(m.input_rate, m.processed_rate) for m in window]
    if all(i is not None and p is not None and i > p * _MARGIN for i, p in rates):
        arriving, processed = rates[-1]
        return f"{arriving:.0f} rows/s arrive, {processed:.0f} rows/s are processed"
    return None


def _catching_up(moments: tuple[Moment, ...]) -> str | None:
    """Behind by more than a batch, and less so with each of the last batches."""
    recent = [m.backlog for m in moments[-TREND_BATCHES:] if m.backlog is not None]
    if len(recent) < 3:
        return None
    first, last = recent[0], recent[-1]
    if last <= (moments[-1].rows or 0) or last * _MARGIN >= first or not _rises(recent[::-1]):
        return None
    return f"backlog fell from {first:.0f} to {last:.0f} rows"


def _rises(values: Sequence[float]) -> bool:
    """Whether later values are higher more often than chance has it, by Mann's and Kendall's test.

    Two ends alone would call every other wobble a trend. Of five values or fewer, all must rise.
    """
    number = len(values)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    by_chance = math.sqrt(number * (number - 1) * (2 * number + 5) / 18)
    return score >= min(_CHANCE * by_chance, number * (number - 1) / 2)


def _not_advancing(moments: tuple[Moment, ...]) -> bool:
    recent = moments[-3:]
    return len(recent) == 3 and all(m.rows == 0 and (m.backlog or 0) > 0 for m in recent)


def _window(moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """The shortest recent history that is long enough to speak of a trend; empty if none is."""
    for first in range(len(moments) - TREND_BATCHES, -1, -1):
        if moments[-1].at - moments[first].at >= TREND_SECONDS:
            return moments[first:]
    return ()


def _batch(query: Query) -> str:
    look = query.status
    if look is not None and look.phase == "offsets":
        return "asking the sources for offsets"
    return f"batch {look.batch_id}" if look and look.batch_id is not None else "the running batch"


def _span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
