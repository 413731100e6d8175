"""Alerts on whether a query keeps up."""

from __future__ import annotations

from .annotations import ask, ask_backlog, ask_recorded
from .rule import Alert, Group

_BACKLOG = "query:streamgauge_backlog:rows"
_HEADROOM = "min by ($Q, source) (streamgauge_source_retention_headroom_seconds)"
_LAG = "max by ($Q, source) (streamgauge_source_lag_seconds)"
_TRIGGER = "max by ($Q) (streamgauge_trigger_interval_seconds)"


def _grows(unit: str) -> str:
    """A backlog of which no rate is known: it grows, and no batch of the window brings it down."""
    backlog = f"query:streamgauge_backlog:{unit}"
    return (
        "    or on ($Q)\n"
        "    (\n"
        f"      deriv({backlog}[$trend_window]) > 0\n"
        f"      and on ($Q) min_over_time({backlog}[$trend_window]) > on ($Q) $$backlog_{unit}\n"
        "      and on ($Q) sum by ($Q) (increase(streamgauge_batches_total[$trend_window])) >= 2\n"
        "    )\n"
    )


LAG = Group(
    "lag",
    alerts=(
        Alert(
            "FallingBehind",
            "warning",
            "(\n"
            "  (\n"
            f"    deriv({_BACKLOG}[$trend_window]) > 0\n"
            f"    and on ($Q) {_BACKLOG} > on ($Q) $$backlog_rows\n"
            f"    and on ($Q) {_BACKLOG} / on ($Q) clamp_min(sum by ($Q) (rate(streamgauge_input_rows_total[$trend_window])), 1) > $drain_seconds\n"
            + "".join(_grows(unit) for unit in ("files", "bytes", "versions"))
            # Between two triggers that far apart every backlog grows.
            + "  )\n"
            f"  unless on ($Q) {_TRIGGER} >= $trend_window\n"
            "  or on ($Q)\n"
            "  (\n"
            '    max by ($Q) (avg_over_time(streamgauge_query_state{state="falling_behind"}[$trend_window])) > 0.5\n'
            f"    unless on ($Q) ({_BACKLOG} unless on ($Q) {_TRIGGER} >= $trend_window)\n"
            "  )\n"
            ")\n"
            "and on ($Q) query:streamgauge_active:max == 1",
            "trend_for",
            "A query processes less than arrives.",
            f"{{{{ $labels.query }}}} of {{{{ $labels.app }}}} falls behind: backlog {ask_backlog()};"
            f" {ask('input_rows_per_second')} rows per second arrive,"
            f" {ask('processed_rows_per_second')} are processed.",
            "Output gets older, and the source's retention comes nearer.",
            "See which phase of the batch takes the time, and whether the load or the cost rose.",
            "streamgauge-sources",
            keep="trend_keep",
        ),
        Alert(
            "BatchOverrun",
            "warning",
            "query:streamgauge_batch_duration:mean15m\n"
            f"> on ($Q) ({_TRIGGER} > 0)\n"
            "and on ($Q) query:streamgauge_busy:ratio15m > $overrun_busy_ratio\n"
            "and on ($Q) query:streamgauge_active:max == 1",
            "overrun_for",
            "Batches take longer than their trigger interval.",
            "A batch of {{ $labels.query }} ({{ $labels.app }}) takes"
            " {{ $value | humanizeDuration }} on average; its trigger comes every"
            f" {ask('trigger_interval_seconds', 'humanizeDuration')}. It spends"
            f" {ask_recorded('query:streamgauge_busy:ratio15m', 'humanizePercentage')} of its time in batches.",
            "The query has no reserve: any more load makes it fall behind.",
            "Find the phase that grew; lengthen the interval if the latency allows it.",
            "streamgauge-query",
        ),
        Alert(
            "RetentionRisk",
            "critical",
            f"{_HEADROOM}\n"
            f"<= on ($Q, source) $retention_share * ({_HEADROOM} + on ($Q, source) {_LAG})\n"
            f"or on ($Q, source) ({_HEADROOM} < on ($Q) group_left () $$retention_seconds unless on ($Q, source) {_LAG})",
            "retention_for",
            "A source will delete rows before the query has read them.",
            "The oldest unread row of {{ $labels.source }} of {{ $labels.query }}"
            " ({{ $labels.app }}) is deleted in {{ $value | humanizeDuration }}.",
            "Rows that were never read are lost for good.",
            "Raise the source's retention first; speed the query up after that.",
            "streamgauge-sources",
        ),
    ),
)
