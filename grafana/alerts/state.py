"""Alerts on whether the state stays within bounds; commit times are sums, compared per store."""

from __future__ import annotations

from .annotations import ask
from .rule import Alert, Group, Recording

_ROWS = "query_operator:streamgauge_state_rows:max"
_UPDATED = "query_operator:streamgauge_state_updated:rate15m"
_MOVING = "and on ($Q) sum by ($Q) (increase(streamgauge_batches_total[$rate_window])) > 0"

STATE = Group(
    "state",
    recordings=(
        Recording(
            _ROWS,
            "max by ($Q, operator) (streamgauge_state_rows)",
            "rows of state of an operator, whichever driver serves it",
        ),
        Recording(
            _UPDATED,
            "sum by ($Q, operator) (rate(streamgauge_state_rows_updated_total[$rate_window]))",
            "rows per second that are added to or changed in the state of an operator",
        ),
        Recording(
            "query_operator:streamgauge_state_commit:seconds_per_store",
            "sum by ($Q, operator) (increase(streamgauge_state_commit_seconds_total[$rate_window]))\n"
            "/ on ($Q) group_left () (sum by ($Q) (increase(streamgauge_batches_total[$rate_window])) > 0)\n"
            "/ on ($Q, operator) (max by ($Q, operator) (streamgauge_state_store_instances) > 0)",
            "time one store takes to commit one batch",
        ),
    ),
    alerts=(
        Alert(
            "StateBloat",
            "warning",
            f"{_ROWS} > on ($Q) group_left () $$state_rows\n"
            f"and predict_linear({_ROWS}[$growth_window], $growth_horizon) > $growth_ratio * {_ROWS}\n"
            f"and {_ROWS} > {_ROWS} offset $growth_window\n"
            f"unless {_ROWS} <= max_over_time({_ROWS}[$growth_history] offset $growth_window)\n"
            # What a watermark keeps for its delay is no growth: at this pace, so many rows are due.
            f"unless {_ROWS} <= on ($Q, operator) (\n"
            f"  avg_over_time({_UPDATED}[$growth_window:$burn_coarse_step])\n"
            "  * on ($Q) group_left () (max by ($Q) (streamgauge_watermark_delay_seconds) + $growth_window)\n"
            ")",
            "growth_for",
            "A state grows and does not stop.",
            "The state of {{ $labels.operator }} of {{ $labels.query }} ({{ $labels.app }}) has"
            " {{ $value | humanize }} rows, more than ever in the last day, and at this pace more"
            " than doubles within $growth_horizon.",
            "Batches and snapshots get slower, and in the end executors run out of memory or disk.",
            "See whether rows are evicted at all: no watermark, or one that stands, evicts nothing.",
            "streamgauge-state",
            variant="prediction",
        ),
        Alert(
            "StateBloat",
            "critical",
            "sum by ($Q, operator) (streamgauge_state_memory_bytes) > on ($Q) group_left () $$state_limit_bytes\n"
            "or on ($Q, operator) sum by ($Q, operator) (streamgauge_state_rocksdb_sst_file_bytes) > on ($Q) group_left () $$state_disk_bytes",
            "state_limit_for",
            "A state is larger than it may be.",
            "The state of {{ $labels.operator }} of {{ $labels.query }} ({{ $labels.app }}) takes"
            " {{ $value | humanize1024 }}B; it has"
            f" {ask('state_rows')} rows.",
            "Executors are about to run out of memory or disk; a restart has to load all of this.",
            "Add executors, memory or disk now; find out what keeps the rows alive after that.",
            "streamgauge-state",
            variant="size",
        ),
        Alert(
            "StateNotEvicting",
            "warning",
            f"{_ROWS} > on ($Q) group_left () $$evict_rows\n"
            "and on ($Q, operator) sum by ($Q, operator) (increase(streamgauge_state_rows_removed_total[$evict_window])) == 0\n"
            f"and {_ROWS} > {_ROWS} offset $evict_window\n"
            "and on ($Q) max by ($Q) (changes(streamgauge_watermark_timestamp_seconds[$evict_window])) > 0\n"
            f"{_MOVING}",
            "evict_for",
            "The watermark moves and the state evicts nothing.",
            "{{ $labels.operator }} of {{ $labels.query }} ({{ $labels.app }}) has"
            " {{ $value | humanize }} rows and removed none for $evict_window, although the"
            " watermark moved.",
            "The state grows for ever.",
            "See whether the key or the join condition carries the event-time column.",
            "streamgauge-state",
            looks_back="evict_window",
        ),
        Alert(
            "StateCommitSlow",
            "warning",
            "query_operator:streamgauge_state_commit:seconds_per_store > on ($Q) group_left () $$commit_seconds",
            "commit_for",
            "Committing the state takes long.",
            "One store of {{ $labels.operator }} of {{ $labels.query }} ({{ $labels.app }}) takes"
            " {{ $value | humanizeDuration }} to commit one batch.",
            "Every batch waits for it.",
            "Look at the file system of the checkpoint and at RocksDB's flush and compaction times.",
            "streamgauge-state",
        ),
        Alert(
            "SnapshotLag",
            "warning",
            "max by ($Q, operator) (min_over_time(streamgauge_state_snapshot_lag_versions[$rate_window])) > on ($Q) group_left () $$snapshot_lag\n"
            f"{_MOVING}",
            "snapshot_for",
            "Snapshots of the state lag behind.",
            "The newest snapshot of {{ $labels.operator }} of {{ $labels.query }}"
            " ({{ $labels.app }}) is {{ $value | humanize }} versions old.",
            "A restart or a lost executor has to replay all these versions first.",
            "Look for maintenance errors in the executors' logs; don't restart before it caught up.",
            "streamgauge-state",
            looks_back="rate_window",
        ),
    ),
)
