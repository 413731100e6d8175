"""Query: what one query does, why its verdict is what it is, and where its time goes."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from .links import TRACE_SEARCH
from .promql import QUERY, best, failures, increase, parameter, rate, recorded
from .query_batches import BATCHES
from .query_now import NO_QUERY, NOW

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

_BACKLOG = Panel(
    "Backlog",
    "timeseries",
    "short",
    "Rows that wait at the source after the last batch. Bad is above the line and rising.",
    "The source does not say how many rows wait (files and sockets don't).",
    (Target(recorded("query:streamgauge_backlog:rows"), "backlog"),),
    alerts=("FallingBehind",),
    condition="the source tells how far it is: Kafka, or another that reports its latest offset",
    width=6,
    axis="rows",
    steps=((None, BLUE), (parameter("backlog_rows"), RED)),
    line=True,
)

_DRAIN_TIME = Panel(
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
    NO_QUERY,
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
    name="${__field.labels.error_class}",
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
        Row("Now", NOW),
        Row("Batches", BATCHES),
        Row("Rows", (ROWS, _BACKLOG, _DRAIN_TIME)),
        Row("Restarts and errors", (_STARTS, _ERRORS, _OBSERVED)),
        # Closed: without a trace store, an open one would have an error on it.
        Row("Traces", (_TRACES,), collapsed=True),
    ),
    many=False,
    since="now-1h",
)
