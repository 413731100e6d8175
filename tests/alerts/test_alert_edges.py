"""The traps: what rules like these get wrong elsewhere, one test each."""

from __future__ import annotations

import pytest
from promtool import RuleTest, rules_of, run
from rule_checks import check, failed, page_of
from rule_scenarios import BEGIN, KAFKA, SAVE, hang, hang_with_data
from rule_worlds import (
    DAY,
    HOUR,
    MINUTE,
    Values,
    after_restart,
    at_instance,
    between,
    gone,
    healthy,
    info,
    input_series,
    verdict,
)

from streamgauge.grafana.alerts.prometheus import Export
from streamgauge.grafana.alerts.settings import Settings

# Promtool is quick, but not on a machine that does something else.
pytestmark = pytest.mark.timeout(600)

# A week of two days: the same comparison in a fraction of the time.
SHORT_WEEK = Export(Settings({"baseline_window": 2.0 * DAY, "cost_week": 2.0 * DAY}))
LATE = f"state_rows_dropped_by_watermark_total{SAVE}"


def test_failed_query_pages_after_its_driver_is_gone(tmp_path):
    """The driver that exits with its failed query takes the series along, but not the page."""

    def world(t: int) -> Values:
        values = healthy(t)
        if t >= BEGIN:
            failed(values)
        if t >= BEGIN + 2 * MINUTE:
            gone(values)
        return values

    check(tmp_path, world, "QueryFailed", 12 * HOUR, 1, step=60)


@pytest.mark.parametrize("alert", ["QueryFailed", "RestartLoop"])
def test_page_of_a_driver_that_is_gone_tells_its_last_run(tmp_path, alert):
    """What it last said is asked for, not what it says now, which is nothing."""

    def world(t: int) -> Values:
        values = healthy(t)
        values["query_started_timestamp_seconds"] = min(t, BEGIN) // 300 * 300
        if t >= BEGIN:
            failed(values)
        if t >= BEGIN + 2 * MINUTE:
            gone(values)
        return values

    page = page_of(tmp_path, world, alert, BEGIN + 8 * MINUTE)
    assert "run started at 1970-01-01 00:30:00" in page


def test_failed_query_pages_for_as_long_as_it_is_down(tmp_path):
    """Two days later it still pages: no window runs out while the agent answers."""
    world = between(BEGIN, 9 * DAY, lambda _, values: failed(values))
    check(tmp_path, world, "QueryFailed", 2 * DAY, 1, step=300)


def test_owner_is_the_newer_run_when_two_infos_are_there(tmp_path):
    """While an old and a new driver both answer, the alert fires and belongs to the new team."""

    def world(t: int) -> Values:
        values = healthy(t)
        fresh = {
            at_instance(key, "new:9465"): v for key, v in healthy(t).items() if "info" not in key
        }
        fresh[at_instance("query_started_timestamp_seconds", "new:9465")] = BEGIN
        fresh[at_instance(info(run_id="r2", team="search"), "new:9465")] = 1
        late = {LATE: 100.0 * t, at_instance(LATE, "new:9465"): 100.0 * t}
        return {**values, **fresh, **late} if t >= BEGIN else {**values, LATE: 100.0 * t}

    check(tmp_path, world, "LateRowsDropped", HOUR, 1, labels=',team="search"')


def test_alert_fires_without_an_info_series(tmp_path):
    """A query of which nothing is known but that it failed pages, without an owner."""

    def world(t: int) -> Values:
        values = healthy(t)
        values[info()] = None
        if t >= BEGIN:
            failed(values)
        return values

    check(tmp_path, world, "QueryFailed", HOUR, 1, labels=',team=""')


def test_restarts_inside_one_driver_are_counted(tmp_path):
    """A query that is started again faster than it is scraped is a loop too."""

    def world(t: int) -> Values:
        starts = max(0, t - BEGIN) // 30
        began = BEGIN + 30 * starts if starts else 0
        return {
            **healthy(t),
            "query_starts_total": 1 + starts,
            "query_started_timestamp_seconds": began,
        }

    check(tmp_path, world, "RestartLoop", BEGIN + 2 * MINUTE, 1)


@pytest.mark.parametrize(
    ("alert", "every", "after"),
    [("RestartLoop", 5 * MINUTE, 11 * MINUTE), ("QueryVanished", DAY, 7 * MINUTE)],
)
def test_driver_that_dies_between_two_evaluations_is_seen(alert, every, after, tmp_path):
    """The rules run every thirty seconds; a driver that was scraped once must not slip through."""

    def world(t: int) -> Values:
        values = healthy(t)
        age = (t - BEGIN) % every
        values["query_started_timestamp_seconds"] = t - age
        if t < BEGIN or age != 15:
            gone(values)
        return values

    test = RuleTest(input_series(world, BEGIN + after, 15), 15)
    test.expect(BEGIN + after, f'alertname="SparkStream{alert}",team="payments"', 1)
    run(tmp_path, 30, test, rules=rules_of(tmp_path, f"SparkStream{alert}"))


