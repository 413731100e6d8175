"""Query: what one query does, why its verdict is what it is, and where its time goes."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, DASHED, GREEN, GREY, ORANGE, PURPLE, RED, YELLOW
from .fleet import VERDICT_TEXTS
from .links import EXPLORE_CHOSEN, RUNBOOKS, TRACE_SEARCH
from .promql import (
    ON,
    QUERY,
    VERDICT,
    best,
    failures,
    increase,
    parameter,
    rate,
    recorded,
    series,
    window,
)

_NO_QUERY = "No such query in this time range: choose another, or a longer range."
_NO_BATCH = "No batch with data in this time range."
_NO_RULES = "No recorded series: load streamgauge.rules.yml into Prometheus."
_STATES = {key: text for key, text in VERDICT_TEXTS.items() if key != "10"}
_UNSTACKED = ("custom.stacking", {"mode": "none"})
TRIGGER_LINE = Override(
    "^trigger interval$", (_UNSTACKED, *DASHED, ("color", RED), ("custom.lineWidth", 2))
)
PHASE_COLOURS = tuple(
    Override(f"^{phase}$", (("color", colour),))
    for phase, colour in (
        ("add_batch", BLUE),
        ("query_planning", PURPLE),
        ("get_batch", GREY),
        ("(latest_offset|get_offset)", GREEN),
        ("wal_commit", YELLOW),
        ("(commit_offsets|commit_batch)", "#8ab8ff"),
    )
)
_INFO = (
    *("spark_version", "trigger", "sink", "output_mode", "state_provider", "code_version"),
    *("team", "env", "tier", "run_id", "checkpoint"),
)
_BATCHES = f"sum by ({QUERY}) (rate({series('batches_total')}[$__rate_interval]))"
TRIGGER = Target(f"{best('max', 'trigger_interval_seconds')} > 0", "trigger interval")


def _quantile(share: float) -> str:
    buckets = f"rate({series('batch_duration_seconds_bucket')}[$__rate_interval])"
    return f"histogram_quantile({share:g}, sum by ({QUERY}, le) ({buckets})) >= 0"


def _fact(title: str, unit: str, bad: str, empty: str, target: Target, **more: object) -> Panel:
    return Panel(title, "stat", unit, bad, empty, (target,), width=4, height=4, **more)  # type: ignore[arg-type]


_NOW = (
    _fact(
        "Verdict",
        "short",
        "Bad is red, purple or orange; the figures beside it are the reason.",
        _NO_QUERY,
        Target(VERDICT, "verdict", instant=True),
        alerts=("QueryFailed", "QueryStalled", "RestartLoop", "AgentBlind"),
        mappings=_STATES,
        links=(EXPLORE_CHOSEN, RUNBOOKS),
    ),
    _fact(
        "Silence, of its budget",
        "percentunit",
        "Time since the last event, as a share of what this query may be silent for. Bad is 100 %"
        " and more: stalled, unless tasks still finish.",
        _NO_RULES,
        Target(
            f"{recorded('query:streamgauge_silence:seconds')}"
            f" / {ON} {recorded('query:streamgauge_silence_budget:seconds')}",
            "silence",
            instant=True,
        ),
        alerts=("QueryStalled",),
        condition="the query is running and the rules are loaded",
        steps=((None, GREEN), (0.8, ORANGE), (1, RED)),
        decimals=0,
    ),
    _fact(
        "Batch under way for",
        "s",
        "0 between batches. Bad is many times the usual batch with no task that finishes.",
        _NO_QUERY,
        Target(best("max", "inflight_batch_seconds"), "running", instant=True),
        alerts=("BatchStuck",),
        steps=((None, GREEN), (parameter("stuck_seconds"), RED)),
    ),
    _fact(
        "Its tasks",
        "short",
        "Tasks of the batch under way. Bad is running tasks with none completed for long (hung), or"
        " failed ones that grow.",
        "No batch is under way, or its tasks can't be seen (Connect).",
        Target(best("max", "inflight_tasks", by="state"), "{{state}}", instant=True),
        alerts=("BatchStuck",),
        condition="a batch is under way, on classic Spark",
        steps=((None, BLUE),),
        decimals=0,
        overrides=(Override("^failed$", (("thresholds", ((None, GREY), (1, RED))),)),),
    ),
    _fact(
        "Data waits",
        "short",
        "Whether the source has data that is not read yet. Bad is yes while nothing is committed.",
        _NO_QUERY,
        Target(best("max", "query_data_available"), "data", instant=True),
        alerts=("CommitsStalled",),
        mappings={"0": ("no", GREY), "1": ("yes", BLUE)},
    ),
    _fact(
        f"Starts in {window('restart_window')}",
        "short",
        "Bad is the number that makes a loop.",
        _NO_RULES,
        Target(
            f"changes({recorded('query:streamgauge_started:timestamp_seconds')}[{window('restart_window')}])",
            "starts",
            instant=True,
        ),
        alerts=("RestartLoop",),
        steps=(
            (None, GREEN),
            (parameter("restart_count") - 1, ORANGE),
            (parameter("restart_count"), RED),
        ),
        decimals=0,
    ),
)

_IDENTITY = Panel(
    "What it is",
    "table",
    "short",
    "The run as Spark describes it. Bad is a version, checkpoint or trigger that you did not expect."
    " A click on the query opens the traces of its batches.",
    _NO_QUERY,
    (
        Target(
            f"max by (app, query, {', '.join(_INFO)}) ({series('query_info')})",
            instant=True,
        ),
    ),
    alerts=("CheckpointReset",),
    width=24,
    height=4,
    columns=(
        *("Application", "Query", "Spark", "Trigger", "Sink", "Mode", "State store", "Code"),
        *("Team", "Env", "Tier", "Run", "Checkpoint", ""),
    ),
    overrides=(
        Override("^Query$", (("links", (EXPLORE_CHOSEN, RUNBOOKS)),)),
        Override("^(Run|Checkpoint)$", (("custom.minWidth", 220),)),
    ),
)

_TIMELINE = Panel(
    "Verdict over time",
    "state-timeline",
    "short",
    "Bad is red and purple; a gap has no driver.",
    _NO_QUERY,
    (Target(VERDICT, "{{query}}"),),
    alerts=("QueryFailed", "QueryStalled", "QueryVanished"),
    width=24,
    height=4,
    mappings=_STATES,
)

_HEATMAP = Panel(
    "Batch time",
    "heatmap",
    "s",
    "Batches with data by how long they took; each dot is a batch whose trace a click opens. Bad is"
    " a second band that rises above the usual one.",
    _NO_BATCH,
    (
        Target(
            f"sum by (le) (increase({series('batch_duration_seconds_bucket')}[$__rate_interval]))",
            "{{le}}",
            exemplar=True,
        ),
    ),
    alerts=("BatchDurationRegression",),
    height=9,
)

_QUANTILES = Panel(
    "Batch time: typical, slow, longest",
    "timeseries",
    "s",
    "Bad is the slow line over the trigger interval: the query has no reserve. Each dot is a batch"
    " whose trace a click opens.",
    _NO_BATCH,
    (
        Target(_quantile(0.5), "median"),
        Target(_quantile(0.95), "p95", exemplar=True),
        Target(best("max", "batch_duration_max_seconds"), "longest of the hour"),
        TRIGGER,
    ),
    alerts=("BatchOverrun", "BatchDurationRegression"),
    height=9,
    overrides=(
        TRIGGER_LINE,
        Override("^median$", (("color", GREEN),)),
        Override("^p95$", (("color", BLUE),)),
        Override("^longest of the hour$", (("color", GREY),)),
    ),
    links=(EXPLORE_CHOSEN,),
)

_PHASES = Panel(
    "Phases of a batch against the trigger interval",
    "timeseries",
    "s",
    "Mean time of each of Spark's phases. Bad is a stack that reaches the trigger interval, or one"
    " phase that takes over.",
    _NO_BATCH,
    (
        Target(
            f"{rate('phase_duration_seconds_total', by='phase')}\n/ {ON} group_left () ({_BATCHES} > 0)",
            "{{phase}}",
        ),
        TRIGGER,
    ),
    alerts=("BatchOverrun",),
    height=9,
    stack=True,
    fill=60,
    overrides=(*PHASE_COLOURS, TRIGGER_LINE),
)

_COUNTS = Panel(
    "Batches a minute",
    "timeseries",
    "short",
    "Bad is nothing but empty batches while data waits, or replays that repeat.",
    "No batch in this time range.",
    (
        Target("60 * " + rate("batches_total", 'data="true"'), "with data"),
        Target("60 * " + rate("batches_total", 'data="false"'), "empty"),
        Target(f"60 * {rate('batches_replayed_total')}", "replayed"),
    ),
    alerts=("CommitsStalled", "SourceNotAdvancing", "DuplicateRisk"),
    height=9,
    axis="batches/min",
    overrides=(
        Override("^with data$", (("color", GREEN),)),
        Override("^empty$", (("color", GREY),)),
        Override("^replayed$", (("color", ORANGE),)),
    ),
)

ROWS = Panel(
    "Rows in, processed, arriving",
    "timeseries",
    "short",
    "Read is measured here; processed and arriving are Spark's own figures of the last batch. Bad is"
    " arriving above processed for long.",
    "No rows in this time range.",
    (
        Target(rate("input_rows_total"), "read"),
        Target(best("max", "processed_rows_per_second"), "could be processed"),
        Target(best("max", "input_rows_per_second"), "arriving"),
    ),
    alerts=("FallingBehind", "ThroughputDrop"),
    axis="rows/s",
    overrides=(
        Override("^read$", (("color", BLUE),)),
        Override("^could be processed$", (("color", GREEN),)),
        Override("^arriving$", (("color", PURPLE),)),
    ),
)

BACKLOG = Panel(
    "Backlog",
    "timeseries",
    "short",
    "Rows that wait at the source after the last batch. Bad is above the line and rising.",
    "The source does not say how many rows wait (files and sockets don't).",
    (Target(recorded("query:streamgauge_backlog:rows"), "waiting"),),
    alerts=("FallingBehind",),
    condition="the source tells how far it is: Kafka, or another that reports its latest offset",
    width=6,
    axis="rows",
    steps=((None, BLUE), (parameter("backlog_rows"), RED)),
    line=True,
)

DRAIN_TIME = Panel(
    "Time to drain it",
    "timeseries",
    "s",
    "Time until no row waits, at the pace of the last batches less what comes in. Bad is above the line,"
    " and a line that ends while rows wait: at this pace it never drains.",
    "Nothing is known of what waits (files and sockets don't tell), or more comes in than is read: it never"
    " drains.",
    (Target(best("max", "source_drain_seconds", by="source"), "{{source}}"),),
    alerts=("FallingBehind",),
    condition="the source tells how far it is, and less comes in than is read",
    width=6,
    steps=((None, BLUE), (parameter("drain_seconds"), RED)),
    line=True,
)

_STARTS = Panel(
    "Starts and ends",
    "timeseries",
    "short",
    "Bad is ends that failed, and starts that repeat.",
    _NO_QUERY,
    (
        Target(increase("query_starts_total"), "starts"),
        Target(increase("query_terminations_total", more='outcome="stopped"'), "stopped"),
        Target(failures("$__rate_interval", QUERY), "failed"),
        Target(increase("query_terminations_total", more='outcome="unknown"'), "end not seen"),
    ),
    alerts=("RestartLoop", "QueryFailed"),
    width=8,
    axis="in each interval",
    legend="list",
    overrides=(
        Override("^starts$", (("color", BLUE),)),
        Override("^stopped$", (("color", GREY),)),
        Override("^failed$", (("color", RED),)),
        Override("^end not seen$", (("color", ORANGE),)),
    ),
)

_ERRORS = Panel(
    "Failures by error class",
    "bargauge",
    "short",
    "Ends by exception in the chosen time, by Spark's error class. Bad is any; the runbook of the"
    " alert says what each means.",
    "No query failed in this time range.",
    (
        Target(
            f"{failures('$__range', 'error_class')} > 0",
            "{{error_class}}",
            instant=True,
        ),
    ),
    alerts=("QueryFailed", "RestartLoop"),
    condition="the query failed in the chosen time",
    width=8,
    steps=((None, GREY), (1, RED)),
    decimals=0,
)

_OBSERVED = Panel(
    "Observed metrics",
    "timeseries",
    "short",
    "The query's own df.observe() figures. Bad is what its author says it is.",
    "The query has no df.observe().",
    (Target(best("max", "observed", by="name, field"), "{{name}}.{{field}}"),),
    condition="the query uses df.observe()",
    width=8,
    minimum=None,
    axis="as observed",
)

_TRACES = Panel(
    "Traces of its batches and starts",
    "traces",
    "short",
    "The newest traces; a click on an id opens the batch with its phases. Bad is one that is far longer"
    " than the others, or ended with an error.",
    "No trace in this time range: the driver sends them where OTEL_EXPORTER_OTLP_ENDPOINT says.",
    (Target(TRACE_SEARCH),),
    alerts=("BatchDurationRegression", "QueryFailed"),
    condition="batches are traced, and Grafana knows the trace store",
    width=24,
    minimum=None,
)

QUERY_BOARD = Board(
    "query",
    "Query",
    "One query: its verdict and the reason, its batches, rows, restarts and errors; exemplars lead to"
    " traces.",
    (
        Row("Now", (*_NOW, _IDENTITY, _TIMELINE)),
        Row("Batches", (_HEATMAP, _QUANTILES, _PHASES, _COUNTS)),
        Row("Rows", (ROWS, BACKLOG, DRAIN_TIME)),
        Row("Restarts and errors", (_STARTS, _ERRORS, _OBSERVED)),
        Row("Traces", (_TRACES,)),
    ),
    many=False,
    since="now-1h",
)
