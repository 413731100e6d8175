"""The batches of one query: how long they take, where the time goes, how many there are."""

from __future__ import annotations

from .board import Override, Panel, Target
from .colours import BLUE, DASHED, GREEN, GREY, ORANGE, PURPLE, RED, YELLOW
from .links import EXPLORE_LINE
from .promql import ON, QUERY, best, rate, series

_NO_BATCH = "No batch with data in this time range."
_UNSTACKED = ("custom.stacking", {"mode": "none"})
_TRIGGER_LINE = Override(
    "^trigger interval$", (_UNSTACKED, *DASHED, ("color", RED), ("custom.lineWidth", 2))
)
_PHASE_COLOURS = {
    "add_batch": BLUE,
    "query_planning": PURPLE,
    "get_batch": GREY,
    "latest_offset|get_offset": GREEN,
    "wal_commit": YELLOW,
    "commit_offsets|commit_batch": "#8ab8ff",
}
_BATCHES = f"sum by ({QUERY}) (rate({series('batches_total')}[$__rate_interval]))"
_TRIGGER = Target(f"{best('max', 'trigger_interval_seconds')} > 0", "trigger interval")


def phase_colours(phases: str = "|".join(_PHASE_COLOURS)) -> tuple[Override, ...]:
    """The colours of these phases; the same on every panel."""
    wanted = set(phases.split("|"))
    return tuple(
        Override(f"^({names})$", (("color", colour),))
        for names, colour in _PHASE_COLOURS.items()
        if wanted & set(names.split("|"))
    )


def _quantile(share: float) -> str:
    buckets = f"rate({series('batch_duration_seconds_bucket')}[$__rate_interval])"
    return f"histogram_quantile({share:g}, sum by ({QUERY}, le) ({buckets})) >= 0"


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
        _TRIGGER,
    ),
    alerts=("BatchOverrun", "BatchDurationRegression"),
    height=9,
    overrides=(
        _TRIGGER_LINE,
        Override("^median$", (("color", GREEN),)),
        Override("^p95$", (("color", BLUE),)),
        Override("^longest of the hour$", (("color", GREY),)),
    ),
    links=(EXPLORE_LINE,),
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
        _TRIGGER,
    ),
    alerts=("BatchOverrun",),
    height=9,
    stack=True,
    fill=60,
    overrides=(*phase_colours(), _TRIGGER_LINE),
)

_COUNTS = Panel(
    "Batches per minute",
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

BATCHES = (_HEATMAP, _QUANTILES, _PHASES, _COUNTS)
