"""What makes a loop: failed and unexplained ends do, planned deployments don't."""

from __future__ import annotations

import pytest
from rule_checks import check, check_silent, failed, fired, page_of, said
from rule_scenarios import BEGIN, FAILURE
from rule_worlds import (
    HOUR,
    MINUTE,
    STOPPED,
    Values,
    after_restart,
    at_instance,
    gone,
    healthy,
    info,
    verdict,
)

pytestmark = pytest.mark.timeout(600)

FIRST = 10 * MINUTE  # a first start, and two deployments within 13 minutes
STARTS = (FIRST, FIRST + 6 * MINUTE, FIRST + 13 * MINUTE)


def clean_end(values: Values, at: int) -> None:
    """Stopped without an error."""
    values["query_active"] = 0
    values["query_ended_timestamp_seconds"] = at
    values[STOPPED] = 1
    verdict(values, "stopped")


def not_yet(t: int) -> Values:
    """Prometheus asks, and nobody is there."""
    values = healthy(t)
    gone(values)
    return {**values, "query_expected": None}


def run_of(t: int) -> tuple[int, int | None]:
    """Number and start of the newest run."""
    past = [at for at in STARTS if at <= t]
    return len(past), past[-1] if past else None


def in_one_driver(t: int) -> Values:
    """`stop()` and `start()` at once, faster than any scrape: the counters alone tell it."""
    number, started = run_of(t)
    if started is None:
        return not_yet(t)
    values = after_restart(t, FIRST)
    values[info("q1", f"r{FIRST}")] = None
    values[info("q1", f"r{started}")] = 1
    return {
        **values,
        "query_started_timestamp_seconds": started,
        "query_starts_total": number,
        STOPPED: number - 1,
    }


def of_new_drivers(t: int) -> Values:
    """Each deployment is a new driver at the same address; the old one is scraped as stopped."""
    _, started = run_of(t)
    if started is None:
        return not_yet(t)
    values = {info(): None, **after_restart(t, started)}
    ends = [at - 2 * MINUTE for at in STARTS[1:] if at > t]
    if ends and t >= ends[0]:
        clean_end(values, ends[0])
    if ends and t >= ends[0] + MINUTE:
        gone(values)
    return values


def at_new_addresses(t: int) -> Values:
    """The same in a cluster, where each driver has its own address."""
    number, _ = run_of(t)
    place = f"pod-{number}:9465"
    return {"up": None} | {at_instance(key, place): v for key, v in of_new_drivers(t).items()}


@pytest.mark.parametrize("step", [15, 60])
def test_planned_deployments_are_silent(step, tmp_path):
    """A first start and two clean deployments within 13 minutes set off nothing at all."""
    worlds = {
        "one driver": in_one_driver,
        "new drivers": of_new_drivers,
        "new addresses": at_new_addresses,
    }
    check_silent(tmp_path, worlds, HOUR, step)


@pytest.mark.parametrize("how", ["killed", "unknown end"])
def test_ends_that_nobody_saw_are_a_loop(how, tmp_path):
    """The same starts without a clean end before them are one; so are ends whose outcome is unknown."""

    def world(t: int) -> Values:
        values = of_new_drivers(t)
        if values.get("query_active") == 0:
            if how == "killed":
                gone(values)
                return values
            values[STOPPED] = 0
            values['query_reason_info{state="stopped",reason="ended; outcome unknown"}'] = 1
        return values

    fired(tmp_path, world, "RestartLoop", {STARTS[-1] - 30: 0, STARTS[-1]: 1})


def supervised(t: int) -> Values:
    """A supervisor stops and starts the query cleanly every three minutes, five times."""
    number = min(5, max(0, t - BEGIN) // (3 * MINUTE))
    values = {**healthy(t), "query_starts_total": 1 + number, STOPPED: number}
    if number:
        values["query_started_timestamp_seconds"] = BEGIN + number * 3 * MINUTE
    return values


def test_supervisor_that_restarts_cleanly_pages_nobody(tmp_path):
    """Five clean stops and starts within a quarter of an hour are no loop."""
    check_silent(tmp_path, {"supervised": supervised}, 2 * HOUR, 30)


def broken_since_a_deployment(t: int) -> Values:
    """Two clean deployments, and then code that fails at each start."""
    if t < STARTS[-1]:
        return of_new_drivers(t)
    began = STARTS[-1] + (t - STARTS[-1]) // (2 * MINUTE) * 2 * MINUTE
    values = {info(): None, **after_restart(t, began)}
    if t - began >= MINUTE:
        failed(values)
        values["query_ended_timestamp_seconds"] = began + MINUTE
        values[FAILURE] = 1
    return values


def test_loop_after_clean_deployments_pages(tmp_path):
    """Clean stops are taken off the count, not the failures after them."""
    fired(tmp_path, broken_since_a_deployment, "RestartLoop", {STARTS[-1]: 0, STARTS[-1] + 300: 1})


def test_page_of_a_loop_tells_the_last_error(tmp_path):
    """Its innermost cause and first line, beside how many starts there were."""
    page = page_of(tmp_path, broken_since_a_deployment, "RestartLoop", STARTS[-1] + 5 * MINUTE)
    assert "caused by java.io.IOException: No space left on device" in said(page, "reason")
    assert "started 3 times" in said(page, "description")


def given_up(t: int) -> Values:
    """Three failures within six minutes; after the third nobody starts it again."""
    last = BEGIN + 6 * MINUTE
    began = min(last, BEGIN + max(0, t - BEGIN) // (2 * MINUTE) * 2 * MINUTE)
    if t < BEGIN:
        return healthy(t)
    values = {info(): None, **after_restart(t, began)}
    if t - began >= MINUTE:
        failed(values)
        values["query_ended_timestamp_seconds"] = began + MINUTE
        values[FAILURE] = 1
    return values


def test_loop_ends_when_nobody_starts_it_any_more(tmp_path):
    """It lasts for `restart_keep` after the last start; what it inhibits is firing then, and goes on."""
    last = BEGIN + 6 * MINUTE
    loop = {last: 1, last + 14 * MINUTE: 1, last + 17 * MINUTE: 0, last + 2 * HOUR: 0}
    fired(tmp_path, given_up, "RestartLoop", loop)
    fired(tmp_path, given_up, "QueryFailed", {last + 17 * MINUTE: 1, last + 2 * HOUR: 1})


def test_page_of_killed_drivers_says_that_no_end_was_seen(tmp_path):
    """Where no failure was reported, the reason is not made up."""

    def world(t: int) -> Values:
        began = t // (5 * MINUTE) * 5 * MINUTE
        values = {info(): None, **after_restart(t, began)} if began else healthy(t)
        if t - began >= 4 * MINUTE:
            gone(values)
        return values

    page = page_of(tmp_path, world, "RestartLoop", HOUR)
    assert said(page, "reason").startswith("no end was seen")
    check(tmp_path, world, "QueryVanished", HOUR, 0)
