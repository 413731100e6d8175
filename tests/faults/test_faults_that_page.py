"""The fault lab: what must page, by which name, and with the true cause in its text."""

from __future__ import annotations

import itertools
import signal
import time

import pytest
from lab import FRESH, Lab
from promtool import time_of
from results import Result, allowed_seconds, keep, paged

LOOK = 0.25  # the agent looks at the driver so often here
RETRY = 600.0  # seconds that a batch may retry before the verdict calls it a loop
BEAT = 2.0  # the worker's own pulse and the look that finds out, which are not scaled

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def test_deleted_checkpoint_pages_at_once(lab: Lab):
    """The same name with a new query id."""
    lab.begin("deleted")
    lab.on("reset")
    result = Result("a deleted checkpoint", ["CheckpointReset"], says=["was deleted"])
    paged(lab, result, window=0.0, begun=lambda: lab.said("started deleted")[-1])
    keep(lab, result)


def test_two_queries_on_one_checkpoint_page(lab: Lab):
    """Both are named in the page."""
    lab.begin("shared", batches=0, shared=True)
    lab.feeder.paused = True
    page = lab.wait_page("CheckpointShared")
    lab.broken_at = lab.said("started shared-second")[-1]
    result = Result("two queries on one checkpoint", ["CheckpointShared"])
    result.says = ["shares its checkpoint", "checkpoint-shared"]
    paged(lab, result, lab.parameter("shared_for") + LOOK)
    assert {one["labels"]["query"] for one in page["alerts"]} == {"shared", "shared-second"}
    keep(lab, result)


def test_removed_listener_is_blindness(lab: Lab):
    """The query goes on, the agent says that it can't see it, and nobody calls it stalled."""
    lab.begin("deaf")
    lab.on("deaf")
    dropped = "AgentEventsDropped"  # the batches that nobody saw are counted once it hears again
    result = Result("a listener that is removed", ["AgentBlind"], may_warn=[dropped])
    result.says = ["listener was removed"]
    paged(lab, result, lab.parameter("blind_for") + 30 * lab.scale + BEAT)
    assert lab.verdict() == "blind"
    lab.off("deaf")
    lab.wait_quiet()
    keep(lab, result)


def test_blocked_worker_is_blindness(lab: Lab):
    """An exporter that never returns holds the agent's worker; the page says blind."""
    lab.begin("blocked")
    lab.on("block")
    result = Result("the Python worker of the agent blocked", ["AgentBlind"])
    result.says = ["worker has been blocked"]
    paged(lab, result, lab.parameter("blind_for") + 30 * lab.scale + BEAT)
    lab.off("block")
    lab.wait_quiet()
    keep(lab, result)


def test_event_from_the_future_pages_when_rows_are_lost(lab: Lab):
    """One event moves the watermark; from then on every row is late, and that pages."""
    lab.begin("future", kind="windows", batches=8)
    lab.feeder.write(at=time.time() + 3600, rows=1)
    lab.broken_at = time.time()
    warns = ["FutureEventTime"]
    may_warn = ["LateRowsDropped", "WatermarkStuck"]
    result = Result("one event from the future", ["AllRowsLate"], warns, may_warn)
    result.says = ["before the watermark", "from the future"]
    # The batch that brings the event still takes the others in.
    taken_in = f"sum({lab.of('state_rows_updated_total')})"
    window = lab.parameter("rate_window") + lab.parameter("all_late_for")
    paged(lab, result, window, begun=lambda: lab.last_change(taken_in))
    keep(lab, result)


def test_input_faster_than_processing_warns_and_pages_when_the_output_is_too_old(lab: Lab):
    """Each row takes longer than the next needs to arrive: batches grow and grow.

    FallingBehind says so. When the output is older than the freshness objective allows, that pages: it
    is what people were promised, nothing else pages for it, and no warning may hold that page back.

    The first batch takes longer already than the output may be old. So the query is stale from its first
    commit on without a break; breaks of a second would be lost in the rule's steps of one, which are as
    long. The work is done by tasks, which finish one by one: a batch is slow and never looks hung.
    """
    lab.begin("behind", files=6, batches=0, seconds_per_row=0.025, in_tasks=True)
    lab.feeder.rows = 22  # 1.1 seconds of work each second, and what every batch costs by itself
    lab.wait_batches(1)
    lab.broken_at = time.time()
    result = Result("input faster than processing", ["FreshnessBudgetBurn"], ["FallingBehind"])
    result.may_warn = ["BatchStuck"]
    result.says = ["rows arrive faster than they are processed"]
    # The rule counts stale minutes in steps of one.
    paged(lab, result, lab.parameter("burn_step"), lambda: budget_burnt_at(lab), deadline=200)
    lab.wait_firing("FallingBehind")
    keep(lab, result)


def budget_burnt_at(lab: Lab) -> float:
    """When the query had been stale for so much of an hour that its budget burns 14.4 times too fast."""
    share = lab.parameter("burn_fast") * (1 - lab.parameter("freshness_objective"))
    past = lab.history(f"{lab.of('freshness_lag_seconds')} > bool {FRESH}")
    stale = [at for at, is_stale in past if is_stale]
    scrapes = int(
        share * lab.parameter("burn_1h") / lab.scrape
    )  # each one after the first is so much time
    assert len(stale) > scrapes, past
    return stale[scrapes]


# ---- batches that do not end -----------------------------------------------------------------


