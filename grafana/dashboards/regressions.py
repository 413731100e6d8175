"""Regressions: is a query slower than it was, and is it the code or the load."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, PURPLE, TEXT, limit
from .links import QUERY_ROW
from .promql import OF_APP, ON, largest, parameter, recorded, series, window

_MEAN = "query:streamgauge_batch_duration:mean15m"
_AVG = "query:streamgauge_batch_duration:avg1w"
_SIGMA = "query:streamgauge_batch_duration:stddev1w"
_COST = "query:streamgauge_row_cost:seconds_per_krow1h"
_RATE = "query:streamgauge_input_rows:rate1h"
_DAY, _WEEK, _HOUR = window("cost_day"), window("cost_week"), window("cost_window")
_HISTORY = "there is a week of history"
_NONE = "No batch with data yet; a day and a week ago fill in as history grows."
_THEN = (
    Override("^now$", (("color", BLUE), ("custom.lineWidth", 2))),
    Override("^a day ago$", (("color", GREEN), ("custom.fillOpacity", 0))),
    Override("^a week ago$", (("color", PURPLE), ("custom.fillOpacity", 0))),
    limit("^warns (above|below)$"),
)
_USUAL = Override("^usual$", (("color", GREY), ("custom.fillOpacity", 0)))


def _then(name: str) -> tuple[Target, ...]:
    return (
        Target(recorded(name), "now"),
        Target(f"{recorded(name)} offset {_DAY}", "a day ago"),
        Target(f"{recorded(name)} offset {_WEEK}", "a week ago"),
    )


def _of_app(name: str, ago: str = "") -> str:
    return largest(recorded(name, chosen=OF_APP) + (f" offset {ago}" if ago else ""))


def _against(name: str, ago: str) -> Target:
    return Target(f"{_of_app(name)} / {ON} {_of_app(name, ago)} - 1", instant=True)


# The cost times the rows of the same hour. A batch counts whole when it ends, so it may exceed the hour.
_BUSY = f"clamp_max({_of_app(_COST)} * {ON} {_of_app(_RATE)} / 1000, 1)"


def _phase(ago: str = "") -> str:
    back = f" offset {ago}" if ago else ""
    spent = f"increase({series('phase_duration_seconds_total')}[{_HOUR}]{back})"
    batches = f"increase({series('batches_total')}[{_HOUR}]{back})"
    return f"sum by (phase) ({spent})\n/ on () group_left () sum({batches} > 0)"


_CHANGE = (
    ("unit", "percentunit"),
    ("decimals", 0),
    ("thresholds", ((None, TEXT), (parameter("cost_ratio") - 1, ORANGE))),
    ("cell", "color-text"),
)

REGRESSIONS = Board(
    "regressions",
    "Regressions",
    "Now against a day and a week ago: batch time, cost of a thousand rows, throughput.",
    (
        Row(
            "Every query of the application",
            (
                Panel(
                    "Cost of 1,000 rows, the most expensive change first",
                    "table",
                    "short",
                    "Bad is a cost that rose against both yesterday and last week: the code or its"
                    " surroundings got slower. A longer batch at the same cost is more load. Busy is the share"
                    f" of the last {_HOUR} that went into batches; one that took longer reads 100 %.",
                    "No query has read rows for an hour, or the rules are not loaded.",
                    (
                        _against(_COST, _WEEK),
                        _against(_COST, _DAY),
                        Target(_of_app(_COST), instant=True),
                        Target(_of_app(_MEAN), instant=True),
                        Target(f"{_of_app(_MEAN)} / {ON} {_of_app(_AVG)} - 1", instant=True),
                        Target(_of_app(_RATE), instant=True),
                        _against(_RATE, _WEEK),
                        Target(_BUSY, instant=True),
                    ),
                    alerts=(
                        "ProcessingCostRegression",
                        "BatchDurationRegression",
                        "ThroughputDrop",
                    ),
                    width=24,
                    height=9,
                    columns=(
                        *("Job", "Application", "Query", "Cost vs. last week"),
                        *("Cost vs. yesterday", "Cost of 1,000 rows", "Mean batch"),
                        *("Batch vs. its week", "Rows/s", "Rows/s vs. last week", "Busy"),
                    ),
                    sort=("Cost vs. last week",),
                    overrides=(
                        Override("^Query$", (("links", (QUERY_ROW,)), ("custom.minWidth", 130))),
                        Override("^Application$", (("custom.minWidth", 95),)),
                        Override("^(Cost|Batch) vs. .*$", _CHANGE),
                        Override(
                            "^Rows/s vs. last week$", (("unit", "percentunit"), ("decimals", 0))
                        ),
                        Override("^(Cost of 1,000 rows|Mean batch)$", (("unit", "s"),)),
                        Override("^Busy$", (("unit", "percentunit"), ("decimals", 0))),
                    ),
                ),
            ),
        ),
        Row(
            "One query",
            (
                Panel(
                    "Batch time",
                    "timeseries",
                    "s",
                    "Mean of batches with data. Bad is above the dashed line, which is three deviations"
                    " over the usual and half as much again.",
                    _NONE,
                    (
                        *_then(_MEAN),
                        Target(recorded(_AVG), "usual"),
                        Target(
                            f"({recorded(_AVG)} + {ON} {parameter('regression_sigma'):g} * {recorded(_SIGMA)})"
                            f" > {ON} {parameter('regression_ratio'):g} * {recorded(_AVG)}\n"
                            f"or {ON} {parameter('regression_ratio'):g} * {recorded(_AVG)}",
                            "warns above",
                        ),
                    ),
                    alerts=("BatchDurationRegression",),
                    condition=_HISTORY,
                    height=9,
                    overrides=(*_THEN, _USUAL),
                ),
                Panel(
                    "Cost of 1,000 rows",
                    "timeseries",
                    "s",
                    "Batch time for a thousand rows, whatever the load. Bad is above the dashed line.",
                    _NONE,
                    (
                        *_then(_COST),
                        Target(
                            f"{parameter('cost_ratio'):g} * {recorded(_COST)} offset {_WEEK}",
                            "warns above",
                        ),
                    ),
                    alerts=("ProcessingCostRegression",),
                    condition=_HISTORY,
                    height=9,
                    overrides=_THEN,
                ),
                Panel(
                    "Rows per second",
                    "timeseries",
                    "short",
                    "Bad is below the dashed line while the query is busy or data waits.",
                    _NONE,
                    (
                        *_then(_RATE),
                        Target(
                            f"{parameter('throughput_ratio'):g} * {recorded(_RATE)} offset {_WEEK}",
                            "warns below",
                        ),
                    ),
                    alerts=("ThroughputDrop",),
                    condition=_HISTORY,
                    height=9,
                    axis="rows/s",
                    overrides=_THEN,
                ),
                Panel(
                    "Phases of a batch, now and a week ago",
                    "table",
                    "s",
                    f"Mean time of each phase over {_HOUR}. Bad is one that grew: it says where to look.",
                    "No batch for an hour.",
                    (
                        Target(_phase(), instant=True),
                        Target(_phase(_WEEK), instant=True),
                    ),
                    alerts=("ProcessingCostRegression",),
                    condition=_HISTORY,
                    height=9,
                    columns=("Phase", "Now", "A week ago"),
                    sort=("Now",),
                ),
            ),
        ),
    ),
    many=False,
)
