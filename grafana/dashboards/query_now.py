"""The first row of the query board: the verdict of one query, and the figures behind it."""

from __future__ import annotations

from .board import Override, Panel, Target
from .colours import BLUE, GREEN, GREY, ORANGE, RED
from .links import EXPLORE_LINE, EXPLORE_ROW, RUNBOOKS
from .promql import ON, VERDICT, VERDICT_NOW, best, parameter, recorded, series, window
from .verdicts import AGENT_VERDICT_TEXTS, VERDICT_TEXTS

NO_QUERY = "No such query in this time range: choose another, or a longer range."
_NO_RULES = "No recorded series: load streamgauge.rules.yml into Prometheus."
_INFO = (
    *("spark_version", "trigger", "sink", "output_mode", "state_provider", "code_version"),
    *("team", "env", "tier", "run_id", "checkpoint"),
)


def _worst(expr: str) -> str:
    """Of several queries that are chosen, the one in most trouble; its name is beside the value."""
    return f"topk(1, {expr})"


def _fact(title: str, unit: str, bad: str, empty: str, target: Target, **more: object) -> Panel:
    return Panel(title, "stat", unit, bad, empty, (target,), width=4, height=4, **more)  # type: ignore[arg-type]


_NOW = (
    _fact(
        "Verdict",
        "short",
        "Bad is red, purple or orange; the reason is below. Of several queries, the worst.",
        NO_QUERY,
        Target(_worst(VERDICT_NOW), "{{query}}", instant=True),
        alerts=("QueryFailed", "QueryStalled", "QueryVanished", "RestartLoop", "AgentBlind"),
        mappings=VERDICT_TEXTS,
        links=(EXPLORE_LINE, RUNBOOKS),
    ),
    _fact(
        "Silence vs. budget",
        "percentunit",
        "Time since the last event, as a share of what this query may be silent for. Bad is 100 %"
        " and more: stalled, unless tasks still finish.",
        _NO_RULES,
        Target(
            _worst(
                f"{recorded('query:streamgauge_silence:seconds')}"
                f" / {ON} {recorded('query:streamgauge_silence_budget:seconds')}"
            ),
            "{{query}}",
            instant=True,
        ),
        alerts=("QueryStalled",),
        condition="the query is running and the rules are loaded",
        steps=((None, GREEN), (0.8, ORANGE), (1, RED)),
        decimals=0,
    ),
    _fact(
        "Current batch",
        "s",
        "How long it has been running; 0 between batches. Bad is many times the usual batch with no task"
        " that finishes.",
        NO_QUERY,
        Target(_worst(best("max", "inflight_batch_seconds")), "{{query}}", instant=True),
        alerts=("BatchStuck",),
        steps=((None, GREEN), (parameter("stuck_seconds"), RED)),
    ),
    _fact(
        "Tasks",
        "short",
        "Tasks of the current batch. Bad is running tasks with none completed for long (hung), or"
        " failed ones that grow.",
        "No batch is running, or its tasks can't be seen (Connect).",
        Target(f"sum by (state) ({series('inflight_tasks')})", "{{state}}", instant=True),
        alerts=("BatchStuck",),
        condition="a batch is running, on classic Spark",
        steps=((None, BLUE),),
        decimals=0,
        overrides=(Override("^failed$", (("thresholds", ((None, GREY), (1, RED))),)),),
    ),
    _fact(
        "Data available",
        "short",
        "Whether the source has unprocessed data. Bad is yes while nothing is committed.",
        NO_QUERY,
        Target(_worst(best("max", "query_data_available")), "{{query}}", instant=True),
        alerts=("CommitsStalled",),
        mappings={"0": ("no", GREY), "1": ("yes", BLUE)},
    ),
    _fact(
        f"Starts in {window('restart_window')}",
        "short",
        "Bad is the number that makes a loop.",
        _NO_RULES,
        Target(
            _worst(
                f"changes({recorded('query:streamgauge_started:timestamp_seconds')}"
                f"[{window('restart_window')}])"
            ),
            "{{query}}",
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

_REASON = Panel(
    "Reason",
    "table",
    "short",
    "Why the verdict is what it is, and the exception that ended the newest run. Bad is any line: a query"
    " that is well has none. A click on the query opens the traces of its batches.",
    "Nothing is wrong, or the agent is older than this dashboard.",
    (
        Target(f"max by (app, query, state, reason) ({series('query_reason_info')})", instant=True),
        Target(
            f"max by (app, query, error_class, cause_class, message) ({series('query_failure_info')})",
            instant=True,
        ),
    ),
    alerts=("QueryFailed", "QueryStalled", "RestartLoop", "AgentBlind"),
    condition="the verdict is a bad one",
    width=24,
    height=4,
    columns=(
        *("Application", "Query", "State", "Reason", "Error class", "Cause", "Message"),
        *("", ""),
    ),
    overrides=(
        Override("^(Application|State)$", (("custom.width", 100),)),
        Override("^Query$", (("links", (EXPLORE_ROW, RUNBOOKS)), ("custom.width", 130))),
        Override("^(Reason|Message)$", (("custom.minWidth", 250), ("cell", "wrapped"))),
        Override("^(Error class|Cause)$", (("custom.minWidth", 120),)),
    ),
)

_IDENTITY = Panel(
    "Query details",
    "table",
    "short",
    "The run as Spark describes it. Bad is a version, checkpoint or trigger that you did not expect."
    " A click on the query opens the traces of its batches.",
    NO_QUERY,
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
        Override("^Query$", (("links", (EXPLORE_ROW, RUNBOOKS)), ("custom.minWidth", 110))),
        Override("^(Application|Trigger)$", (("custom.minWidth", 105),)),
        Override("^(Run|Checkpoint)$", (("custom.minWidth", 170),)),
    ),
)

_TIMELINE = Panel(
    "Verdict over time",
    "state-timeline",
    "short",
    "Bad is red and purple; a gap has no driver.",
    NO_QUERY,
    (Target(VERDICT, "{{query}}"),),
    alerts=("QueryFailed", "QueryStalled", "QueryVanished"),
    width=24,
    height=5,
    mappings=AGENT_VERDICT_TEXTS,
)

NOW = (*_NOW, _REASON, _IDENTITY, _TIMELINE)
