"""Fleet: which query is in trouble, at one look."""

from __future__ import annotations

from . import verdicts
from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, RED, TEXT
from .links import EXPLORE_ROW, QUERY_LINE, QUERY_ROW, RUNBOOK_ROW, RUNBOOKS
from .promql import (
    ALERT_LABELS,
    ALERTS,
    ALERTS_SINCE,
    CHANGE,
    CRITICAL,
    FRESHNESS,
    ON,
    P95,
    QUERY,
    VANISHED,
    VERDICT,
    VERDICT_NOW,
    WARNING,
    WATERMARK_LAG,
    best,
    firing,
    largest,
    parameter,
    rate,
    recorded,
    series,
)
from .verdicts import AGENT_VERDICT_TEXTS, VERDICT_TEXTS, VERDICTS

_NO_AGENT = "No agent is scraped: is the job in Prometheus' targets?"
_NO_RULES = "No recorded series: load streamgauge.rules.yml into Prometheus."
_OF_TARGET = ((None, GREEN), (1, RED))
_WORST_ALERT = f"max by ({QUERY}) (\n  2 * {CRITICAL}\n  or {WARNING}\n)"


def _count(state: str) -> Target:
    if state == verdicts.VANISHED:
        known = f"count({recorded('query:streamgauge_active:max')})"
        return Target(f"count(\n{VANISHED}\n) or 0 * {known}", state, instant=True)
    matcher = f'state="{state}"'
    return Target(f"sum({best('max', 'query_state', matcher)})", state.replace("_", " "), True)


def _firing(severity: str) -> Target:
    rules_are_there = f"0 * count({recorded('query:streamgauge_active:max')})"
    return Target(f"count({firing(severity)}) or {rules_are_there}", severity, instant=True)


_VERDICT_COUNTS = Panel(
    "Queries by verdict",
    "stat",
    "short",
    "Bad is any colour but grey, green or blue: a failed, stalled, blind, vanished or restarting"
    " query, or one that falls behind.",
    _NO_AGENT,
    tuple(_count(state) for state in reversed(VERDICTS)),
    alerts=(
        *("QueryFailed", "QueryStalled", "QueryVanished", "QueryMissing", "AgentBlind"),
        *("RestartLoop", "FallingBehind"),
    ),
    width=24,
    height=4,
    steps=((None, GREY),),
    decimals=0,
    overrides=tuple(
        Override(f"^{state.replace('_', ' ')}$", (("thresholds", ((None, GREY), (1, colour))),))
        for state, (_, colour) in VERDICTS.items()
    ),
)


def _stat(title: str, unit: str, bad: str, empty: str, target: Target, **more: object) -> Panel:
    return Panel(title, "stat", unit, bad, empty, (target,), width=4, height=4, **more)  # type: ignore[arg-type]


