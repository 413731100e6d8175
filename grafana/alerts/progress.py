"""Alerts on whether it moves: idle is never mistaken for stalled, nor slow for hung."""

from __future__ import annotations

from .annotations import TIME, WHOLE, ask, ask_reason, checkpoint_command
from .rule import Alert, Group

_BUDGET = "query:streamgauge_silence_budget:seconds"
_BLIND = "unless on ($Q) query:streamgauge_unseen:bool"
# Tasks that finish are work; a hung batch finishes none. The verdict knows how long the longest batch ever
# took, and ends that excuse for one that only retries.
_WORKING = (
    "unless on ($Q) (\n"
    f"  query:streamgauge_task_age:seconds <= on ($Q) {_BUDGET}\n"
    '  unless on ($Q) max by ($Q) (streamgauge_query_state{state="stalled"}) == 1\n'
    ")"
)
_INFLIGHT = "max by ($Q) (streamgauge_inflight_batch_seconds)"

PROGRESS = Group(
    "progress",
    alerts=(
        Alert(
            "QueryStalled",
            "critical",
            f"query:streamgauge_silence:seconds > on ($Q) {_BUDGET}\n{_WORKING}\n{_BLIND}",
            "stall_for",
            "A running query has gone silent beyond its budget.",
            "{{ $labels.query }} of {{ $labels.app }} has sent neither progress nor idle events for"
            " {{ $value | humanizeDuration }}; its budget is"
            f" {ask('silence_budget_seconds', 'humanizeDuration')}. Where it hangs: {ask_reason()}. The trigger that runs now has"
            f" taken {ask('inflight_batch_seconds', 'humanizeDuration')}; last commit at"
            f" {ask('last_commit_timestamp_seconds', TIME)}.",
            "Nothing is committed, and the backlog grows.",
            "The agent still reaches the driver: take a thread dump there (Spark UI, Executors); the stack of the"
            f" query's stream thread names what it waits for. Before a restart run {checkpoint_command()}.",
            "streamgauge-query",
            keep="cause_keep",
            since="last_event_timestamp_seconds",
        ),
        Alert(
            "CommitsStalled",
            "critical",
            "(\n"
            f"  query:streamgauge_uncommitted:seconds > on ($Q) {_BUDGET}\n"
            "  and on ($Q) max by ($Q) (streamgauge_query_data_available) == 1\n"
            "  or on ($Q)\n"
            "  (\n"
            f"    query:streamgauge_commit_age:seconds > on ($Q) {_BUDGET}\n"
            "    and on ($Q) min_over_time(query:streamgauge_backlog:rows[$stall_window]) > 0\n"
            "    and on ($Q) query:streamgauge_backlog:rows offset $stall_window > 0\n"
            f"    and on ($Q) {_BUDGET} <= $stall_window\n"
            "  )\n"
            ")\n"
            f"{_WORKING}\n"
            f"{_BLIND}",
            "stall_for",
            "Data is available and the query commits nothing.",
            "{{ $labels.query }} of {{ $labels.app }} has data to process and has committed nothing"
            " for {{ $value | humanizeDuration }} (last commit at"
            f" {ask('last_commit_timestamp_seconds', TIME)}, batch"
            f" {ask('last_committed_batch_id', WHOLE)}; budget"
            f" {ask('silence_budget_seconds', 'humanizeDuration')}).",
            "Output is as old as the last commit and ages by the minute.",
            "See whether a batch runs (hung sink or task) or none does (source gives nothing).",
            "streamgauge-query",
            keep="cause_keep",
            since="last_commit_timestamp_seconds",
        ),
        Alert(
            "BatchStuck",
            "warning",
            f"{_INFLIGHT} > on ($Q) $$stuck_seconds\n"
            f"unless on ($Q) {_INFLIGHT} <= on ($Q) $stuck_ratio * max by ($Q) (max_over_time(streamgauge_batch_duration_max_seconds[$stuck_baseline]))\n"
            "unless on ($Q) query:streamgauge_task_age:seconds <= on ($Q) $$stuck_seconds",
            "stuck_for",
            "The running batch takes far longer than any batch of the last day.",
            "The batch of {{ $labels.query }} ({{ $labels.app }}) has run for"
            " {{ $value | humanizeDuration }} and no task of it finished lately; the longest of the"
            f" last hour took {ask('batch_duration_max_seconds', 'humanizeDuration')}.",
            "The rows of this batch are not in the output, and no event comes before it ends.",
            "Open the running batch's tasks in the Spark UI: none running means the sink hangs.",
            "streamgauge-query",
            since="inflight_batch_started_timestamp_seconds",
        ),
        Alert(
            "SourceNotAdvancing",
            "warning",
            "sum by ($Q, source) (increase(streamgauge_source_input_rows_total[$rate_window])) == 0\n"
            "and on ($Q, source) max by ($Q, source) (min_over_time(streamgauge_source_backlog_rows[$rate_window])) > 0\n"
            "and on ($Q, source) max by ($Q, source) (delta(streamgauge_source_backlog_rows[$rate_window])) >= 0\n"
            "and on ($Q) sum by ($Q) (increase(streamgauge_batches_total[$rate_window])) > 0\n"
            "and on ($Q) query:streamgauge_active:max == 1",
            "source_for",
            "Batches commit, but one source gives no rows although it has a backlog.",
            "Source {{ $labels.source }} of {{ $labels.query }} ({{ $labels.app }}) has a backlog of"
            f" {ask('source_backlog_rows')} rows and gave none for $rate_window, while batches"
            " were committed.",
            "Rows of this source don't arrive, and its retention is running.",
            "Check the source's start and end offsets in the last batches, and at its permissions.",
            "streamgauge-sources",
            looks_back="rate_window",
        ),
    ),
)
