"""The series of one stateful operator, from the figures of one batch. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from streamgauge.model.events import Operator

from .operators import OPERATOR_METRICS
from .providers import CUMULATIVE, NEVER_MEASURED, PROVIDER_METRICS


class Write(Enum):
    """What one value of Spark's is here."""

    ADD = "a figure of the batch"
    TOTAL = "a counter that Spark itself adds up"
    LEVEL = "a level"


# Some sixty figures come with each event of a query on RocksDB: all that can be is looked up once.
_PLANS = {
    spark_name: (
        Write.TOTAL if metric.kind == CUMULATIVE else Write.ADD if metric.counter else Write.LEVEL,
        metric.name,
        metric.scale,
    )
    for spark_name, metric in {**PROVIDER_METRICS, **OPERATOR_METRICS}.items()
}


def gauges_of_operator(operator: Operator, batch_id: int) -> Iterator[tuple[str, float | None]]:
    """Name and value; None: unknown."""
    yield "state_rows", operator.rows
    yield "state_memory_bytes", operator.memory
    yield "state_store_instances", operator.instances
    yield "state_snapshot_lag_versions", _snapshot_lag(operator, batch_id)


def counters_of_operator(operator: Operator) -> Iterator[tuple[str, float | None]]:
    """Name, and what this batch adds; None: unknown."""
    yield "state_rows_updated_total", operator.updated
    yield "state_rows_removed_total", operator.removed
    yield "state_rows_dropped_by_watermark_total", operator.dropped
    yield "state_commit_seconds_total", operator.commit_seconds
    yield "state_update_seconds_total", operator.update_seconds
    yield "state_removal_seconds_total", operator.removal_seconds


def custom_of_operator(
    operator: Operator,
) -> Iterator[tuple[Write, str, float, tuple[str, ...]]]:
    """How to write it, name, value and labels after the operator's: figures of operator and state store provider."""
    for spark_name, value in operator.custom.items():
        plan = _PLANS.get(spark_name)
        if plan is None:
            if spark_name not in NEVER_MEASURED:
                yield Write.LEVEL, "state_custom", value, (spark_name,)
        elif value >= 0:
            write, name, scale = plan
            yield write, name, value * scale, ()


def _snapshot_lag(operator: Operator, batch_id: int) -> float | None:
    """Versions between the newest state and the oldest of the last uploaded snapshots.

    Spark names only the stores that lag most, and -1 for one that has uploaded none since its
    executor started, which says nothing of what is in the checkpoint: unknown.
    """
    oldest = min(operator.snapshot_versions.values(), default=-1)
    return None if oldest < 0 else float(max(0, batch_id + 1 - oldest))
