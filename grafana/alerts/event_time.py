"""Alerts on whether event time moves as it should."""

from __future__ import annotations

from .annotations import TIME, ask, ask_still_sources
from .rule import Alert, Group

_WATERMARK = "max by ($Q) (streamgauge_watermark_timestamp_seconds)"
_ROWS_FLOW = (
    "and on ($Q) min_over_time(query:streamgauge_input_rows:rate5m[$watermark_window]) > 0\n"
    "and on ($Q) query:streamgauge_input_rows:rate5m offset $watermark_window > 0"
)
_DROPPED = "streamgauge_state_rows_dropped_by_watermark_total[$rate_window]"

EVENT_TIME = Group(
    "event-time",
    alerts=(
        Alert(
            "WatermarkStuck",
            "warning",
            "(\n"
            f"  time() - {_WATERMARK}\n"
            "  and on ($Q) max by ($Q) (changes(streamgauge_watermark_timestamp_seconds[$watermark_window])) == 0\n"
            "  or on ($Q)\n"
            "  (\n"
            "    query:streamgauge_run_age:seconds > $watermark_window\n"
            "    and on ($Q) max by ($Q) (streamgauge_event_time_max_timestamp_seconds)\n"
            f"    unless on ($Q) {_WATERMARK}\n"
            "  )\n"
            ")\n"
            f"{_ROWS_FLOW}",
            "watermark_for",
            "Rows come in and the watermark does not move.",
            "The watermark of {{ $labels.query }} ({{ $labels.app }}) stands at"
            f" {ask('watermark_timestamp_seconds', TIME)} while rows come in; the"
            f" newest event is of {ask('event_time_max_timestamp_seconds', TIME)}. Source that gave no row"
            f" for $watermark_window: {ask_still_sources()}.",
            "Windows don't close, results are not emitted, and the state is not evicted.",
            "Check the source that is named: the slowest one decides the watermark. If it is unknown, every source"
            " gives rows: compare the event times of their partitions.",
            "streamgauge-state",
            looks_back="watermark_window",
        ),
        Alert(
            "FutureEventTime",
            "warning",
            f"{_WATERMARK} - time() > on ($Q) $$future_seconds\n"
            "or on ($Q) max by ($Q) (max_over_time(streamgauge_event_time_max_timestamp_seconds[$rate_window])) - time() > on ($Q) $$future_seconds",
            None,
            "An event from the future was read.",
            "{{ $labels.query }} of {{ $labels.app }} read an event that is"
            " {{ $value | humanizeDuration }} ahead of the clock; its watermark is at"
            f" {ask('watermark_timestamp_seconds', TIME)}.",
            "Once the watermark follows it, everything that is on time is dropped as late.",
            "Find the producer; filter such events before withWatermark.",
            "streamgauge-state",
        ),
        Alert(
            "LateRowsDropped",
            "warning",
            f"sum by ($Q) (rate({_DROPPED}))\n"
            "/ on ($Q) (sum by ($Q) (rate(streamgauge_input_rows_total[$rate_window])) > 0)\n"
            "> on ($Q) $$late_ratio",
            "late_for",
            "Rows are dropped because their event time is before the watermark.",
            "{{ $labels.query }} of {{ $labels.app }} drops {{ $value | humanizePercentage }} of"
            " its input: their event time is before the watermark, which is at"
            f" {ask('watermark_timestamp_seconds', TIME)}. Spark counts after partial aggregation: the true share"
            " may be higher.",
            "These rows are missing from the results, and nothing will bring them back.",
            "Compare the oldest event time with the watermark: lengthen the delay or fix the source.",
            "streamgauge-state",
        ),
        Alert(
            "AllRowsLate",
            "critical",
            f"round(sum by ($Q, operator) (increase({_DROPPED}))) > 0\n"
            f"and on ($Q, operator) max by ($Q, operator) (changes({_DROPPED})) >= $all_late_batches\n"
            "and on ($Q, operator) sum by ($Q, operator) (increase(streamgauge_state_rows_updated_total[$rate_window])) == 0",
            "all_late_for",
            "Every row is dropped, since its event time is before the watermark: nothing reaches the state.",
            "{{ $labels.operator }} of {{ $labels.query }} ({{ $labels.app }}) dropped"
            " {{ $value | humanize }} rows within $rate_window and took in none; its watermark is at"
            f" {ask('watermark_timestamp_seconds', TIME)}.",
            "All data is being lost while the query looks healthy.",
            "Stop the query, so that the rows stay in the source; then see whether one event from the"
            " future moved the watermark.",
            "streamgauge-state",
        ),
    ),
)
