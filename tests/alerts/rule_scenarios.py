"""One fault for each alert, with the minute at which it must page and the minute it must be over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from rule_worlds import (
    BATCH_EVERY,
    DAY,
    HOUR,
    MINUTE,
    ROWS_A_BATCH,
    STOPPED,
    Values,
    after_restart,
    between,
    frozen,
    gone,
    healthy,
    info,
    verdict,
)

from streamgauge.grafana.alerts.prometheus import Export
from streamgauge.grafana.alerts.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN = 30 * MINUTE
KAFKA = '{source="0-kafka"}'
FILES = '{source="1-files"}'
FAILURE = (
    'query_failure_info{error_class="FOREACH_BATCH_USER_FUNCTION_ERROR",'
    'cause_class="java.io.IOException",message="No space left on device"}'
)
SAVE = '{operator="0-stateStoreSave"}'


@dataclass(frozen=True)
class Scenario:
    """A world in which one alert fires. Times in seconds; `step` is scrape and evaluation.

    `fires` is derived by hand from the rule: the first evaluation at which its condition holds, plus
    its `for`. `over` is when it must have resolved.
    """

    alert: str
    world: Callable[[int], Values]
    fires: int
    over: int
    step: int = 30
    labels: str = 'team="payments",env="prod",tier="1",query="orders"'
    of: str = ""
    export: Export | None = None  # None: the rules as shipped

    @property
    def name(self) -> str:
        """The alert, and which of its faults where there are several."""
        return f"{self.alert} {self.of}".strip()


def _down(values: Values) -> None:
    frozen(values, BEGIN, "_total", "batch_duration_seconds_", "last_", "watermark_t", "event_time")
    values["query_active"] = 0
    values["query_ended_timestamp_seconds"] = BEGIN


def fail(_: int, values: Values) -> None:
    """Ended at BEGIN with an error in user code."""
    _down(values)
    verdict(values, "failed")
    values[FAILURE] = 1


def _stop(_: int, values: Values) -> None:
    _down(values)
    values[STOPPED] = 1
    verdict(values, "stopped")


def _vanish(_: int, values: Values) -> None:
    gone(values)


def hang(t: int, values: Values) -> None:
    """No event since BEGIN; a trigger runs; nothing says whether data waits."""
    frozen(values, BEGIN, "_total", "batch_duration_seconds_", "last_", "watermark_t", "event_time")
    values["inflight_batch_seconds"] = t - BEGIN
    values["query_data_available"] = 0
    verdict(values, "stalled")
    values['query_reason_info{state="stalled",reason="batch 60 hangs: no task finished"}'] = 1


def hang_with_data(t: int, values: Values) -> None:
    """The same in the middle of a batch."""
    hang(t, values)
    values["query_data_available"] = 1


def _idle_with_backlog(t: int, values: Values) -> None:
    frozen(values, BEGIN, "_total", "batch_duration_seconds_", "last_commit", "watermark_t")
    values["last_idle_timestamp_seconds"] = t
    values["query_data_available"] = 0
    values[f"source_backlog_rows{KAFKA}"] = 5000


def _stuck(t: int, values: Values) -> None:
    hang_with_data(t, values)
    values["silence_budget_seconds"] = 2 * HOUR


def _source_stands(_: int, values: Values) -> None:
    frozen(values, BEGIN, "source_input_rows", "input_rows_total")
    values[f"source_backlog_rows{KAFKA}"] = 500


def _backlog_grows(t: int, values: Values) -> None:
    values[f"source_backlog_rows{KAFKA}"] = 10_000 * (t - BEGIN) / BATCH_EVERY


def _unread_grows(unit: str, pace: float) -> Callable[[int, Values], None]:
    """A source that reports no rows: what is unread grows by `pace` each second, from a first look on."""

    def change(t: int, values: Values) -> None:
        values[f"source_backlog_rows{KAFKA}"] = None
        values[f"source_backlog_{unit}{FILES}"] = pace * (t - BEGIN)

    return change


def _slow(seconds: float, begin: int = BEGIN) -> Callable[[int, Values], None]:
    def change(t: int, values: Values) -> None:
        old = values["batch_duration_seconds_sum"] or 0
        values["batch_duration_seconds_sum"] = old + seconds * (t - begin) / BATCH_EVERY

    return change


def _retention(_: int, values: Values) -> None:
    values[f"source_lag_seconds{KAFKA}"] = 3000
    values[f"source_retention_headroom_seconds{KAFKA}"] = 2000


def _watermark_stands(_: int, values: Values) -> None:
    frozen(values, BEGIN, "watermark_t")


def _future(t: int, values: Values) -> None:
    if t == BEGIN:
        values["event_time_max_timestamp_seconds"] = t + 2 * HOUR
    values["watermark_timestamp_seconds"] = BEGIN + 2 * HOUR - 60


def _late(t: int, values: Values) -> None:
    dropped = 0.05 * ROWS_A_BATCH * (t - BEGIN) / BATCH_EVERY
    values[f"state_rows_dropped_by_watermark_total{SAVE}"] = dropped


def _all_late(t: int, values: Values) -> None:
    frozen(values, BEGIN, "state_rows_updated", "state_rows_removed")
    _late(t, values)


def _state_grows(t: int, values: Values) -> None:
    values[f"state_rows{SAVE}"] = 2_000_000 + 300_000 * (t - 30 * HOUR) / HOUR


def _state_large(_: int, values: Values) -> None:
    values[f"state_memory_bytes{SAVE}"] = 20 * 2**30


def _state_large_on_disk(_: int, values: Values) -> None:
    values[f"state_rocksdb_sst_file_bytes{SAVE}"] = 300 * 2**30


def _never_evicts(t: int, values: Values) -> None:
    frozen(values, 2 * HOUR, "state_rows_removed")
    values[f"state_rows{SAVE}"] = 2_000_000 + t


def _commits_slowly(t: int, values: Values) -> None:
    values[f"state_commit_seconds_total{SAVE}"] = (0.4 * t + 7.6 * (t - BEGIN)) / BATCH_EVERY


def _snapshots_lag(_: int, values: Values) -> None:
    values[f"state_snapshot_lag_versions{SAVE}"] = 60


def _fewer_rows(begin: int) -> Callable[[int, Values], None]:
    def change(t: int, values: Values) -> None:
        lost = 0.8 * ROWS_A_BATCH * (t - begin) / BATCH_EVERY
        values["input_rows_total"] = (values["input_rows_total"] or 0) - lost
        _slow(26, begin)(t, values)

    return change


def _new_checkpoint(t: int) -> Values:
    return healthy(t) if t < BEGIN else {info(): None, **after_restart(t, BEGIN, query_id="q2")}


def _shared(_: int, values: Values) -> None:
    values["checkpoint_shared"] = 1


def replayed(idempotent: float | None) -> Callable[[int], Values]:
    """A batch is run again at BEGIN, into a sink that removes duplicates, or not, or who knows."""

    def world(t: int) -> Values:
        values = healthy(t)
        values["sink_idempotent"] = idempotent
        values["batches_replayed_total"] = float(t >= BEGIN)
        return values

    return world


def _stale(_: int, values: Values) -> None:
    values["freshness_lag_seconds"] = 1000


def blind(_: int, values: Values) -> None:
    """The JVM does not answer; what is not seen is not judged."""
    verdict(values, "blind")
    values["freshness_lag_seconds"] = None
    values['query_reason_info{state="blind",reason="the JVM does not answer"}'] = 1


def _skewed(seconds: float) -> Callable[[int, Values], None]:
    def change(t: int, values: Values) -> None:
        values["agent_clock_timestamp_seconds"] = t + seconds

    return change


def _dropped(t: int) -> Values:
    values = healthy(t)
    values['agent_events_dropped_total{kind="progress"}'] = 3.0 * (t >= BEGIN)
    return values


def _restarts(*times: int) -> Callable[[int], Values]:
    """The whole driver starts again at each of the times; counters never get past 1."""

    def world(t: int) -> Values:
        past = [at for at in times if at <= t]
        return {info(): None, **after_restart(t, past[-1])} if past else healthy(t)

    return world


def _fault(
    alert: str,
    change: Callable[[int, Values], None],
    fires: float,
    over: float,
    until: float = 100,
    **more: object,
) -> Scenario:
    world = between(BEGIN, int(until * MINUTE), change)
    return Scenario(alert, world, int(fires * MINUTE), int(over * MINUTE), **more)  # type: ignore[arg-type]


def _against_last_week(week: int, **more: Any) -> tuple[Scenario, Scenario]:
    """Two hours that are worse than the same hours of a day and of a week ago."""
    begin = week + 12 * HOUR
    over = begin + 3 * HOUR + 5 * MINUTE
    slower = between(begin, begin + 2 * HOUR, _slow(6, begin))
    fewer = between(begin, begin + 2 * HOUR, _fewer_rows(begin))
    return (
        # The cost over an hour passes 1.5 times the old one after more than ten minutes.
        Scenario("ProcessingCostRegression", slower, begin + 45 * MINUTE, over, step=300, **more),
        # The rate over an hour passes half of the old one after more than 37.5 minutes.
        Scenario("ThroughputDrop", fewer, begin + 70 * MINUTE, over, step=300, **more),
    )


def marked(*scenarios: Scenario) -> list[Any]:
    """The scenarios as parameters; those of a week take long and run with the integration tests."""
    return [
        pytest.param(one, id=one.name, marks=[pytest.mark.integration] * (one.fires > 3 * DAY))
        for one in scenarios
    ]


APP = 'team="payments"'
SCENARIOS = (
    _fault("QueryFailed", fail, 31, 101.5),
    _fault("QueryVanished", _vanish, 35, 101.5),
    _fault("QueryMissing", _stop, 40, 100),
    Scenario(
        "RestartLoop",
        _restarts(30 * MINUTE, 36 * MINUTE, 42 * MINUTE),
        42 * MINUTE,
        58 * MINUTE,
    ),
    _fault("QueryStalled", hang, 37.5, 101.5),
    _fault("CommitsStalled", hang_with_data, 37.5, 101.5),
    _fault("CommitsStalled", _idle_with_backlog, 47, 101.5, of="idle with a backlog"),
    _fault("BatchStuck", _stuck, 41.5, 100),
    _fault("SourceNotAdvancing", _source_stands, 60, 101),
    # 100 rows a second are processed, so 60,000 drain in ten minutes: more than that from 33.5 on.
    _fault("FallingBehind", _backlog_grows, 48.5, 112, until=100),
    # What is unread passes 100 files, 1 GiB, 50 versions and stays there for all of 15 minutes.
    _fault("FallingBehind", _unread_grows("files", 1), 62, 125, of="in files"),
    _fault("FallingBehind", _unread_grows("bytes", 10_000_000), 62, 125, of="in bytes"),
    _fault("FallingBehind", _unread_grows("versions", 1), 61, 125, of="in versions"),
    # Two seconds of thirty become 28: more than half of 15 minutes after 7.5 of them.
    _fault("BatchOverrun", _slow(26), 53, 116),
    _fault("RetentionRisk", _retention, 35, 100),
    _fault("WatermarkStuck", _watermark_stands, 70, 101),
    _fault("FutureEventTime", _future, 30, 100),
    # 5 % of the rows: the share over 15 minutes passes 1 % after 3 minutes.
    _fault("LateRowsDropped", _late, 48.5, 116),
    _fault("AllRowsLate", _all_late, 50, 101),
    # A line through the last six hours reaches twice the state within a day after 165 minutes.
    Scenario(
        "StateBloat/prediction",
        between(30 * HOUR, 40 * HOUR, _state_grows),
        33 * HOUR + 45 * MINUTE,
        40 * HOUR,
        step=300,
    ),
    _fault("StateBloat/size", _state_large, 45, 100),
    _fault("StateBloat/size", _state_large_on_disk, 45, 100, of="on disk"),
    Scenario(
        "StateNotEvicting",
        between(2 * HOUR, 30 * HOUR, _never_evicts),
        28 * HOUR + 30 * MINUTE,
        30 * HOUR + 5 * MINUTE,
        step=300,
    ),
    # 0.1 s a store becomes 2 s: the mean of 15 minutes passes 1 s after 7.1 of them.
    _fault("StateCommitSlow", _commits_slowly, 67.5, 116),
    _fault("SnapshotLag", _snapshots_lag, 60, 100),
    Scenario(
        "BatchDurationRegression",
        between(30 * HOUR, 33 * HOUR, _slow(6, 30 * HOUR)),
        30 * HOUR + 20 * MINUTE,
        33 * HOUR + 20 * MINUTE,
        step=300,
    ),
    *_against_last_week(7 * DAY),
    Scenario("CheckpointReset", _new_checkpoint, BEGIN, BEGIN + HOUR + MINUTE),
    _fault("CheckpointShared", _shared, 31, 100),
    Scenario("DuplicateRisk", replayed(0), BEGIN, BEGIN + HOUR + MINUTE),
    Scenario("DuplicateRisk/unknown", replayed(None), BEGIN + MINUTE, BEGIN + HOUR + MINUTE),
    # 9 of 60 minutes are more than 14.4 %: stale at 30, 31 … 38. Over as soon as it is fresh again.
    _fault("FreshnessBudgetBurn/1h", _stale, 38, 100),
    _fault("FreshnessBudgetBurn/6h", _stale, 50, 100),
    _fault("FreshnessBudgetBurn/1d", _stale, 130, 421, until=300, step=60),
    _fault("FreshnessBudgetBurn/3d", _stale, 250, 661, until=300, step=60),
    _fault("AgentDown", _vanish, 40, 100, labels=APP),
    _fault("AgentBlind", blind, 35, 101.5),
    _fault("ClockSkew", _skewed(90), 35, 100, labels=APP),
    _fault("ClockSkew", _skewed(-3600), 35, 100, labels=APP, of="behind"),
    Scenario("AgentEventsDropped", _dropped, BEGIN, 41 * MINUTE, labels=APP),
)

# The same with a week of two days, which takes seconds.
SHORT_WEEKS = _against_last_week(
    2 * DAY,
    of="after a week of two days",
    export=Export(Settings({"baseline_window": 2.0 * DAY, "cost_week": 2.0 * DAY})),
)