def test_blind_agent_is_not_called_a_stalled_query(tmp_path):
    """No events because the listener is gone: that is the agent's fault, and said so."""

    def world(t: int) -> Values:
        values = between(BEGIN, DAY, hang_with_data)(t)
        if t >= BEGIN:
            verdict(values, "blind")
        return values

    for alert, count in (("QueryStalled", 0), ("CommitsStalled", 0), ("AgentBlind", 1)):
        check(tmp_path, world, alert, HOUR, count)


def test_blocked_worker_is_blind(tmp_path):
    """The agent answers, but its heart stopped."""

    def world(t: int) -> Values:
        beat = min(t, BEGIN)
        return {**healthy(t), "agent_heartbeat_timestamp_seconds": beat}

    check(tmp_path, world, "AgentBlind", BEGIN + 10 * MINUTE, 0)
    check(tmp_path, world, "AgentBlind", BEGIN + 11 * MINUTE, 1)


def test_slow_batch_that_stops_finishing_tasks_is_stalled(tmp_path):
    """The last task counts, not the batch's age: the page comes one budget after it."""

    def world(t: int) -> Values:
        values = between(BEGIN, DAY, hang)(t)
        values["inflight_last_task_timestamp_seconds"] = min(t, HOUR)
        verdict(values, "running" if t <= HOUR + 5 * MINUTE else "stalled")
        return values

    check(tmp_path, world, "QueryStalled", HOUR + 7 * MINUTE, 0)
    check(tmp_path, world, "QueryStalled", HOUR + 7 * MINUTE + 30, 1)


def test_query_can_override_a_threshold(tmp_path):
    """A query that may drop a tenth of its rows says so through the agent, without new rules."""

    def world(t: int) -> Values:
        return {**healthy(t), LATE: 5.0 * t}

    def tolerant(t: int) -> Values:
        return {**world(t), 'alert_threshold{name="late_ratio"}': 0.1}

    check(tmp_path, world, "LateRowsDropped", HOUR, 1)
    check(tmp_path, tolerant, "LateRowsDropped", HOUR, 0)


def test_more_load_is_not_a_higher_cost(tmp_path):
    """Twice the rows in twice the time: longer batches, but no slower code."""
    begin = 2 * DAY + 12 * HOUR

    def world(t: int) -> Values:
        values = healthy(t)
        for key in ("batch_duration_seconds_sum", "input_rows_total"):
            values[key] = healthy(t)[key] + healthy(max(0, t - begin))[key]  # type: ignore[operator]
        return values

    at = begin + 2 * HOUR
    check(tmp_path, world, "ProcessingCostRegression", at, 0, step=300, export=SHORT_WEEK)
    check(tmp_path, world, "BatchDurationRegression", at, 1, step=300, export=SHORT_WEEK)


def test_less_load_is_not_a_higher_cost(tmp_path):
    """A tenth of the rows in the same time costs more a row, and is nobody's fault."""
    begin = 2 * DAY + 12 * HOUR

    def world(t: int) -> Values:
        lost = 0.9 * (healthy(max(0, t - begin))["input_rows_total"] or 0)
        return {**healthy(t), "input_rows_total": (healthy(t)["input_rows_total"] or 0) - lost}

    at = begin + 2 * HOUR
    check(tmp_path, world, "ProcessingCostRegression", at, 0, step=300, export=SHORT_WEEK)
    check(tmp_path, world, "ThroughputDrop", at, 0, step=300, export=SHORT_WEEK)


def test_watermark_that_was_never_set_is_stuck(tmp_path):
    """Rows with event time come, but one silent input keeps the watermark from ever existing."""

    def world(t: int) -> Values:
        return {**healthy(t), "watermark_timestamp_seconds": None}

    check(tmp_path, world, "WatermarkStuck", HOUR, 1)


def test_falling_behind_is_seen_where_the_backlog_is_unknown(tmp_path):
    """The verdict speaks where no source tells its backlog."""

    def world(t: int) -> Values:
        values = {**healthy(t), f"source_backlog_rows{KAFKA}": None}
        verdict(values, "falling_behind")
        return values

    check(tmp_path, world, "FallingBehind", 20 * MINUTE, 1)


def test_falling_behind_survives_a_verdict_that_flickers(tmp_path):
    """While a batch is longer than any before, the verdict is `running`; the trend goes on."""

    def world(t: int) -> Values:
        values = {**healthy(t), f"source_backlog_rows{KAFKA}": None}
        verdict(values, "running" if t % 180 == 0 else "falling_behind")
        return values

    check(tmp_path, world, "FallingBehind", 40 * MINUTE, 1)


