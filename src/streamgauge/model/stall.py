"""Whether a query is stalled, and where: silent, hung or turning in circles while something should happen.

Pure. Idle is never mistaken for stalled, nor slow for hung.
"""

from __future__ import annotations

from .observations import Tasks
from .query import Query
from .wording import count, span

# A batch whose tasks finish is work, unless it repeats itself: then its age against the longest batch decides.
RETRY_SECONDS = 600.0  # a younger batch is no retry loop
REPEAT_SECONDS = 3600.0  # the same where nothing fails, and only the number of jobs tells
_RETRY_RATIO, _REPEAT_RATIO = 3.0, 10.0  # times the longest batch ever
_FAILED_JOBS = 2  # a batch that goes on after so many failed jobs has somebody who tries again
_REPEATED_JOBS = 10

Stall = tuple[str, str]  # in words with ages and counts, and in words that don't change


def find_stall(query: Query, now: float) -> Stall | None:
    """Silent beyond its budget while something should happen and no task finishes; None: all is well."""
    if query.continuous:
        return None
    budget = query.silence_budget
    look = query.fresh_status(now)
    quiet = now - query.last_event_at
    silent = f"no event for {span(quiet)}, allowed are {span(budget)}"
    if look is None:
        return (silent, "no event comes, and the query can't be polled") if quiet > budget else None
    if look.trigger_active and query.active_since is not None:
        return _find_hang(query, now, budget)
    if look.phase != "waiting_for_data" and quiet > budget:
        return silent, "no event comes, and no trigger runs"
    return _find_uncommitted(query, now, budget)


def describe_batch(query: Query) -> str:
    """What runs, by the last poll."""
    look = query.status
    if look is not None and look.phase == "offsets":
        return "asking the sources for offsets"
    return f"batch {look.batch_id}" if look and look.batch_id is not None else "the running batch"


def _find_hang(query: Query, now: float, budget: float) -> Stall | None:
    """The trigger that runs has run too long, and none of its tasks has finished for as long."""
    age = now - max(query.active_since or now, query.started_at or 0.0)
    if age <= budget:
        return _find_uncommitted(query, now, budget)
    look, batch = query.status, describe_batch(query)
    tasks = look.tasks if look else None
    cause = f"{batch}{_place(query, tasks)}"
    if tasks is None:
        return f"{batch} has run for {span(age)}, and no task of it can be seen", cause
    done_ago = now - (query.tasks_changed_at or query.active_since or now)
    if done_ago <= budget:
        return _find_loop(query, tasks, age)  # slow, not hung
    if tasks.failed and not tasks.completed:
        failed = f"{count(tasks.failed, 'task')} failed, none finished"
        return f"{batch} has run for {span(age)}: {failed}", f"{batch}: its tasks fail"
    tried = f"; {tasks.failed} failed and were tried again" if tasks.failed else ""
    quiet = f"no task finished for {span(done_ago)}{tried}"
    return f"{batch} has run for {span(age)}, and {quiet}", cause


def _place(query: Query, tasks: Tasks | None) -> str:
    """Where in the batch it hangs, as far as its jobs tell."""
    if query.status is not None and query.status.phase == "offsets":
        return ": a source does not answer"
    if tasks is None:
        return ": its tasks can't be seen"
    if tasks.running:
        return " in addBatch: tasks run, none finishes"
    return " in addBatch (sink): no task running"


def _find_loop(query: Query, tasks: Tasks, age: float) -> Stall | None:
    """A batch in which tasks finish, and which repeats itself instead of ending.

    A large batch and a backfill are none: their tasks belong to a few jobs, which don't fail.
    """
    batch, longest = describe_batch(query), query.longest_ever
    if tasks.failed_jobs >= _FAILED_JOBS:
        if age <= max(RETRY_SECONDS, _RETRY_RATIO * longest):
            return None
        again = f"{count(tasks.failed_jobs, 'job')} of it failed, and it goes on"
        return _overlong(batch, age, longest, again), f"{batch}: its jobs fail and are run again"
    repeats = tasks.jobs >= _REPEATED_JOBS and age / tasks.jobs <= longest
    if not repeats or age <= max(REPEAT_SECONDS, _REPEAT_RATIO * longest):
        return None
    again = f"it has begun {count(tasks.jobs, 'job')}, and does not end"
    return _overlong(batch, age, longest, again), f"{batch}: it runs the same jobs again and again"


def _overlong(batch: str, age: float, longest: float, words: str) -> str:
    so_far = f" (the longest so far took {span(longest)})" if longest else ""
    return f"{batch} has run for {span(age)}{so_far}: {words}"


def _find_uncommitted(query: Query, now: float, budget: float) -> Stall | None:
    """Data is there, the loop turns, and still nothing was committed."""
    if query.data_since is None or not query.has_batch:
        return None
    finished = query.tasks_changed_at
    if finished is not None and now - finished <= budget:
        return None
    since = max(query.data_since, query.last.ended_at if query.last else 0.0)
    if now - since <= budget:
        return None
    words = "data is available and nothing was committed"
    return f"{words} for {span(now - since)}", words