_STATS = (
    _stat(
        "Critical alerts now",
        "short",
        "Bad is anything above 0; the list below names each. Pages are fewer: Alertmanager groups these"
        " alerts, and holds back those whose cause pages already.",
        _NO_RULES,
        _firing("critical"),
        alerts=("QueryFailed", "QueryStalled", "QueryVanished"),
        steps=((None, GREEN), (1, RED)),
        decimals=0,
    ),
    _stat(
        "Warnings now",
        "short",
        "Bad is a number that stays: warnings are tickets, not pages.",
        _NO_RULES,
        _firing("warning"),
        alerts=("FallingBehind", "StateBloat", "BatchDurationRegression"),
        steps=((None, GREEN), (1, ORANGE)),
        decimals=0,
    ),
    _stat(
        "Freshness vs. target",
        "percentunit",
        "The query that is furthest beyond what its objective allows. Bad is 100 % and more: stale.",
        _NO_RULES,
        Target(f"max({FRESHNESS})", "oldest", instant=True),
        alerts=("FreshnessBudgetBurn",),
        steps=_OF_TARGET,
        decimals=0,
    ),
    _stat(
        "Silence vs. budget",
        "percentunit",
        "The query that is nearest to being called stalled. Bad is 100 % and more.",
        _NO_RULES,
        Target(
            f"max({recorded('query:streamgauge_silence:seconds')}"
            f" / {ON} {recorded('query:streamgauge_silence_budget:seconds')})",
            "nearest",
            instant=True,
        ),
        alerts=("QueryStalled",),
        steps=((None, GREEN), (0.8, ORANGE), (1, RED)),
        decimals=0,
    ),
    _stat(
        "Restarts in 1d",
        "short",
        "Bad is more than your deployments explain.",
        _NO_RULES,
        Target(
            f"sum(changes({recorded('query:streamgauge_started:timestamp_seconds')}[1d]))",
            "restarts",
            instant=True,
        ),
        alerts=("RestartLoop",),
        steps=((None, GREEN), (parameter("restart_count"), ORANGE)),
        decimals=0,
    ),
    _stat(
        "Rows per second",
        "short",
        "What the whole fleet reads. Bad is a fall while data waits.",
        _NO_AGENT,
        Target(f"sum(rate({series('input_rows_total')}[$__rate_interval]))", "rows/s"),
        alerts=("ThroughputDrop",),
        steps=((None, BLUE),),
    ),
)

_TABLE = Panel(
    "Queries, worst first",
    "table",
    "short",
    "Bad is at the top: queries with a critical alert first, and of those the worst verdict. A watermark"
    " below 0 is ahead of the clock. A click on a query opens its board; a click on a verdict offers its"
    " traces and the runbooks.",
    _NO_AGENT,
    (
        Target(VERDICT_NOW, instant=True),
        Target(_WORST_ALERT, instant=True),
        Target(best("max", "freshness_lag_seconds"), instant=True),
        Target(FRESHNESS, instant=True),
        Target(largest(recorded("query:streamgauge_backlog:rows")), instant=True),
        Target(rate("input_rows_total"), instant=True),
        Target(P95, instant=True),
        Target(CHANGE, instant=True),
        Target(WATERMARK_LAG, instant=True),
        Target(f"sum by ({QUERY}) ({series('state_memory_bytes')})", instant=True),
        Target(f"time() - {best('max', 'query_started_timestamp_seconds')}", instant=True),
    ),
    alerts=(
        *("QueryFailed", "QueryStalled", "FallingBehind", "BatchDurationRegression"),
        *("FreshnessBudgetBurn", "AllRowsLate", "CheckpointShared"),
    ),
    width=24,
    height=15,
    columns=(
        *("Job", "Application", "Query", "Verdict", "Alert", "Freshness", "Of target"),
        *("Backlog", "Rows/s", "p95 batch", "vs. last week", "Watermark lag", "State"),
        "Since start",
    ),
    sort=("Alert", "Verdict"),
    overrides=(
        Override(
            "^Verdict$",
            (
                ("mappings", VERDICT_TEXTS),
                (
                    "thresholds",
                    ((None, "transparent"),),
                ),  # a missing query has an alert and no verdict
                ("cell", "color-background"),
                ("links", (QUERY_ROW, EXPLORE_ROW, RUNBOOKS)),
                ("custom.width", 110),
            ),
        ),
        Override("^Query$", (("links", (QUERY_ROW,)), ("custom.minWidth", 130))),
        Override("^Application$", (("custom.minWidth", 95),)),
        Override(
            "^Alert$",
            (
                ("mappings", {"1": ("warning", ORANGE), "2": ("critical", RED)}),
                ("cell", "color-text"),
                ("custom.width", 75),
            ),
        ),
        Override("^Freshness$", (("unit", "s"),)),
        Override(
            "^Of target$",
            (
                ("unit", "percentunit"),
                ("decimals", 0),
                ("thresholds", ((None, TEXT), (1, RED))),
                ("cell", "color-text"),
            ),
        ),
        Override(
            "^Backlog$",
            (
                ("unit", "short"),
                ("thresholds", ((None, TEXT), (parameter("backlog_rows"), ORANGE))),
                ("cell", "color-text"),
            ),
        ),
        Override("^Rows/s$", (("unit", "short"),)),
        Override("^p95 batch$", (("unit", "s"),)),
        Override(
            "^vs. last week$",
            (
                ("unit", "percentunit"),
                ("decimals", 0),
                ("thresholds", ((None, TEXT), (parameter("regression_ratio") - 1, ORANGE))),
                ("cell", "color-text"),
            ),
        ),
        Override(
            "^Watermark lag$",
            (
                ("unit", "s"),
                ("thresholds", ((None, RED), (0, TEXT))),
                ("cell", "color-text"),
            ),
        ),
        Override("^State$", (("unit", "bytes"),)),
        Override("^Since start$", (("unit", "s"), ("decimals", 1))),
    ),
)

