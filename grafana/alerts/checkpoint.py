"""Alerts on whether the evidence of what was processed is in order."""

from __future__ import annotations

from .annotations import TIME, WHOLE, ask, ask_label
from .rule import Alert, Group

# A query without a checkpoint location gets a folder of its own at each start, and loses nothing with it.
_LASTING = 'streamgauge_query_info{checkpoint!~".*/temporary-.*"}'
_BEFORE = f"last_over_time({_LASTING}[$reset_memory] offset $reset_window)"
_LATELY = f"last_over_time({_LASTING}[$reset_memory])"
# Equal local paths are one checkpoint only on one host. A run that is scraped twice is one run.
_USED = (
    '(label_replace(streamgauge_query_info{checkpoint=~"file:.*"}, "host", "${1}", "instance", "(.+):.+")'
    ' or streamgauge_query_info{checkpoint!~"|file:.*"})'
    " and on ($Q, instance) streamgauge_query_active == 1"
)

_REPLAYED = (
    "(\n"
    "  sum by ($Q) (increase(streamgauge_batches_replayed_total[$replay_window])) > 0\n"
    # The first start of a new driver: its counter was never seen at 0.
    "  or on ($Q) max by ($Q) (\n"
    "    streamgauge_batches_replayed_total > 0\n"
    "    and on ($Q, instance) streamgauge_query_starts_total == 1\n"
    "    and on ($Q, instance) time() - streamgauge_query_started_timestamp_seconds < $replay_window\n"
    "  )\n"
    ")"
)

CHECKPOINT = Group(
    "checkpoint",
    alerts=(
        Alert(
            "CheckpointReset",
            "critical",
            "(\n"
            "  sum by ($Q) (increase(streamgauge_checkpoint_resets_total[$reset_window])) > 0\n"
            f"  and on ($Q) {_LASTING}\n"
            "  or on ($Q) count by ($Q) (\n"
            f"    count by ($Q, query_id) ({_LASTING})\n"
            f"    unless on ($Q, query_id) count by ($Q, query_id) ({_BEFORE})\n"
            f"    and on ($Q) count by ($Q) (count by ($Q, query_id) ({_LATELY})) > 1\n"
            "  )\n"
            ")",
            None,
            "A query started with an empty checkpoint although it had one before.",
            "{{ $labels.query }} of {{ $labels.app }} has a new query id: its checkpoint was deleted"
            " or its location changed. This run started at"
            f" {ask('query_started_timestamp_seconds', TIME)}.",
            "It began again from its starting offsets: everything is processed twice, or what came"
            " in between is skipped. Its state is empty.",
            "If nobody meant to reset it: stop it now, before more is written.",
            "streamgauge-checkpoint",
            since="query_started_timestamp_seconds",
        ),
        Alert(
            "CheckpointShared",
            "critical",
            "max by ($Q) (streamgauge_checkpoint_shared) == 1\n"
            "or on ($Q) max by ($Q) (\n"
            f"  ({_USED})\n"
            f"  and on (checkpoint, host) count by (checkpoint, host) (group by (checkpoint, host, run_id) ({_USED})) > 1\n"
            ")",
            "shared_for",
            "Two runs write to one checkpoint.",
            "{{ $labels.query }} of {{ $labels.app }} shares its checkpoint"
            f" ({ask_label('query_info', 'checkpoint')}) with another query, or with a second run of itself; the newest run of it"
            f" started at {ask('query_started_timestamp_seconds', TIME)}.",
            "They overwrite each other's offsets and state: rows are lost and duplicated.",
            "Stop the one that should not be there, at once.",
            "streamgauge-checkpoint",
        ),
        Alert(
            "DuplicateRisk",
            "warning",
            f"{_REPLAYED}\nand on ($Q) max by ($Q) (streamgauge_sink_idempotent) == 0",
            None,
            "A batch was run again into a sink that does not remove duplicates.",
            "{{ $labels.query }} of {{ $labels.app }} ran a batch again after a restart, and its sink"
            f" ({ask_label('query_info', 'sink')}) is not idempotent. The last committed batch is"
            f" {ask('last_committed_batch_id', WHOLE)}.",
            "Rows of that batch may be in the output twice.",
            "Compare the output of that batch with its range of offsets; see the runbook.",
            "streamgauge-checkpoint",
        ),
        Alert(
            "DuplicateRisk",
            "warning",
            f"{_REPLAYED}\n"
            "unless on ($Q) max by ($Q) (last_over_time(streamgauge_sink_idempotent[$replay_window]))",
            "replay_for",
            "A batch was run again into a sink of which it is unknown whether it removes duplicates.",
            "{{ $labels.query }} of {{ $labels.app }} ran a batch again after a restart. Whether its sink"
            f" ({ask_label('query_info', 'sink')}) is idempotent is unknown: the agent can't see into user code. The"
            f" last committed batch is {ask('last_committed_batch_id', WHOLE)}.",
            "Rows of that batch are in the output twice if the sink writes them again.",
            "Check whether the sink writes a batch id or merges by key. Then say so in the agent's settings, per"
            " query: `idempotent_sink` true ends this warning, false keeps it.",
            "streamgauge-checkpoint",
            variant="unknown",
        ),
    ),
)