def test_scheduled_job_that_fails_again_and_again_is_a_loop(tmp_path):
    """`availableNow` may start as often as it likes, unless it fails: then the verdict is a loop."""

    def world(t: int) -> Values:
        began = t // (6 * MINUTE) * 6 * MINUTE
        values = healthy(t)
        values[info()] = None
        values[info(run_id=f"r{began}", trigger="available_now")] = 1
        values["query_started_timestamp_seconds"] = began
        if t - began > 2 * MINUTE:
            failed(values)
        return values

    check(tmp_path, world, "RestartLoop", HOUR, 1)


@pytest.mark.parametrize(
    ("checkpoint", "one", "other", "count"),
    [
        # The same deployment twice, as when an old pod does not die: one query, two runs.
        ("s3a://data/one", ("shop", "old:9465", "r1"), ("shop", "new:9465", "r2"), 1),
        # Two applications.
        ("s3a://data/one", ("shop", "a:9465", "r1"), ("copy", "b:9465", "r2"), 2),
        ("file:/data/one", ("shop", "a:9465", "r1"), ("copy", "a:9466", "r2"), 2),
        # Equal paths on the disks of two hosts; one driver that is scraped twice; nothing known.
        ("file:/data/one", ("shop", "a:9465", "r1"), ("shop", "b:9465", "r2"), 0),
        ("s3a://data/one", ("shop", "a:9465", "r1"), ("shop", "pod-a:9465", "r1"), 0),
        ("", ("shop", "a:9465", "r1"), ("copy", "b:9465", "r2"), 0),
    ],
)
def test_checkpoint_shared_by_two_drivers_is_seen(checkpoint, one, other, count, tmp_path):
    """Neither agent can see the other; Prometheus sees both, and what is only alike is not shared."""
    series = []
    for app, instance, run_id in (one, other):
        place = info(run_id=run_id, checkpoint=checkpoint)
        world = {at_instance(place, instance): 1, at_instance("query_active", instance): 1}
        world[at_instance("query_started_timestamp_seconds", instance)] = 0
        series += input_series(lambda _, world=world: world, HOUR, 30, app=app)
    test = RuleTest(series, 30)
    test.expect(HOUR, 'alertname="SparkStreamCheckpointShared"', count)
    run(tmp_path, 30, test, rules=rules_of(tmp_path, "SparkStreamCheckpointShared"))


def test_each_replay_of_a_new_driver_warns(tmp_path):
    """Its counter is 1 when it is first scraped, as that of the driver before it was."""

    def world(t: int) -> Values:
        return {
            **(after_restart(t, t // (4 * HOUR) * 4 * HOUR) if t >= 4 * HOUR else healthy(t)),
            "sink_idempotent": 0,
        }

    for hours, count in ((3, 0), (4.5, 1), (6, 0), (8.5, 1), (10, 0)):
        check(tmp_path, world, "DuplicateRisk", int(hours * HOUR), count, step=60)


def test_batch_longer_than_the_objective_burns_the_budget(tmp_path):
    """Its tasks finish and it is well; what people read is older than promised all the same."""

    def world(t: int) -> Values:
        values = between(BEGIN, DAY, hang_with_data)(t)
        values["inflight_last_task_timestamp_seconds"] = t
        verdict(values, "running")
        return {**values, "freshness_lag_seconds": max(20, t - BEGIN)}

    check(tmp_path, world, "FreshnessBudgetBurn", 2 * HOUR, 1, labels=',variant="1h"')
    check(tmp_path, world, "QueryStalled", 2 * HOUR, 0)


def test_reset_is_seen_by_the_agents_own_counter(tmp_path):
    """An unnamed location that was emptied under the same id is counted by the agent."""

    def world(t: int) -> Values:
        return {**healthy(t), "checkpoint_resets_total": float(t >= BEGIN)}

    check(tmp_path, world, "CheckpointReset", BEGIN - 30, 0)
    check(tmp_path, world, "CheckpointReset", BEGIN, 1)


def test_rules_run_faster_with_one_number(tmp_path):
    """With time_scale 1/60 a page that takes 31 minutes comes after 31 seconds."""
    scaled = between(30, 100, lambda _, values: failed(values))
    test = RuleTest(input_series(scaled, 60, 1), 1)
    test.expect(30, 'alertname="SparkStreamQueryFailed"', 0)
    test.expect(31, 'alertname="SparkStreamQueryFailed"', 1)
    fast = Export(Settings(time_scale=1 / 60))
    run(tmp_path, 1, test, rules=rules_of(tmp_path, "SparkStreamQueryFailed", fast))
