"""What is wrong with a query, if anything: a pure function of what is known and the time.

The alert rules rest on the same series and the same budget, so that page and verdict agree. Idle is
never mistaken for stalled: silence counts only while something should be happening.
"""

from __future__ import annotations

from msgspec import Struct

from .observations import UnseenCause
from .query import EVENTS_MISSING, End, Moment, Query
from .stall import describe_batch, find_stall
from .thresholds import default_number
from .trend import find_drain, find_growth
from .wording import count, span

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
_QUIET_SECONDS = 30.0


class Verdict(Struct, frozen=True):
    """A state of the contract, the reason in words, and its cause in words that stay while the state lasts."""

    state: str
    reason: str
    cause: str = ""  # "": the reason as it was when the state began


def judge(query: Query, now: float, *, worker_seen_at: float | None = None) -> Verdict:
    """Judge one query at one moment; `worker_seen_at` is the agent's own last sign of life."""
    if query.end:
        return _ended(query)
    if blind := _blind(query, now, worker_seen_at):
        return Verdict("blind", *blind)
    if stall := find_stall(query, now):
        return Verdict("stalled", *stall)
    if loop := _restarting(query, now):
        return Verdict("restarting", *loop)
    if query.continuous:
        return Verdict("running", "continuous mode: Spark reports no batches, only start and end")
    if not query.has_batch and query.last_idle_at is None:
        since = query.started_at or query.first_seen_at
        return Verdict("starting", f"no batch yet, {span(now - since)} after the start")
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
        words = _words(end)
        return Verdict("failed", words, words)
    if end.outcome == "stopped":
        nothing = "; it processed nothing new" if query.did_nothing_new else ""
        return Verdict("stopped", f"{end.why or 'ended without an error'}{nothing}")
    return Verdict("stopped", f"ended, and how is not known: {end.why}", end.why)


def _words(end: End) -> str:
    """Both classes, and what the innermost exception says."""
    cause = f", caused by {end.cause_class}" if end.cause_class else ""
    message = f": {end.message}" if end.message else ""
    return f"{end.error_class or 'unknown error'}{cause}{message}"


def _blind(query: Query, now: float, worker_seen_at: float | None) -> tuple[str, str] | None:
    if worker_seen_at is not None and now - worker_seen_at > BLIND_SECONDS:
        words = "the agent's own worker has been blocked"
        return f"{words} for {span(now - worker_seen_at)}", words
    if query.unseen is not None:
        return query.unseen.why, query.unseen.cause.sentence
    look = query.status
    if look is not None and look.listening is False:
        words = UnseenCause.LISTENER_REMOVED.sentence
        return words, words
    if look is not None and query.ahead_since and now - query.ahead_since > BLIND_SECONDS:
        words = f"the query is at batch {look.batch_id}, and no event came for its last batches"
        return words, EVENTS_MISSING
    if query.recovery is not None:
        since = span(now - query.recovery.since)
        return f"{query.recovery.why}; it is seen again, for {since} now", query.recovery.why
    return None


def _restarting(query: Query, now: float) -> tuple[str, str] | None:
    """Starts after failed or unexplained ends, the last one included; a planned restart is none."""
    recent = [start for start in query.unclean_starts if now - start <= RESTART_WINDOW_SECONDS]
    if len(recent) < RESTARTS:
        return None
    end = query.last_end
    if end is not None and end.clean:
        return None  # somebody stopped the loop, and began anew
    if query.by_itself_over and not (end and end.outcome == "failed"):
        return None
    last = "failed" if end and end.outcome == "failed" else "unexplained"
    error = f" ({end.error_class})" if end and end.error_class else ""
    words = f"starts in {span(RESTART_WINDOW_SECONDS)} after failed or unexplained ends"
    cause = f"it is started again and again; its last end: {last}{error}"
    return f"{len(recent)} {words}; the last one: {last}{error}", cause


def _pace(query: Query, now: float) -> Verdict:
    """The states of a query that does its work."""
    since = query.inflight_since(now)
    if since is not None and _is_at_work(query, now - since):
        return Verdict("running", _slow(query, now, now - since))
    if query.idle_since is not None:
        return Verdict("idle", f"waiting for data for {span(now - query.idle_since)}")
    if growth := find_growth(_window(query.moments), query.last_idle_at):
        return Verdict("falling_behind", *growth)
    if reason := find_drain(query.moments, TREND_BATCHES):
        return Verdict("catching_up", reason)
    last = query.last
    if last is not None and since is None and now - last.ended_at > _QUIET_SECONDS:
        return _waiting(query, now)
    if last is not None and _not_advancing(query.moments):
        return Verdict(
            "running", f"batches read nothing while {count(last.backlog or 0, 'row')} wait"
        )
    took = f" in {span(last.seconds)}" if last and last.seconds is not None else ""
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
        return Verdict("idle", f"waiting for its next trigger, every {span(interval)}")
    if look is None or was_at_work:
        return Verdict("running", f"last batch {span(now - query.last_event_at)} ago")
    if look.phase == "waiting_for_trigger" and interval is None:
        return Verdict("idle", "waiting for its next trigger, and how long is not known")
    return Verdict("idle", "waiting for data")


def _slow(query: Query, now: float, age: float) -> str:
    look = query.status
    tasks = look.tasks if look else None
    words = f"{describe_batch(query)} has run for {span(age)}"
    if tasks is None:
        return words
    done = f"{count(tasks.completed, 'task')} done, {tasks.running} running"
    if tasks.failed:
        done += f", {tasks.failed} failed and tried again"
    if query.tasks_changed_at:
        done += f", the last finished {span(now - query.tasks_changed_at)} ago"
    return f"{words}: {done}"


def _not_advancing(moments: tuple[Moment, ...]) -> bool:
    recent = moments[-3:]
    return len(recent) == 3 and all(m.rows == 0 and (m.backlog or 0) > 0 for m in recent)


def _window(moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """The shortest recent history that is long enough to speak of a trend; empty if none is."""
    for first in range(len(moments) - TREND_BATCHES, -1, -1):
        if moments[-1].at - moments[first].at >= TREND_SECONDS:
            return moments[first:]
    return ()