def test_retry_loop_inside_a_batch_is_a_stall(lab: Lab):
    """One job after the other is tried in a batch that never ends: its tasks finish, and it stalls."""
    lab.begin("retries", batches=8)
    lab.on("retry")
    result = Result("a retry loop inside a batch", ["QueryStalled"], may_warn=["BatchStuck"])
    result.says = ["its jobs fail and are run again"]
    page = lab.wait_page("QueryStalled", deadline=200)
    since = lab.number(lab.of("last_event_timestamp_seconds")) or 0
    result.seconds = page["at"] - since
    result.allowed = allowed_seconds(lab, RETRY * lab.scale + lab.parameter("stall_for"))
    lab.off("retry")
    lab.wait_quiet()
    keep(lab, result)


def test_hang_with_a_long_trigger_is_one_page(lab: Lab):
    """Twenty minutes between triggers: the stall pages, and the output that ages with it does not."""
    lab.begin("rarely", batches=1, trigger={"processingTime": "20 seconds"})
    lab.on("hang")
    page = lab.wait_page("QueryStalled", deadline=240)
    budget = lab.number(lab.of("silence_budget_seconds")) or 0
    signs = ("last_event_timestamp_seconds", "inflight_last_task_timestamp_seconds")
    began = max(lab.number(lab.of(sign)) or lab.broken_at for sign in signs)
    lab.settle(minutes=10)
    result = Result("a hang with a long trigger", ["QueryStalled"], may_warn=["BatchStuck"])
    result.says = ["in addBatch (sink): no task running"]
    result.seconds = page["at"] - began
    result.allowed = allowed_seconds(lab, budget + lab.parameter("stall_for"))
    keep(lab, result)
    assert lab.number_of_pages() == 1
    lab.off("hang")
    lab.wait_quiet()


# ---- failures --------------------------------------------------------------------------------


def test_full_disk_is_named(lab: Lab):
    """The wrappers of Spark and Python around it do not hide that the disk is full."""
    lab.begin("disk")
    lab.on("stay")
    lab.on("full")
    page = lab.wait_page("QueryFailed")
    died_at = lab.said("ended")[-1]
    result = Result("a full disk in foreachBatch", ["QueryFailed"])
    result.says = ["No space left on device", "FOREACH_BATCH_USER_FUNCTION_ERROR"]
    result.seconds = page["at"] - died_at
    result.allowed = allowed_seconds(lab, lab.parameter("failed_for"))
    assert abs(time_of(page["alerts"][0]["annotations"]["since"]) - died_at) < 2
    keep(lab, result)


def test_query_that_breaks_after_two_deployments_pages(lab: Lab):
    """Clean stops and starts are no loop, and do not hide the failure that comes after them."""
    lab.begin("released")
    for _ in range(2):
        since = time.time()
        lab.drain()
        lab.on("stop")
        lab.wait_said("ended", since)
        lab.settle(minutes=1)
        lab.off("stop")
        lab.wait_started(since)
        lab.feeder.paused = False
        lab.wait_batches(3)
    lab.settle(minutes=2)
    assert not lab.pages()
    lab.on("stay")
    lab.on("fail", 1)
    page = lab.wait_page("QueryFailed")
    died_at = lab.said("ended")[-1]
    result = Result("a query that breaks after two deployments", ["QueryFailed"])
    result.says = ["the sink refuses"]
    result.seconds = page["at"] - died_at
    result.allowed = allowed_seconds(lab, lab.parameter("failed_for"))
    assert died_at - lab.since < lab.parameter("restart_window")
    keep(lab, result)


# ---- an agent that can't see -----------------------------------------------------------------


def test_stray_events_do_not_end_blindness(lab: Lab):
    """A listener that is there for a moment now and then is one page, without a break, and no other."""
    lab.begin("flaps")
    lab.on("flap", 3)
    result = Result("blindness with stray events", ["AgentBlind"], may_warn=["AgentEventsDropped"])
    result.says = ["listener"]
    paged(lab, result, lab.parameter("blind_for") + 30 * lab.scale + BEAT, deadline=200)
    lab.settle(minutes=25)
    alert = 'ALERTS{alertname="SparkStreamAgentBlind",alertstate="firing",query="flaps"}'
    past = [at for at, _ in lab.history(alert)]
    gaps = [later - at for at, later in itertools.pairwise(past)]
    keep(lab, result)
    assert lab.number_of_pages() == 1
    assert max(gaps) < 2 * lab.scrape, gaps
    lab.off("flap")
    lab.wait_quiet()


def test_frozen_jvm_says_so(lab: Lab):
    """The JVM is stopped as a debugger or a hypervisor stops it; Python goes on."""
    lab.begin("frozen")
    lab.signal_jvm(signal.SIGSTOP)
    result = Result("a JVM that is frozen", ["AgentBlind"], may_warn=["AgentEventsDropped"])
    result.says = ["the JVM of the driver does not answer"]
    paged(lab, result, lab.parameter("blind_for") + 30 * lab.scale + BEAT)
    lab.settle(minutes=10)
    lab.signal_jvm(signal.SIGCONT)
    lab.wait_quiet()
    keep(lab, result)
    assert lab.number_of_pages() == 1


def test_killed_jvm_says_so(lab: Lab):
    """The JVM is gone; Python, which serves the metrics, goes on."""
    lab.begin("headless")
    lab.on("survive")
    lab.signal_jvm(signal.SIGKILL)
    result = Result("a JVM that is killed while Python lives", ["QueryFailed"])
    result.says = ["the JVM of the driver is gone"]
    paged(lab, result, lab.parameter("failed_for") + BEAT)
    lab.settle(minutes=10)
    keep(lab, result)
    assert lab.number_of_pages() == 1
    lab.kill()
