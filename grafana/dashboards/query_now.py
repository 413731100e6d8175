"""The first row of the query board: the verdict of one query, and the figures behind it."""

from __future__ import annotations

from .board import Override, Panel, Target
from .colours import BLUE, GREEN, GREY, ORANGE, RED
from .links import EXPLORE_CHOSEN, RUNBOOKS
from .promql import ON, VERDICT, best, parameter, recorded, series, window
from .verdicts import AGENT_VERDICT_TEXTS

NO_QUERY = "No such query in this time range: choose another, or a longer range."
_NO_RULES = "No recorded series: load streamgauge.rules.yml into Prometheus."
_INFO = (
    *("spark_version", "trigger", "sink", "output_mode", "state_provider", "code_version"),
    *("team", "env", "tier", "run_id", "checkpoint"),
)


def _fact(title: str, unit: str, bad: str, empty: str, target: Target, **more: object) -> Panel:
    return Panel(title, "stat", unit, bad, empty, (target,), width=4, height=4, **more)  # type: ignore[arg-type]


_NOW = (
    _fact(
        "Verdict",
        "short",
        "Bad is red, purple or orange; the figures beside it are the reason.",
        NO_QUERY,
        Target(VERDICT, "verdict", instant=True),
        alerts=("QueryFailed", "QueryStalled", "RestartLoop", "AgentBlind"),
        mappings=AGENT_VERDICT_TEXTS,
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
        NO_QUERY,
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
        NO_QUERY,
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
        Override("^Query$", (("links", (EXPLORE_CHOSEN, RUNBOOKS)),)),
        Override("^(Run|Checkpoint)$", (("custom.minWidth", 220),)),
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
    height=4,
    mappings=AGENT_VERDICT_TEXTS,
)

NOW = (*_NOW, _IDENTITY, _TIMELINE)
