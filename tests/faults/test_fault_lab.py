"""The fault lab: the faults that run with every test run; all of them run with `make faults`.

One driver and one stack serve the faults of a file; each fault runs a query of its own.
"""

from __future__ import annotations

import time

import pytest
from lab import Lab
from promtool import time_of
from results import Result, allowed_seconds, keep

pytestmark = pytest.mark.timeout(600)


def test_hung_sink_pages_once(lab: Lab):
    """A foreachBatch that hangs is one page; what follows from it is held back."""
    lab.begin("hung-sink")
    lab.on("hang")
    page = lab.wait_page("QueryStalled")
    budget = lab.number(lab.of("silence_budget_seconds")) or 0
    # The batch that was under way still ended well, and the next one's tasks too: the query is
    # silent from there on, and the budget is the one that the last batch left it.
    signs = ("last_event_timestamp_seconds", "inflight_last_task_timestamp_seconds")
    lab.broken_at = max(lab.number(lab.of(sign)) or lab.broken_at for sign in signs)
    assert lab.verdict() == "stalled"
    lab.wait_firing("CommitsStalled")
    lab.off("hang")
    lab.wait_quiet()
    result = Result("a foreachBatch that hangs", ["QueryStalled"], may_warn=["BatchStuck"])
    result.says = ["in addBatch (sink): no task running"]
    result.seconds = page["at"] - lab.broken_at
    result.allowed = allowed_seconds(lab, budget + lab.parameter("stall_for"))
    keep(lab, result)


def test_query_that_dies_at_once_pages_until_it_is_back(lab: Lab):
    """The page comes after a minute of the rules' time, stays, and ends with the next start."""
    lab.begin("dies")
    lab.on("stay")
    lab.on("fail", 1)
    page = lab.wait_page("QueryFailed")
    died_at = lab.said("ended")[-1]
    last = lab.number(lab.of("last_committed_batch_id"))
    assert abs(time_of(page["alerts"][0]["annotations"]["since"]) - died_at) < 2
    lab.settle(minutes=8)
    assert "QueryFailed" in lab.firing()
    lab.off("fail")
    lab.off("stay")
    lab.wait_quiet()
    says = ["the sink refuses", "RuntimeError", "FOREACH_BATCH_USER_FUNCTION_ERROR"]
    says += ["checkpoint-dies", f"committed is {last:.0f}"]
    result = Result("a query that dies at once", ["QueryFailed"], says=says)
    result.seconds = page["at"] - died_at
    result.allowed = allowed_seconds(lab, lab.parameter("failed_for"))
    keep(lab, result)


def test_source_without_data_is_silent(lab: Lab):
    """Idle is not stalled: twenty-five minutes without data sets off nothing."""
    lab.begin("no-data")
    lab.feeder.paused = True
    lab.settle(minutes=25)
    assert lab.verdict() == "idle"
    keep(lab, Result("a source with no new data for long"))


def test_planned_stop_and_restart_is_silent(lab: Lab):
    """Stopped well, away for four minutes, started again: nothing to say."""
    lab.begin("planned")
    lab.drain()
    lab.on("stop")
    lab.settle(minutes=4)
    lab.off("stop")
    lab.wait_number(f"changes({lab.of('query_started_timestamp_seconds')}[1m])", 1)
    lab.settle(minutes=3)
    keep(lab, Result("a planned stop and restart"))


def test_clean_stop_and_exit_is_silent(lab: Lab):
    """Every query stopped, the session stopped, the process gone at once: planned, and known to be."""
    lab.begin("leaves", more=["leaves-too"])
    lab.wait_number("count(streamgauge_query_active == 1)", 2)
    lab.on("exit")
    assert lab.wait_exit() == 0
    lab.settle(minutes=14)
    keep(lab, Result("a clean stop and exit at once"))


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
    says = ["the driver was killed"]
    result = Result("the driver killed with SIGKILL", ["QueryVanished"], says=says)
    result.seconds = page["at"] - lab.broken_at
    result.allowed = allowed_seconds(lab, lab.parameter("vanished_for"))
    keep(lab, result)
    assert lab.number_of_pages() == 1
