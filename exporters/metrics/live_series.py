"""The series of a query that depend on the time: computed for each scrape. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamgauge.model.query import Query
from streamgauge.model.verdict import STATES, Verdict, is_idle

from .rates import rates_of

LiveSeries = tuple[str, float, Mapping[str, str]]  # name, value, labels after app and query

AFTER_END = len(STATES) + 1  # query_state and query_active stay when the query has ended
_NO_LABELS: Mapping[str, str] = {}


def live_of_query(
    query: Query, verdict: Verdict, now: float, shared: frozenset[str]
) -> Iterator[LiveSeries]:
    """The verdict, and ages; `shared` are the checkpoints that more than one live query has."""
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
    yield from _status_of(query, now)


def _status_of(query: Query, now: float) -> Iterator[LiveSeries]:
    """What the last poll of the driver found; an old one says nothing of now."""
    status = query.fresh_status(now)
    if status is None:
        return
    yield "query_trigger_active", float(status.trigger_active), _NO_LABELS
    yield "query_data_available", float(status.data_available), _NO_LABELS
    since = query.inflight_since(now)
    yield "inflight_batch_seconds", max(0.0, now - since) if since else 0.0, _NO_LABELS
    if since is None:
        return
    yield "inflight_batch_started_timestamp_seconds", since, _NO_LABELS
    tasks = status.tasks
    if tasks is not None:
        yield "inflight_tasks", tasks.running, {"state": "running"}
        yield "inflight_tasks", tasks.completed, {"state": "completed"}
        yield "inflight_tasks", tasks.failed, {"state": "failed"}
    if query.tasks_changed_at is not None:
        yield "inflight_last_task_timestamp_seconds", query.tasks_changed_at, _NO_LABELS


def freshness_of(query: Query, now: float, verdict: Verdict) -> float | None:
    """Age of what readers of the output see: 0 when idle, unknown before the first commit.

    A query that had nothing to do had read all there was: after a quiet night a batch is not a night old.
    """
    state = verdict.state
    if state == "idle" or (state in {"starting", "restarting"} and is_idle(query, now)):
        return 0.0
    if query.committed is None:
        return None
    return max(0.0, now - max(query.committed.at, query.last_idle_at or 0.0))
