"""A driver's clock that steps: ages are the driver's own, so nothing else pages and nothing is missed."""

from __future__ import annotations

import pytest
from promtool import RuleTest, run
from rule_checks import ANY_BUT_WATCHDOG, check_series_silent, fired
from rule_scenarios import BEGIN, hang_with_data
from rule_worlds import DAY, HOUR, MINUTE, Values, between, healthy, input_series, with_ages

pytestmark = pytest.mark.timeout(600)

NO_SKEW = 'alertname!="SparkStreamClockSkew"'


def stepped(seconds: int, at: int = BEGIN):
    """From `at` on the driver's clock is off by `seconds`; what it measures by itself is right."""
    return lambda world: lambda t: _step(with_ages(t, world(t)), seconds if t >= at else 0)


def _step(values: Values, seconds: int) -> Values:
    for key, value in values.items():
        event_time = "watermark" in key or "event_time" in key
        if "timestamp_seconds" in key and value is not None and not event_time:
            # What was noted before the step keeps its time.
            values[key] = value + seconds if value >= BEGIN or "clock" in key else value
    return values


@pytest.mark.parametrize("seconds", [HOUR, -HOUR, 90, -90])
def test_step_of_a_clock_warns_of_the_clock_and_of_nothing_else(seconds, tmp_path):
    """Forward or back, an hour or a minute and a half."""
    world = stepped(seconds)(healthy)
    series = input_series(world, 3 * HOUR, 60)
    check_series_silent(tmp_path, series, 3 * HOUR, 60, f"{ANY_BUT_WATCHDOG},{NO_SKEW}")
    fired(tmp_path, world, "ClockSkew", {BEGIN + 3 * MINUTE: 0, BEGIN + 6 * MINUTE: 1})


def test_second_that_two_hosts_differ_is_no_skew(tmp_path):
    """Half a minute is within what a slow scrape makes of it."""
    fired(tmp_path, stepped(30)(healthy), "ClockSkew", {HOUR: 0})


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_stall_is_seen_whatever_the_clock_says(seconds, tmp_path):
    """It pages when it would have paged on a clock that is right, and no blindness hides it."""
    world = stepped(seconds, at=10 * MINUTE)(between(BEGIN, DAY, hang_with_data))
    test = RuleTest(input_series(world, HOUR, 30), 30)
    for alert, count in (("QueryStalled", 1), ("AgentBlind", 0)):
        test.expect(BEGIN + 8 * MINUTE, f'alertname="SparkStream{alert}"', count)
    run(tmp_path, 30, test)


def pushed(t: int, last_push: int) -> Values:
    """A Pushgateway shows what was pushed last, for as long as nobody deletes it."""
    place = '{job="spark",app="shop",instance="shop:9465"}'
    at = min(t, last_push)
    return {**with_ages(at, healthy(at)), f"push_time_seconds{place}": at, "up": None}


def test_pushed_series_that_grow_old_are_blind_and_no_skew(tmp_path):
    """Their ages stand still, and so does their clock: that the pushes ceased is what is wrong."""

    def series(last_push: int):
        found = input_series(lambda t: pushed(t, last_push), HOUR, 30)
        name = "streamgauge_push_time_seconds"
        return [
            {**one, "series": 'push_time_seconds{job="spark",app="shop",instance="shop:9465"}'}
            if name in one["series"]
            else one
            for one in found
        ]

    for last_push, count in ((DAY, 0), (BEGIN, 1)):
        test = RuleTest(series(last_push), 30)
        test.expect(BEGIN + 11 * MINUTE, 'alertname="SparkStreamAgentBlind"', count)
        test.expect(HOUR, 'alertname="SparkStreamClockSkew"', 0)
        run(tmp_path, 30, test)