_TIMELINE = Panel(
    "Verdicts",
    "state-timeline",
    "short",
    "One line a query. Bad is red and purple; a line that ends has no driver any more.",
    _NO_AGENT,
    (Target(VERDICT, "{{query}} · {{app}}"),),
    alerts=("QueryFailed", "QueryStalled", "RestartLoop", "AgentBlind", "QueryVanished"),
    width=24,
    height=15,
    mappings=AGENT_VERDICT_TEXTS,
    links=(QUERY_LINE,),
)

_FIRING = Panel(
    "Firing alerts",
    "table",
    "s",
    "Bad is every line: how long the alert's condition has held. A click on the name opens the"
    " runbook.",
    "No alert is firing.",
    (
        Target(
            f"time() - max by ({ALERT_LABELS}) ({ALERTS_SINCE})\nand on ({ALERT_LABELS}) {ALERTS}",
            instant=True,
        ),
    ),
    condition="an alert is firing",
    width=12,
    height=15,
    columns=("Alert", "Severity", "Job", "Application", "Query", "Holds for"),
    sort=("-Severity",),
    overrides=(
        Override("^Alert$", (("links", (RUNBOOK_ROW,)), ("custom.minWidth", 250))),
        Override("^Query$", (("links", (QUERY_ROW,)), ("custom.minWidth", 100))),
        Override(
            "^Severity$",
            (
                ("mappings", {"critical": ("critical", RED), "warning": ("warning", ORANGE)}),
                ("cell", "color-background"),
                ("custom.width", 80),
            ),
        ),
        Override("^Application$", (("custom.minWidth", 95),)),
    ),
)

_OLDEST = Panel(
    "Freshness vs. target: the ten worst",
    "bargauge",
    "percentunit",
    "How old the output of a query is, as a share of what its objective allows. Bad is 100 % and more:"
    " stale.",
    _NO_RULES,
    (Target(f"topk(10, {FRESHNESS})", "{{query}}", instant=True),),
    alerts=("FreshnessBudgetBurn",),
    width=6,
    height=15,
    steps=_OF_TARGET,
    decimals=0,
    name="${__field.labels.query}",
)

_SLOWER = Panel(
    "Slower than last week: the ten worst",
    "bargauge",
    "percentunit",
    "Mean batch time against the week before. Bad is half as long again and more.",
    "No query has a day of history yet.",
    (Target(f"topk(10, {CHANGE})", "{{query}}", instant=True),),
    alerts=("BatchDurationRegression",),
    condition="there is a day of history",
    width=6,
    height=15,
    minimum=None,
    steps=((None, GREEN), (parameter("regression_ratio") - 1, ORANGE)),
    decimals=0,
    name="${__field.labels.query}",
)

FLEET = Board(
    "fleet",
    "Fleet",
    "Every query of every application: which one is in trouble, and since when.",
    (
        Row("Now", (_VERDICT_COUNTS, *_STATS)),
        Row("Queries", (_TABLE, _TIMELINE)),
        Row("Trouble", (_FIRING, _OLDEST, _SLOWER)),
    ),
)
