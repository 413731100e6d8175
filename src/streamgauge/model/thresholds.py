"""The parameters of the alert rules: every threshold and duration, with a default, a unit and a reason.

The rules, the dashboards, the agent's settings and the verdict read this one table. Durations are in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Unit = Literal["seconds", "ratio", "rows", "bytes", "count", "versions", "text"]

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


class Parameter(Struct, frozen=True):
    """One rule parameter.

    A `per_query` parameter can be overridden per query in the agent's settings (`thresholds`). The agent
    exports the override as `streamgauge_alert_threshold{name="<parameter>"}`; without one the default holds.
    """

    name: str
    default: float | str
    unit: Unit
    doc: str
    per_query: bool = False


def _seconds(name: str, default: float, doc: str, *, per_query: bool = False) -> Parameter:
    return Parameter(name, default, "seconds", doc, per_query)


PARAMETERS: tuple[Parameter, ...] = (
    # ---- how the rules run
    _seconds("evaluation_interval", 30, "how often the rules are evaluated"),
    _seconds("warning_interval", _MINUTE, "the same for warnings that have a `for`"),
    _seconds("memory_window", _DAY, "how long a driver that is gone is remembered, and paged for"),
    _seconds("memory_interval", 5 * _MINUTE, "how often what is remembered is sampled"),
    _seconds("memory_recent", 30 * _MINUTE, "the part of it that is read as it was scraped"),
    _seconds(
        "seen_window", _MINUTE, "how long what was scraped once is there for the rules to see"
    ),
    _seconds("rate_window", 15 * _MINUTE, "window of rates and of means over batches"),
    _seconds(
        "cause_keep",
        _MINUTE,
        "how long a cause outlives its end, so that no symptom pages after it",
    ),
    # ---- availability
    _seconds("failed_for", _MINUTE, "how long a query may be failed before it pages"),
    _seconds("vanished_for", 5 * _MINUTE, "how long a driver may be gone; a restart fits in here"),
    _seconds("missing_for", 10 * _MINUTE, "how long an expected query may be away"),
    _seconds("restart_window", 30 * _MINUTE, "window in which starts are counted; the verdict's"),
    Parameter(
        "restart_count",
        3,
        "count",
        "starts within the window, less clean stops, that make a loop; the verdict's",
    ),
    _seconds(
        "restart_keep",
        15 * _MINUTE,
        "how long a loop lasts after its last start; what it inhibits pages then",
    ),
    # ---- progress
    _seconds(
        "stalled_seconds", 0, "floor under the silence budget that the agent gives each query"
    ),
    _seconds("stall_for", 2 * _MINUTE, "how long a stall must hold once the budget is spent"),
    _seconds("stall_window", 15 * _MINUTE, "how long a backlog must stand where events still come"),
    _seconds(
        "stuck_seconds",
        10 * _MINUTE,
        "a running batch younger than this is never stuck",
        per_query=True,
    ),
    Parameter(
        "stuck_ratio", 2, "ratio", "times the longest batch of the last day that a batch may take"
    ),
    _seconds("stuck_baseline", _DAY, "how far back the longest batch is looked for"),
    _seconds("stuck_for", _MINUTE, "how long a batch must be stuck"),
    _seconds("source_for", 15 * _MINUTE, "how long a source must not advance, after the window"),
    # ---- lag
    _seconds("trend_window", 15 * _MINUTE, "window in which a backlog must grow"),
    _seconds("trend_for", 15 * _MINUTE, "how long it must go on growing"),
    _seconds("trend_keep", 10 * _MINUTE, "how long it keeps firing once it stopped growing"),
    Parameter("backlog_rows", 10_000, "rows", "a smaller backlog is no backlog", True),
    Parameter("backlog_files", 100, "count", "the same in files, where rows are unknown", True),
    Parameter("backlog_bytes", 2**30, "bytes", "the same in bytes, where rows are unknown", True),
    Parameter("backlog_versions", 50, "versions", "the same in versions of a Delta table", True),
    _seconds("drain_seconds", 10 * _MINUTE, "a backlog that drains faster than this is none"),
    _seconds("overrun_for", 15 * _MINUTE, "how long batches must outlast their trigger interval"),
    Parameter(
        "overrun_busy_ratio", 0.5, "ratio", "share of its time in batches that makes it an overrun"
    ),
    Parameter(
        "retention_share", 0.5, "ratio", "share of a source's retention that must stay in hand"
    ),
    _seconds(
        "retention_seconds", _HOUR, "the same where the source's lag is unknown", per_query=True
    ),
    _seconds("retention_for", 5 * _MINUTE, "how long the headroom must be short"),
    # ---- event time
    _seconds("watermark_window", 30 * _MINUTE, "how long the watermark must stand while rows come"),
    _seconds("watermark_slice", 5 * _MINUTE, "rows must come in each slice this long"),
    _seconds("watermark_for", 10 * _MINUTE, "and for how long after that"),
    _seconds(
        "future_seconds", _HOUR, "how far ahead of the clock event time may be", per_query=True
    ),
    Parameter("late_ratio", 0.01, "ratio", "share of the input that may be dropped as late", True),
    _seconds("late_for", 15 * _MINUTE, "how long rows must be dropped"),
    Parameter("all_late_batches", 3, "count", "batches that must drop rows: one straggler is none"),
    _seconds("all_late_for", 5 * _MINUTE, "how long everything must be dropped"),
    # ---- state
    _seconds("growth_window", 6 * _HOUR, "window in which the growth of a state is measured"),
    _seconds("growth_horizon", _DAY, "how far ahead the growth is projected"),
    _seconds("growth_history", _DAY, "peak that a daily rhythm may come back to without a word"),
    Parameter("growth_ratio", 2, "ratio", "growth over the horizon that is too much"),
    _seconds("growth_for", _HOUR, "how long the growth must hold"),
    Parameter("state_rows", 1_000_000, "rows", "a smaller state may grow as it likes", True),
    Parameter(
        "state_limit_bytes", 16 * 2**30, "bytes", "memory an operator's state may take", True
    ),
    Parameter("state_disk_bytes", 256 * 2**30, "bytes", "disk that RocksDB may take for it", True),
    _seconds("state_limit_for", 15 * _MINUTE, "how long the state must be over its limit"),
    _seconds("evict_window", 26 * _HOUR, "nothing evicted for so long; daily windows fit in"),
    _seconds("evict_for", 30 * _MINUTE, "how long that must hold"),
    Parameter("evict_rows", 10_000, "rows", "a smaller state need not evict", True),
    _seconds("commit_seconds", 1, "time one store may take to commit one batch", per_query=True),
    _seconds("commit_for", 30 * _MINUTE, "how long commits must be slow"),
    Parameter("snapshot_lag", 50, "versions", "versions a restart may have to replay", True),
    _seconds("snapshot_for", 15 * _MINUTE, "how long the lag must hold, after the window"),
    # ---- regressions
    _seconds("baseline_window", 7 * _DAY, "history that a query is compared with"),
    _seconds("baseline_step", 5 * _MINUTE, "resolution of that history"),
    _seconds("baseline_slice", _HOUR, "the history is summed once per slice of this length"),
    _seconds("baseline_interval", _MINUTE, "how often the history is put together from its slices"),
    _seconds(
        "baseline_offset", _HOUR, "the newest part of it, left out: an incident trains nothing"
    ),
    _seconds("baseline_minimum", _DAY, "history with batches in it that there must be at least"),
    Parameter("regression_sigma", 3, "ratio", "standard deviations above the mean"),
    Parameter("regression_ratio", 1.5, "ratio", "and times the mean"),
    _seconds("regression_seconds", 1, "shorter batches are never a regression"),
    _seconds("regression_for", 15 * _MINUTE, "how long batches must be slower"),
    _seconds("cost_window", _HOUR, "window of the cost of a thousand rows and of throughput"),
    _seconds("cost_day", _DAY, "one comparison: the same hour yesterday"),
    _seconds("cost_week", 7 * _DAY, "the other: the same hour a week ago"),
    Parameter("cost_ratio", 1.5, "ratio", "times the earlier cost"),
    _seconds("cost_for", 30 * _MINUTE, "how long the cost must be higher"),
    Parameter("throughput_ratio", 0.5, "ratio", "share of the earlier throughput"),
    Parameter("busy_ratio", 0.8, "ratio", "share of its time that a busy query spends in batches"),
    _seconds("throughput_for", 30 * _MINUTE, "how long throughput must be low"),
    # ---- checkpoint
    _seconds("reset_window", _HOUR, "how long a reset pages"),
    _seconds("reset_memory", _DAY, "how long the id before it is remembered"),
    _seconds("replay_window", _HOUR, "how long a replayed batch warns"),
    _seconds(
        "replay_for", _MINUTE, "how long it must be unknown whether the sink removes duplicates"
    ),
    _seconds("shared_for", _MINUTE, "how long a checkpoint must be shared"),
    # ---- freshness objective
    _seconds(
        "freshness_seconds", 15 * _MINUTE, "target, where the budget is not longer", per_query=True
    ),
    Parameter("freshness_objective", 0.99, "ratio", "share of the time that must be fresh"),
    _seconds("burn_step", _MINUTE, "resolution of windows up to two hours"),
    _seconds("burn_coarse_step", 5 * _MINUTE, "resolution of longer windows"),
    _seconds("burn_interval", 2 * _MINUTE, "how often windows of days are evaluated"),
    _seconds("burn_5m", 5 * _MINUTE, "short window of the fast burn"),
    _seconds("burn_30m", 30 * _MINUTE, "short window of the slow burn that pages"),
    _seconds("burn_1h", _HOUR, "long window of the fast burn"),
    _seconds("burn_2h", 2 * _HOUR, "short window of the burn over a day"),
    _seconds("burn_6h", 6 * _HOUR, "long window of the slow burn; short one of three days"),
    _seconds("burn_1d", _DAY, "long window of the burn over a day"),
    _seconds("burn_3d", 3 * _DAY, "long window of the burn over three days"),
    Parameter("burn_fast", 14.4, "ratio", "times the budget's pace: 2 % of a month in an hour"),
    Parameter("burn_slow", 6, "ratio", "5 % of a month in six hours"),
    Parameter("burn_day", 3, "ratio", "10 % of a month in a day"),
    Parameter("burn_three_days", 1, "ratio", "10 % of a month in three days"),
    _seconds("burn_day_for", _HOUR, "how long the burn over a day must hold"),
    _seconds("burn_three_days_for", 3 * _HOUR, "how long the burn over three days must hold"),
    # ---- agent
    _seconds("agent_down_for", 10 * _MINUTE, "how long a scrape must fail"),
    _seconds("blind_for", 5 * _MINUTE, "how long the agent must see nothing"),
    _seconds("heartbeat_seconds", 5 * _MINUTE, "age of the agent's heartbeat that is too old"),
    _seconds("dropped_window", 10 * _MINUTE, "window in which dropped events are counted"),
    Parameter(
        "skew_seconds",
        60,
        "count",
        "seconds by which the clocks of driver and Prometheus may differ; no time_scale changes them",
    ),
    _seconds("skew_for", 5 * _MINUTE, "how long they must differ"),
    # ---- Alertmanager
    _seconds("group_wait", 30, "how long Alertmanager collects before it pages"),
    _seconds("group_interval", 5 * _MINUTE, "how long before news of a group is sent"),
    _seconds("repeat_interval", 4 * _HOUR, "how long before a page is repeated"),
    _seconds("watchdog_interval", _MINUTE, "how often the dead man's switch is pressed"),
    # ---- links
    Parameter("grafana_url", "http://localhost:3000", "text", "where the dashboards are served"),
    Parameter("runbook_url", "docs/runbooks", "text", "where the runbooks are served"),
    Parameter("tempo_uid", "tempo", "text", "uid of Grafana's trace data source"),
    Parameter(
        "pager_url", "http://localhost:9099/page", "text", "webhook that stands for the pager"
    ),
    Parameter("ticket_url", "http://localhost:9099/ticket", "text", "webhook that opens tickets"),
    Parameter("deadman_url", "http://localhost:9099/deadman", "text", "the dead man's switch"),
)

BY_NAME: Mapping[str, Parameter] = {parameter.name: parameter for parameter in PARAMETERS}
PER_QUERY = tuple(parameter.name for parameter in PARAMETERS if parameter.per_query)


def default_number(name: str) -> float:
    """The default of a parameter that is a number; raises `TypeError` for text."""
    value = BY_NAME[name].default
    if isinstance(value, str):
        raise TypeError(f"the rule parameter {name} is text, not a number")
    return value
