"""Freshness: one page for one cause, and none for what was not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from promtool import RuleTest, rules_of, run
from rule_checks import check_silent, fired
from rule_scenarios import BEGIN, blind, hang_with_data
from rule_worlds import DAY, HOUR, MINUTE, Values, between, healthy, input_series, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.timeout(600)

BURN, STALL = "FreshnessBudgetBurn", "QueryStalled"
PAGES = 'severity="critical"'
ONE = ',variant="1h"'


def triggered(
    interval: int, batch: int, hangs_at: int, threshold: int | None = None
) -> Callable[[int], Values]:
    """A trigger every `interval` whose batch takes `batch` seconds; from `hangs_at` on, one that never ends."""
    budget = max(300, 3 * interval + batch + 10)

    def world(t: int) -> Values:
        seen = min(t, hangs_at)
        trigger = max(0, (seen - batch) // interval * interval)  # the newest that was committed
        ended = trigger + batch if seen >= batch else 0
        values = healthy(ended)
        values |= {
            "query_started_timestamp_seconds": 0,
            "agent_heartbeat_timestamp_seconds": t,
            "last_event_timestamp_seconds": ended,
            "last_commit_timestamp_seconds": ended,
            "freshness_lag_seconds": t - trigger,
            "trigger_interval_seconds": interval,
            "silence_budget_seconds": budget,
            "batch_duration_max_seconds": batch,
        }
        if threshold is not None:
            values['alert_threshold{name="freshness_seconds"}'] = threshold
        if t - ended > budget:
            verdict(values, "stalled")
        return values

    return world


@pytest.mark.parametrize(
    ("interval", "batch"),
    [(10, 3), (5 * MINUTE, MINUTE), (HOUR, 5 * MINUTE), (HOUR, 40 * MINUTE), (2 * HOUR, HOUR)],
)
@pytest.mark.parametrize("threshold", [None, 0])
def test_hung_batch_stalls_before_it_burns(interval, batch, threshold, tmp_path):
    """Whatever the trigger, the cause fires first and goes on: it inhibits the symptom.

    Also where the output may be no older than a trigger and a batch: an objective that is just met.
    """
    hangs_at = 4 * HOUR
    most = interval + 2 * batch if threshold is not None else None
    world = triggered(interval, batch, hangs_at, most)
    end = hangs_at + MINUTE * 40 + 3 * interval + 2 * batch
    step = 60
    test = RuleTest(input_series(world, end, step), step)
    firing = 'ALERTS{{alertstate="firing",alertname="SparkStream{}"}}'
    burnt_alone = f"{firing.format(BURN)[:-1]},{PAGES}}} unless on (query) {firing.format(STALL)}"
    test.expectations.append(
        {
            "eval_time": f"{end}s",
            "expr": f"count(count_over_time(({burnt_alone})[{end}s:{step}s]))",
            "exp_samples": [],
        }
    )
    test.expect_value(end, f"count({firing.format(STALL)})", 1)
    test.expect_value(end, f'count({firing.format(BURN)[:-1]},variant="1h"}})', 1)
    rules = rules_of(tmp_path, (f"SparkStream{BURN}", f"SparkStream{STALL}"))
    run(tmp_path, step, test, rules=rules)


def test_slow_query_that_commits_pages(tmp_path):
    """Batches of twenty minutes where the output may be ten minutes old: it commits, and is stale."""
    world = triggered(10, 20 * MINUTE, 9 * DAY, 10 * MINUTE)
    fired(tmp_path, world, BURN, {HOUR: 2, 2 * HOUR: 2}, labels=f",{PAGES}")
    fired(tmp_path, world, STALL, {HOUR: 0})


def test_trigger_longer_than_the_objective_pages(tmp_path):
    """An hour between triggers where the output may be thirty minutes old: no hang, and stale half of the time."""
    world = triggered(HOUR, 5 * MINUTE, 9 * DAY, 30 * MINUTE)
    fired(tmp_path, world, BURN, {2 * HOUR + 58 * MINUTE: 2}, labels=f",{PAGES}")


def test_long_batch_that_works_pages_once_it_is_no_stall(tmp_path):
    """Its tasks finish, so no stall will explain it: the page is of freshness, and comes with the decision."""
    hanging = triggered(HOUR, 5 * MINUTE, 6 * HOUR)

    def world(t: int) -> Values:
        values = {**hanging(t), "inflight_last_task_timestamp_seconds": t}
        verdict(values, "running")
        return values

    decided = 5 * HOUR + 5 * MINUTE + 3 * HOUR + 310 + 3 * MINUTE  # last event, budget, `for`, keep
    whole = decided // MINUTE * MINUTE
    fired(tmp_path, world, STALL, {10 * HOUR: 0}, step=60)
    fired(tmp_path, world, BURN, {whole: 0, whole + 5 * MINUTE: 1}, step=60, labels=ONE)


def unseen(begin: int, end: int) -> Callable[[int], Values]:
    """From `begin` to `end` the agent can't see the query; nobody knows how old its output is."""
    return between(begin, end, blind)


def test_blind_time_is_neither_fresh_nor_stale(tmp_path):
    """It leaves the window: of forty minutes that were seen, ten were stale."""

    def world(t: int) -> Values:
        values = unseen(BEGIN, BEGIN + 20 * MINUTE)(t)
        if BEGIN + 20 * MINUTE <= t < BEGIN + 30 * MINUTE:
            values["freshness_lag_seconds"] = 2000
        return values

    end = BEGIN + 30 * MINUTE
    test = RuleTest(input_series(world, end, 30), 30)
    test.expect_value(BEGIN + 10 * MINUTE, "count(query:streamgauge_stale:bool)", 0)
    test.expect_value(
        end, "round(100 * sum(query:streamgauge_stale:ratio1h offset 1m))", round(100 * 10 / 40)
    )
    run(tmp_path, 30, test)


def test_blind_agent_burns_no_budget(tmp_path):
    """Hours of it, with an agent that still serves an age: AgentBlind is the page, and the only one."""

    def world(t: int) -> Values:
        values = unseen(BEGIN, DAY)(t)
        if t >= BEGIN:
            hang_with_data(t, values)
            blind(t, values)
            values["freshness_lag_seconds"] = t - BEGIN
        return values

    fired(tmp_path, world, "AgentBlind", {6 * HOUR: 1}, step=60)
    for alert in (BURN, STALL, "CommitsStalled"):
        fired(tmp_path, world, alert, {HOUR: 0, 3 * HOUR: 0, 6 * HOUR: 0}, step=60)


def test_stale_minute_after_a_long_blindness_is_no_page(tmp_path):
    """Half of the window must have been seen: one minute of it is not all that is known."""

    def world(t: int) -> Values:
        values = unseen(BEGIN, BEGIN + 3 * HOUR)(t)
        if BEGIN + 3 * HOUR <= t < BEGIN + 3 * HOUR + 3 * MINUTE:
            values["freshness_lag_seconds"] = 2000
        return values

    fired(tmp_path, world, BURN, {BEGIN + 3 * HOUR + 2 * MINUTE: 0}, step=60)


def test_short_blindness_is_silent(tmp_path):
    """Two minutes of it set off nothing, then or later."""
    check_silent(tmp_path, {"blink": unseen(BEGIN, BEGIN + 2 * MINUTE)}, 3 * HOUR, 30)
