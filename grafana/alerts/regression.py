"""Alerts on being worse than before; silent until there is a day of history to compare with."""

from __future__ import annotations

from .annotations import ask, ask_recorded
from .rule import Alert, Group

_MEAN = "query:streamgauge_batch_duration:mean15m"
_AVG = "query:streamgauge_batch_duration:avg1w"
_COST = "query:streamgauge_row_cost:seconds_per_krow1h"
_RATE = "query:streamgauge_input_rows:rate1h"
_CATCHING_UP = 'unless on ($Q) max by ($Q) (streamgauge_query_state{state="catching_up"}) == 1'

REGRESSION = Group(
    "regression",
    alerts=(
        Alert(
            "BatchDurationRegression",
            "warning",
            f"{_MEAN} > on ($Q) ({_AVG} + on ($Q) $regression_sigma * query:streamgauge_batch_duration:stddev1w)\n"
            f"and on ($Q) {_MEAN} > on ($Q) $regression_ratio * {_AVG}\n"
            f"and on ($Q) {_MEAN} > $regression_seconds\n"
            f"{_CATCHING_UP}",
            "regression_for",
            "Batches take much longer than they used to.",
            "A batch of {{ $labels.query }} ({{ $labels.app }}) takes"
            " {{ $value | humanizeDuration }}; over the last week it was"
            f" {ask_recorded(_AVG, 'humanizeDuration')}.",
            "Results come later; the reserve for peaks is smaller.",
            "If ProcessingCostRegression fires too the code or its surroundings got slower; else the"
            " load rose.",
            "streamgauge-regressions",
        ),
        Alert(
            "ProcessingCostRegression",
            "warning",
            f"{_COST} > on ($Q) $cost_ratio * {_COST} offset $cost_day\n"
            f"and on ($Q) {_COST} > on ($Q) $cost_ratio * {_COST} offset $cost_week\n"
            f"and on ($Q) {_MEAN} > on ($Q) $regression_ratio * {_AVG}\n"
            f"and on ($Q) {_MEAN} > $regression_seconds",
            "cost_for",
            "The same number of rows costs more time than it used to.",
            "A thousand rows of {{ $labels.query }} ({{ $labels.app }}) cost"
            " {{ $value | humanizeDuration }} of batch time: more than $cost_ratio times as much as"
            " at this hour yesterday and a week ago. It is not the load.",
            "The query needs more machines for the same data.",
            "Look for a deployment (code_version on query_info), a changed plan, or a slower sink.",
            "streamgauge-regressions",
        ),
        Alert(
            "ThroughputDrop",
            "warning",
            f"{_RATE} < on ($Q) $throughput_ratio * {_RATE} offset $cost_day\n"
            f"and on ($Q) {_RATE} < on ($Q) $throughput_ratio * {_RATE} offset $cost_week\n"
            "and on ($Q) (\n"
            "  query:streamgauge_busy:ratio15m > $busy_ratio\n"
            "  or on ($Q) query:streamgauge_backlog:rows > on ($Q) $$backlog_rows\n"
            ")\n"
            "and on ($Q) query:streamgauge_active:max == 1",
            "throughput_for",
            "A busy query gets through far fewer rows than it used to.",
            "{{ $labels.query }} of {{ $labels.app }} processes {{ $value | humanize }} rows per second,"
            " less than $throughput_ratio of this hour yesterday and a week ago, although it is busy"
            f" or data waits (backlog {ask('source_backlog_rows')} rows).",
            "Data piles up at the source.",
            "Look for fewer executors, a throttled sink or source, or skew in one partition.",
            "streamgauge-regressions",
        ),
    ),
)
