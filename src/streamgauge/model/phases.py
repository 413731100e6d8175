"""The phases of a batch: Spark's names, ours, and the order in which the engine runs them.

Pure tables. A phase that is not here has no known place in the order.
"""

from __future__ import annotations

WHOLE_TRIGGER = "triggerExecution"  # wraps all phases; it is `Progress.seconds`, not a phase

FROM_SPARK = {  # in engine order
    "latestOffset": "latest_offset",
    "getOffset": "get_offset",
    "walCommit": "wal_commit",
    "getBatch": "get_batch",
    "queryPlanning": "query_planning",
    "addBatch": "add_batch",
    "commitOffsets": "commit_offsets",
}
ENGINE_ORDER = tuple(FROM_SPARK.values())
REAL_TIME_ORDER = (  # real-time mode writes the offset log after the data
    *("latest_offset", "get_offset", "get_batch"),
    *("query_planning", "add_batch", "wal_commit", "commit_offsets"),
)
RUNS_BATCH = "add_batch"
PLANS_BATCH = frozenset({"latest_offset", "get_offset", "wal_commit"})  # a replayed batch has none
