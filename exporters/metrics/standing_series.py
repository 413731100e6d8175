"""The series of a query that hold until something happens, whatever the time. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from streamgauge.config import QueryConfig
from streamgauge.model.checkpoint_names import look_at_names
from streamgauge.model.query import Query
from streamgauge.model.sinks import find_sink

from .info import failure_of, info_of, sink_of
from .series_key import Key


def standing_of(query: Query, settings: QueryConfig) -> dict[Key, float]:
    """Times, ids, settings, and what the checkpoint's names say; what is not known is absent."""
    committed, sink = query.committed, find_sink(sink_of(query))
    told = sink.idempotent if sink else None
    idempotent = told if settings.idempotent_sink is None else settings.idempotent_sink
    standing: dict[str, float | None] = {
        "query_started_timestamp_seconds": query.started_at,
        "query_ended_timestamp_seconds": query.end.at if query.end else None,
        "last_event_timestamp_seconds": query.last_event_at,
        "last_idle_timestamp_seconds": query.last_idle_at,
        "last_progress_timestamp_seconds": query.last.ended_at if query.last else None,
        "last_commit_timestamp_seconds": committed.ended_at if committed else None,
        "last_committed_batch_id": committed.batch_id if committed else None,
        "trigger_interval_seconds": query.trigger_seconds,
        "watermark_delay_seconds": query.details.watermark_delay if query.details else None,
        "sink_idempotent": None if idempotent is None else float(idempotent),
        "alerting_enabled": float(settings.alerting),
        "query_expected": float(settings.expected),
    }
    found: dict[Key, float] = {
        (name, ()): value for name, value in standing.items() if value is not None
    }
    found["query_info", info_of(query, settings)] = 1.0
    if query.end is not None and query.end.outcome == "failed":
        found["query_failure_info", failure_of(query.end)] = 1.0
    for name, value in settings.thresholds.items():
        found["alert_threshold", (name,)] = value
    return {**found, **dict(_checkpoint_of(query))}


def _checkpoint_of(query: Query) -> Iterator[tuple[Key, float]]:
    """What the names in the checkpoint say, as of the last poll."""
    rules = {"batch-backwards"} if query.backwards else set()
    seen = query.checkpoint
    if seen is not None:
        names = look_at_names(map(str, seen.offsets), map(str, seen.commits))
        rules |= set(names.findings)
        yield ("checkpoint_uncommitted_batches", ()), float(names.uncommitted)
        for name, number in (
            ("checkpoint_last_offset_batch_id", names.last_offset),
            ("checkpoint_last_commit_batch_id", names.last_commit),
            ("checkpoint_last_commit_timestamp_seconds", seen.last_commit_at),
            ("checkpoint_state_bytes", seen.state_bytes),
        ):
            if number is not None:
                yield (name, ()), float(number)
    for rule in rules:
        yield ("checkpoint_findings", (rule,)), 1.0
