"""Every threshold and duration in the rules: a name, a default, a unit and a reason.

Durations are in seconds and all of them are multiplied by one `time_scale`, so the rules that are
tested in seconds are the ones that ship in minutes and hours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Unit = Literal["seconds", "ratio", "rows", "bytes", "count", "versions", "text"]

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


class UnknownKnobError(ValueError):
    """A setting that no rule knows, or a value that is not one; says what is allowed."""


@dataclass(frozen=True)
class Knob:
    """One setting of the rules.

    `per_query` ones can be overridden for a query in the agent's settings (`thresholds`), which then
    exports `streamgauge_alert_threshold{name="<knob>"}`; where that is absent the default holds.
    """

    name: str
    default: float | str
    unit: Unit
    doc: str
    per_query: bool = False


def _seconds(name: str, default: float, doc: str, *, per_query: bool = False) -> Knob:
    return Knob(name, default, "seconds", doc, per_query)


KNOBS: tuple[Knob, ...] = (
    # ---- how the rules run
    _seconds("evaluation_interval", 30, "how often the rules are evaluated"),
    _seconds("memory_window", DAY, "how long a driver that is gone is remembered, and paged for"),
    _seconds("seen_window", MINUTE, "how long what was scraped once is there for the rules to see"),
    _seconds("rate_window", 15 * MINUTE, "window of rates and of means over batches"),
    _seconds(
        "cause_keep", MINUTE, "how long a cause outlives its end, so that no symptom pages after it"
    ),
    # ---- availability
    _seconds("failed_for", MINUTE, "how long a query may be failed before it pages"),
    _seconds("vanished_for", 5 * MINUTE, "how long a driver may be gone; a restart fits in here"),
    _seconds("missing_for", 10 * MINUTE, "how long an expected query may be away"),
    _seconds("restart_window", 30 * MINUTE, "window in which starts are counted; the verdict's"),
    Knob("restart_count", 3, "count", "starts within the window that make a loop; the verdict's"),
    _seconds("restart_keep", 15 * MINUTE, "how long a loop keeps firing after its last restart"),
    # ---- progress
    _seconds(
        "stalled_seconds", 0, "floor under the silence budget that the agent gives each query"
    ),
    _seconds("stall_for", 2 * MINUTE, "how long a stall must hold once the budget is spent"),
    _seconds("stall_window", 15 * MINUTE, "how long a backlog must stand where events still come"),
    _seconds(
        "stuck_seconds",
        10 * MINUTE,
        "a running batch younger than this is never stuck",
        per_query=True,
    ),
    Knob(
        "stuck_ratio", 2, "ratio", "times the longest batch of the last day that a batch may take"
    ),
    _seconds("stuck_baseline", DAY, "how far back the longest batch is looked for"),
    _seconds("stuck_for", MINUTE, "how long a batch must be stuck"),
    _seconds("source_for", 15 * MINUTE, "how long a source must not advance, after the window"),
    # ---- lag
    _seconds("trend_window", 15 * MINUTE, "window in which a backlog must grow"),
    _seconds("trend_for", 15 * MINUTE, "how long it must go on growing"),
    _seconds("trend_keep", 10 * MINUTE, "how long it keeps firing once it stopped growing"),
    Knob("backlog_rows", 10_000, "rows", "a smaller backlog is no backlog", True),
    _seconds("drain_seconds", 10 * MINUTE, "a backlog that drains faster than this is none"),
    _seconds("overrun_for", 15 * MINUTE, "how long batches must outlast their trigger interval"),
    Knob("retention_share", 0.5, "ratio", "share of a source's retention that must stay in hand"),
    _seconds(
        "retention_seconds", HOUR, "the same where the source's lag is unknown", per_query=True
    ),
    _seconds("retention_for", 5 * MINUTE, "how long the headroom must be short"),
    # ---- event time
    _seconds("watermark_window", 30 * MINUTE, "how long the watermark must stand while rows come"),
    _seconds("watermark_slice", 5 * MINUTE, "rows must come in each slice this long"),
    _seconds("watermark_for", 10 * MINUTE, "and for how long after that"),
    _seconds(
        "future_seconds", HOUR, "how far ahead of the clock event time may be", per_query=True
    ),
    Knob("late_ratio", 0.01, "ratio", "share of the input that may be dropped as late", True),
    _seconds("late_for", 15 * MINUTE, "how long rows must be dropped"),
    Knob("all_late_batches", 3, "count", "batches that must drop rows: one straggler is none"),
    _seconds("all_late_for", 5 * MINUTE, "how long everything must be dropped"),
    # ---- state
    _seconds("growth_window", 6 * HOUR, "window in which the growth of a state is measured"),
    _seconds("growth_horizon", DAY, "how far ahead the growth is projected"),
    _seconds("growth_history", DAY, "peak that a daily rhythm may come back to without a word"),
    Knob("growth_ratio", 2, "ratio", "growth over the horizon that is too much"),
    _seconds("growth_for", HOUR, "how long the growth must hold"),
    Knob("state_rows", 1_000_000, "rows", "a smaller state may grow as it likes", True),
    Knob("state_limit_bytes", 16 * 2**30, "bytes", "memory an operator's state may take", True),
    Knob("state_disk_bytes", 256 * 2**30, "bytes", "disk that RocksDB may take for it", True),
    _seconds("state_limit_for", 15 * MINUTE, "how long the state must be over its limit"),
    _seconds("evict_window", 26 * HOUR, "nothing evicted for so long; daily windows fit in"),
    _seconds("evict_for", 30 * MINUTE, "how long that must hold"),
    Knob("evict_rows", 10_000, "rows", "a smaller state need not evict", True),
    _seconds("commit_seconds", 1, "time one store may take to commit one batch", per_query=True),
    _seconds("commit_for", 30 * MINUTE, "how long commits must be slow"),
    Knob("snapshot_lag", 50, "versions", "versions a restart may have to replay", True),
    _seconds("snapshot_for", 15 * MINUTE, "how long the lag must hold, after the window"),
    # ---- regressions
    _seconds("baseline_window", 7 * DAY, "history that a query is compared with"),
    _seconds("baseline_step", 5 * MINUTE, "resolution of that history"),
    _seconds(
        "baseline_offset", HOUR, "the newest part of it, left out: an incident trains nothing"
    ),
    _seconds("baseline_minimum", DAY, "history with batches in it that there must be at least"),
    Knob("regression_sigma", 3, "ratio", "standard deviations above the mean"),
    Knob("regression_ratio", 1.5, "ratio", "and times the mean"),
    _seconds("regression_seconds", 1, "shorter batches are never a regression"),
    _seconds("regression_for", 15 * MINUTE, "how long batches must be slower"),
    _seconds("cost_window", HOUR, "window of the cost of a thousand rows and of throughput"),
    _seconds("cost_day", DAY, "one comparison: the same hour yesterday"),
    _seconds("cost_week", 7 * DAY, "the other: the same hour a week ago"),
    Knob("cost_ratio", 1.5, "ratio", "times the earlier cost"),
    _seconds("cost_for", 30 * MINUTE, "how long the cost must be higher"),
    Knob("throughput_ratio", 0.5, "ratio", "share of the earlier throughput"),
    Knob("busy_ratio", 0.8, "ratio", "share of its time that a busy query spends in batches"),
    _seconds("throughput_for", 30 * MINUTE, "how long throughput must be low"),
    # ---- checkpoint
    _seconds("reset_window", HOUR, "how long a reset pages"),
    _seconds("reset_memory", DAY, "how long the id before it is remembered"),
    _seconds("replay_window", HOUR, "how long a replayed batch warns"),
    _seconds("shared_for", MINUTE, "how long a checkpoint must be shared"),
    # ---- freshness objective
    _seconds(
        "freshness_seconds", 15 * MINUTE, "target, where the budget is not longer", per_query=True
    ),
    Knob("freshness_objective", 0.99, "ratio", "share of the time that must be fresh"),
    _seconds("burn_step", MINUTE, "resolution of windows up to two hours"),
    _seconds("burn_coarse_step", 5 * MINUTE, "resolution of longer windows"),
    _seconds("burn_5m", 5 * MINUTE, "short window of the fast burn"),
    _seconds("burn_30m", 30 * MINUTE, "short window of the slow burn that pages"),
    _seconds("burn_1h", HOUR, "long window of the fast burn"),
    _seconds("burn_2h", 2 * HOUR, "short window of the burn over a day"),
    _seconds("burn_6h", 6 * HOUR, "long window of the slow burn; short one of three days"),
    _seconds("burn_1d", DAY, "long window of the burn over a day"),
    _seconds("burn_3d", 3 * DAY, "long window of the burn over three days"),
    Knob("burn_fast", 14.4, "ratio", "times the budget's pace: 2 % of a month in an hour"),
    Knob("burn_slow", 6, "ratio", "5 % of a month in six hours"),
    Knob("burn_day", 3, "ratio", "10 % of a month in a day"),
    Knob("burn_three_days", 1, "ratio", "10 % of a month in three days"),
    _seconds("burn_day_for", HOUR, "how long the burn over a day must hold"),
    _seconds("burn_three_days_for", 3 * HOUR, "how long the burn over three days must hold"),
    # ---- agent
    _seconds("agent_down_for", 10 * MINUTE, "how long a scrape must fail"),
    _seconds("blind_for", 5 * MINUTE, "how long the agent must see nothing"),
    _seconds("heartbeat_seconds", 5 * MINUTE, "age of the agent's heartbeat that is too old"),
    _seconds("dropped_window", 10 * MINUTE, "window in which dropped events are counted"),
    # ---- Alertmanager
    _seconds("group_wait", 30, "how long Alertmanager collects before it pages"),
    _seconds("group_interval", 5 * MINUTE, "how long before news of a group is sent"),
    _seconds("repeat_interval", 4 * HOUR, "how long before a page is repeated"),
    _seconds("watchdog_interval", MINUTE, "how often the dead man's switch is pressed"),
    # ---- links
    Knob("grafana_url", "http://localhost:3000", "text", "where the dashboards are served"),
    Knob("runbook_url", "docs/runbooks", "text", "where the runbooks are served"),
    Knob("tempo_uid", "tempo", "text", "uid of Grafana's trace data source"),
    Knob("pager_url", "http://localhost:9099/page", "text", "webhook that stands for the pager"),
    Knob("ticket_url", "http://localhost:9099/ticket", "text", "webhook that opens tickets"),
    Knob("deadman_url", "http://localhost:9099/deadman", "text", "the dead man's switch"),
)

PER_QUERY = tuple(knob.name for knob in KNOBS if knob.per_query)
BY_NAME: Mapping[str, Knob] = {knob.name: knob for knob in KNOBS}


@dataclass(frozen=True)
class Settings:
    """The knobs as set, and the scale of time. Immutable; a wrong name or value raises."""

    values: Mapping[str, float | str] = field(default_factory=dict)
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        for name in self.values:
            _known(name)
        if not self.time_scale > 0:
            raise UnknownKnobError(f"time_scale must be above 0 and is {self.time_scale}")

    def value(self, name: str) -> float | str:
        """The knob's value; seconds are already scaled."""
        knob = _known(name)
        raw = self.values.get(name, knob.default)
        if knob.unit == "seconds" and isinstance(raw, (int, float)):
            return raw * self.time_scale
        return raw

    def number(self, name: str) -> str:
        """The value as PromQL writes it in an expression: plain seconds, rows, a ratio."""
        value = self.value(name)
        return value if isinstance(value, str) else f"{value:.10g}"

    def duration(self, name: str) -> str:
        """The value as PromQL writes it in a range: the largest unit that divides it."""
        value = self.value(name)
        if isinstance(value, str) or BY_NAME[name].unit != "seconds":
            raise UnknownKnobError(f"{name} is no duration and is used as one")
        return duration_text(value)


def duration_text(seconds: float) -> str:
    """Seconds in Prometheus' notation: 900 is `15m`, 0.5 is `500ms`; never less than 1 ms."""
    milliseconds = max(1, round(seconds * 1000))
    for unit, size in _UNITS_MS:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    raise AssertionError(milliseconds)  # pragma: no cover - a millisecond divides everything


def parse_settings(pairs: Iterable[str], time_scale: float = 1.0) -> Settings:
    """Read `name=value` pairs; raise UnknownKnobError with the allowed names or the wanted form."""
    values: dict[str, float | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise UnknownKnobError(f"{pair!r} is not name=value, such as stalled_seconds=600")
        values[name] = _parse(_known(name), text)
    return Settings(values, time_scale)


def _known(name: str) -> Knob:
    if name not in BY_NAME:
        allowed = ", ".join(sorted(BY_NAME))
        raise UnknownKnobError(f"there is no knob {name!r}; the knobs are: {allowed}")
    return BY_NAME[name]


def _parse(knob: Knob, text: str) -> float | str:
    if knob.unit == "text":
        return text
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise UnknownKnobError(f"{knob.name} is a number of {knob.unit}, 0 or more, not {text!r}")
    return value
