"""The series of one stateful operator, from the figures of one batch. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from streamgauge.model.events import Operator

from .operators import OPERATOR_METRICS
from .providers import CUMULATIVE, NEVER_MEASURED, PROVIDER_METRICS

_KNOWN = {**PROVIDER_METRICS, **OPERATOR_METRICS}


def gauges_of_operator(operator: Operator, batch_id: int) -> Iterator[tuple[str, float | None]]:
    """Name and value; None: unknown."""
    yield "state_rows", operator.rows
    yield "state_memory_bytes", operator.memory
    yield "state_store_instances", operator.instances
    yield "state_snapshot_lag_versions", _snapshot_lag(operator, batch_id)


def provider_gauges_of_operator(
    operator: Operator,
) -> Iterator[tuple[str, float, tuple[str, ...]]]:
    """Name, value and labels after the operator's, of the figures of operator and state store provider."""
    for spark_name, value in operator.custom.items():
        metric = _KNOWN.get(spark_name)
        if metric is None and spark_name not in NEVER_MEASURED:
            yield "state_custom", value, (spark_name,)
        elif metric is not None and not metric.counter and value >= 0:
            yield metric.name, value * metric.scale, ()


def counters_of_operator(operator: Operator) -> Iterator[tuple[str, float | None]]:
    """Name, and what this batch adds; None: unknown."""
    yield "state_rows_updated_total", operator.updated
    yield "state_rows_removed_total", operator.removed
    yield "state_rows_dropped_by_watermark_total", operator.dropped
    yield "state_commit_seconds_total", operator.commit_seconds
    yield "state_update_seconds_total", operator.update_seconds
    yield "state_removal_seconds_total", operator.removal_seconds
    for spark_name, value in operator.custom.items():
        metric = _KNOWN.get(spark_name)
        if metric and metric.counter and metric.kind != CUMULATIVE and value >= 0:
            yield metric.name, value * metric.scale


def totals_of_operator(operator: Operator) -> Iterator[tuple[str, float]]:
    """Name and value of the counters that Spark itself adds up."""
    for spark_name, value in operator.custom.items():
        metric = _KNOWN.get(spark_name)
        if metric and metric.kind == CUMULATIVE and value >= 0:
            yield metric.name, value * metric.scale


def _snapshot_lag(operator: Operator, batch_id: int) -> float | None:
    """Versions between the newest state and the oldest of the last uploaded snapshots.

    Spark names only the stores that lag most, and -1 for one that has uploaded none since its
    executor started, which says nothing of what is in the checkpoint: unknown.
    """
    oldest = min(operator.snapshot_versions.values(), default=-1)
    return None if oldest < 0 else float(max(0, batch_id + 1 - oldest))
