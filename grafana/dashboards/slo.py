"""SLO: how much of the freshness budget is left, and how fast it goes."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, limit
from .links import QUERY_ROW
from .promql import ALERTS_OF_APP, CHOSEN, OF_APP, best, largest, parameter, recorded

_OBJECTIVE = parameter("freshness_objective")
_BUDGET = f"{1 - _OBJECTIVE:g}"
_NO_RULES = "No recorded series: load streamgauge.rules.yml into Prometheus."
_STALE = "query:streamgauge_stale:bool"
_LEFT = ((None, RED), (0.0001, ORANGE), (0.5, GREEN))
_PERCENT = f"{_OBJECTIVE * 100:g} %"


def _ratio(name: str) -> str:
    return f"query:streamgauge_stale:ratio{name}"


def _share(name: str) -> Target:
    return Target(largest(recorded(_ratio(name), chosen=OF_APP)), instant=True)


def _left(chosen: str) -> str:
    return f"1 - {largest(recorded(_ratio('3d'), chosen=chosen))} / {_BUDGET}"


_BURNS = (("1h", BLUE), ("6h", PURPLE), ("1d", GREEN), ("3d", GREY))

SLO_BOARD = Board(
    "slo",
    "SLO",
    f"Freshness: output no older than its target {_PERCENT} of the time.",
    (
        Row(
            "Every query of the application",
            (
                Panel(
                    "Budget left, least first",
                    "table",
                    "percentunit",
                    f"The budget is {_BUDGET} of the time, here over three days. Bad is 0 % and less: the"
                    " objective is missed.",
                    _NO_RULES,
                    (
                        Target(_left(OF_APP), instant=True),
                        Target(largest(recorded(_STALE, chosen=OF_APP)), instant=True),
                        _share("1h"),
                        _share("6h"),
                        _share("1d"),
                        _share("3d"),
                        Target(
                            largest(
                                recorded(
                                    "query:streamgauge_freshness_target:seconds", chosen=OF_APP
                                )
                            ),
                            instant=True,
                        ),
                    ),
                    alerts=("FreshnessBudgetBurn",),
                    width=16,
                    height=9,
                    columns=(
                        *("Job", "Application", "Query", "Budget left", "Now", "Stale 1h"),
                        *("Stale 6h", "Stale 1d", "Stale 3d", "Target"),
                    ),
                    sort=("-Budget left",),
                    decimals=1,
                    overrides=(
                        Override("^Query$", (("links", (QUERY_ROW,)), ("custom.minWidth", 110))),
                        Override("^Application$", (("custom.minWidth", 95),)),
                        Override(
                            "^Budget left$",
                            (
                                ("thresholds", _LEFT),
                                ("cell", "color-text"),
                            ),
                        ),
                        Override(
                            "^Now$",
                            (
                                ("mappings", {"0": ("fresh", GREEN), "1": ("stale", RED)}),
                                ("cell", "color-text"),
                            ),
                        ),
                        Override("^Target$", (("unit", "s"),)),
                    ),
                ),
                Panel(
                    "Minutes that alerts fired, in a week",
                    "bargauge",
                    "m",
                    "Bad is what is on top: fix that first.",
                    "No alert fired in a week.",
                    (
                        Target(
                            f"topk(10, 5 * sum by (alertname) (count_over_time({ALERTS_OF_APP}[7d:5m])))",
                            "{{alertname}}",
                            instant=True,
                        ),
                    ),
                    condition="an alert fired for five minutes in the last week",
                    width=8,
                    height=9,
                    decimals=0,
                    steps=((None, ORANGE),),
                    name="${__field.labels.alertname}",
                ),
            ),
        ),
        Row(
            "One query",
            (
                Panel(
                    "Budget left",
                    "stat",
                    "percentunit",
                    "Of three days' budget. Bad is 0 % and less. Of several queries, the least.",
                    _NO_RULES,
                    (Target(f"bottomk(1, {_left(CHOSEN)})", "{{query}}", instant=True),),
                    alerts=("FreshnessBudgetBurn",),
                    width=4,
                    height=8,
                    minimum=None,
                    steps=_LEFT,
                    decimals=1,
                ),
                Panel(
                    "Burn rate by window",
                    "timeseries",
                    "short",
                    "Times the pace that would use up the budget exactly. Bad is a window over its line:"
                    f" {parameter('burn_fast'):g} over an hour, {parameter('burn_slow'):g} over six,"
                    f" {parameter('burn_day'):g} over a day, {parameter('burn_three_days'):g} over three.",
                    _NO_RULES,
                    tuple(
                        Target(f"{recorded(_ratio(name))} / {_BUDGET}", name) for name, _ in _BURNS
                    ),
                    alerts=("FreshnessBudgetBurn",),
                    width=10,
                    axis="times the budget",
                    steps=(
                        (None, BLUE),
                        (parameter("burn_slow"), ORANGE),
                        (parameter("burn_fast"), RED),
                    ),
                    line=True,
                    overrides=tuple(
                        Override(f"^{name}$", (("color", colour),)) for name, colour in _BURNS
                    ),
                ),
                Panel(
                    "Freshness against its target",
                    "timeseries",
                    "s",
                    "Age of the newest committed batch; 0 when idle. Bad is above the dashed line.",
                    "The query was not seen in this time range.",
                    (
                        Target(best("max", "freshness_lag_seconds"), "freshness"),
                        Target(recorded("query:streamgauge_freshness_target:seconds"), "target"),
                    ),
                    alerts=("FreshnessBudgetBurn",),
                    width=10,
                    overrides=(
                        Override("^freshness$", (("color", BLUE),)),
                        limit("^target$"),
                    ),
                ),
                Panel(
                    "Stale and fresh",
                    "status-history",
                    "short",
                    "Bad is red: the output was older than its target, or the query had failed.",
                    _NO_RULES,
                    (Target(recorded(_STALE), "{{query}}"),),
                    alerts=("FreshnessBudgetBurn", "QueryFailed"),
                    width=24,
                    height=5,
                    mappings={"0": ("fresh", GREEN), "1": ("stale", RED)},
                ),
            ),
        ),
    ),
    many=False,
    since="now-6h",
)
