"""The metrics of stateful operators themselves: their names here, their units, and what a value means.

In Spark's source each is a `StatefulOperatorCustomSumMetric`, a sum over the tasks of one batch. Most count
what happened in the batch and are added up here. The numbers of state variables count, in each batch
again, every variable that each task has: added up they would mean nothing, so they are shown as they are.
"""

from __future__ import annotations

from .providers import BATCH, LEVEL, ProviderMetric


def _of(spark: str, name: str, words: str, kind: str = BATCH) -> ProviderMetric:
    return ProviderMetric(spark, name, kind, 0.001 if "_seconds" in name else 1.0, words)


def _variables(spark: str, kind: str, words: str) -> ProviderMetric:
    return _of(spark, f"state_{kind}_variables", f"{words}, once per task (Spark 4.0+).", LEVEL)


_TABLE = (
    _of("numDroppedDuplicateRows", "state_duplicate_rows_dropped_total", "Rows that deduplication dropped."),
    _of("numRowsReadDuringEviction", "state_eviction_rows_read_total", "State rows that eviction read (Spark 4.3+)."),
    _of("numRowsIncrementallyRemoved", "state_rows_removed_incrementally_total", "State rows that incremental eviction removed (Spark 4.3+)."),
    _of("skippedNullValueCount", "state_null_values_skipped_total", "Null values that a stream-stream join skipped in its state; only with skipNullsForStreamStreamJoins."),
    _of("numRegisteredTimers", "state_timers_registered_total", "Timers that transformWithState registered (Spark 4.0+)."),
    _of("numDeletedTimers", "state_timers_deleted_total", "Timers that transformWithState deleted (Spark 4.0+)."),
    _of("numExpiredTimers", "state_timers_expired_total", "Timers of transformWithState that expired (Spark 4.0+)."),
    _of("numValuesRemovedDueToTTLExpiry", "state_ttl_values_removed_total", "State values removed at the end of their time to live (Spark 4.0+)."),
    _of("numDeletedStateVars", "state_variables_deleted_total", "State variables deleted, once per task (Spark 4.0+)."),
    _of("initialStateProcessingTimeMs", "state_initial_state_seconds_total", "Time in processing the initial state, summed over tasks (Spark 4.1+)."),
    _of("timerProcessingTimeMs", "state_timer_seconds_total", "Time in processing timers, summed over tasks (Spark 4.1+)."),
    _variables("numValueStateVars", "value", "Value state variables"),
    _variables("numListStateVars", "list", "List state variables"),
    _variables("numMapStateVars", "map", "Map state variables"),
    _variables("numValueStateWithTTLVars", "value_ttl", "Value state variables with a time to live"),
    _variables("numListStateWithTTLVars", "list_ttl", "List state variables with a time to live"),
    _variables("numMapStateWithTTLVars", "map_ttl", "Map state variables with a time to live"),
)  # fmt: skip

OPERATOR_METRICS = {metric.spark: metric for metric in _TABLE}
