"""The series of a query that depend on the time: computed for each scrape. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from streamgauge.model.query import Query
from streamgauge.model.verdict import STATES, Verdict, is_idle

from .rates import rates_of


class Times(NamedTuple):
    """The steady clock at a scrape, and what brings its times to the wall clock."""

    now: float
    offset: float


LiveSeries = tuple[str, float, Mapping[str, str]]  # name, value, labels after app and query

AFTER_END = len(STATES) + 2  # query_state, query_active and query_reason_info stay after the end
_NO_LABELS: Mapping[str, str] = {}


def live_of_query(
    query: Query, verdict: Verdict, times: Times, shared: frozenset[str]
) -> Iterator[LiveSeries]:
    """The verdict, and ages; `shared` are the checkpoints that more than one live query has."""
    now = times.now
    for state in STATES:
        yield "query_state", float(verdict.state == state), {"state": state}
    yield "query_active", float(query.live), _NO_LABELS
    if not query.live:
        return
    yield "silence_budget_seconds", query.silence_budget, _NO_LABELS
    if query.details and query.details.checkpoint:
        yield "checkpoint_shared", float(query.details.checkpoint in shared), _NO_LABELS
    if (longest := query.longest_batch(now)) is not None:
        yield "batch_duration_max_seconds", longest, _NO_LABELS
    if (freshness := freshness_of(query, now, verdict)) is not None:
        yield "freshness_lag_seconds", freshness, _NO_LABELS
    rates = rates_of(query, verdict, now)
    for name, rate in (
        ("input_rows_per_second", rates.input),
        ("processed_rows_per_second", rates.processed),
    ):
        if rate is not None:
            yield name, rate, _NO_LABELS
    yield from _ages_of(query, now)
    yield from _status_of(query, times)


def _ages_of(query: Query, now: float) -> Iterator[LiveSeries]:
    """How long ago the signs of life of a run were; one without batches gives none."""
    if query.continuous:
        return
    began = query.first_seen_at if query.started_at is None else query.started_at
    committed = max(began, query.committed.ended_at if query.committed else began)
    for name, since in (
        ("query_silence_seconds", query.last_event_at),
        ("query_uncommitted_seconds", max(committed, query.last_idle_at or began)),
        ("query_commit_age_seconds", committed),
    ):
        yield name, max(0.0, now - since), _NO_LABELS


def _status_of(query: Query, times: Times) -> Iterator[LiveSeries]:
    """What the last poll of the driver found; an old one says nothing of now."""
    now, offset = times
    status = query.fresh_status(now)
    if status is None:
        return
    yield "query_trigger_active", float(status.trigger_active), _NO_LABELS
    yield "query_data_available", float(status.data_available), _NO_LABELS
    since = query.inflight_since(now)
    yield "inflight_batch_seconds", max(0.0, now - since) if since else 0.0, _NO_LABELS
    if since is None:
        return
    yield "inflight_batch_started_timestamp_seconds", since + offset, _NO_LABELS
    tasks = status.tasks
    if tasks is not None:
        yield "inflight_tasks", tasks.running, {"state": "running"}
        yield "inflight_tasks", tasks.completed, {"state": "completed"}
        yield "inflight_tasks", tasks.failed, {"state": "failed"}
    if query.tasks_changed_at is not None:
        finished = query.tasks_changed_at
        yield "inflight_last_task_timestamp_seconds", finished + offset, _NO_LABELS
        yield "inflight_task_age_seconds", max(0.0, now - finished), _NO_LABELS


def freshness_of(query: Query, now: float, verdict: Verdict) -> float | None:
    """Age of what readers of the output see: 0 when idle, unknown before the first commit and while blind.

    A query that had nothing to do had read all there was: after a quiet night a batch is not a night old.
    """
    state = verdict.state
    if state == "blind":
        return None  # nothing is known of what was not seen
    if state == "idle" or (state in {"starting", "restarting"} and is_idle(query, now)):
        return 0.0
    if query.committed is None:
        return None
    return max(0.0, now - max(query.committed.at, query.last_idle_at or 0.0))
