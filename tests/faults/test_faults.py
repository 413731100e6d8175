"""Five faults that every test run puts in: what must page, and what must not."""

from __future__ import annotations

import time

import pytest
from lab import Lab, Result, allowed_seconds

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def test_hung_sink_pages_once(lab: Lab):
    """A foreachBatch that hangs is one page; what follows from it is held back."""
    lab.begin("hung-sink")
    lab.on("hang")
    budget = lab.number(lab.of("silence_budget_seconds")) or 0
    page = lab.wait_page("QueryStalled")
    # The batch that was under way still ended well: the fault begins with its event.
    lab.broken_at = lab.number(lab.of("last_event_timestamp_seconds")) or lab.broken_at
    assert lab.verdict() == "stalled"
    lab.wait_firing("CommitsStalled")
    lab.off("hang")
    lab.wait_quiet()
    result = Result("a foreachBatch that hangs", ["QueryStalled"], ["BatchStuck"])
    result.seconds = page["at"] - lab.broken_at
    result.allowed = allowed_seconds(lab, budget + lab.knob("stall_for"))
    lab.kept(result)


def test_query_that_dies_at_once_pages_until_it_is_back(lab: Lab):
    """The page comes after a minute of the rules' time, stays, and ends with the next start."""
    lab.begin("dies")
    lab.on("stay")
    lab.on("fail", 1)
    page = lab.wait_page("QueryFailed")
    lab.settle(minutes=8)
    assert "QueryFailed" in lab.firing()
    lab.off("fail")
    lab.off("stay")
    lab.wait_quiet()
    result = Result("a query that dies at once", ["QueryFailed"])
    result.seconds = page["at"] - lab.broken_at
    # The next batch has to start and fail first: one trigger interval and the batch itself.
    result.allowed = allowed_seconds(lab, lab.knob("failed_for") + 2)
    lab.kept(result)


def test_source_without_data_is_silent(lab: Lab):
    """Idle is not stalled: twenty-five minutes without data sets off nothing."""
    lab.begin("no-data")
    lab.feeder.paused = True
    lab.settle(minutes=25)
    assert lab.verdict() == "idle"
    lab.kept(Result("a source with no new data for long", []))


def test_planned_stop_and_restart_is_silent(lab: Lab):
    """Stopped well, away for four minutes, started again: nothing to say."""
    lab.begin("planned")
    lab.on("stop")
    lab.settle(minutes=4)
    lab.off("stop")
    lab.wait_number(f"changes({lab.of('query_started_timestamp_seconds')}[1m])", 1)
    lab.settle(minutes=3)
    lab.kept(Result("a planned stop and restart", []))


def test_killed_driver_with_five_queries_is_one_page(lab: Lab):
    """SIGKILL: every query of the driver is in the one page that comes."""
    others = [f"killed-{number}" for number in range(1, 5)]
    lab.begin("killed", more=others)
    lab.wait_number("count(streamgauge_query_active == 1)", 5)
    lab.broken_at = time.time()
    lab.kill()
    page = lab.wait_page("QueryVanished")
    assert {one["labels"]["query"] for one in page["alerts"]} == {"killed", *others}
    assert {one["labels"]["team"] for one in page["alerts"]} == {"payments"}
    lab.settle(minutes=12)
    assert "AgentDown" in lab.firing()
    result = Result("the driver killed with SIGKILL", ["QueryVanished"])
    result.seconds = page["at"] - lab.broken_at
    result.allowed = allowed_seconds(lab, lab.knob("vanished_for"))
    lab.kept(result)
    assert lab.number_of_pages() == 1
