"""The fault lab: what must page, what may only warn, and what must stay silent.

Five faults run with every test run, all with `make faults`. One driver
and one stack serve them all; each fault runs a query of its own.
"""

from __future__ import annotations

import time

import pytest
from history import write_history
from lab import FRESH, SCRAPE, Lab, Result, allowed_seconds, paged

LOOK = 0.25  # the agent looks at the driver so often here
BEAT = 2.0  # the worker's own pulse and the look that finds out, which are not scaled

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The driver and the stack; at the end, no page may be left that no fault called for."""
    # A commit takes as long as the disk needs, however fast the rules run: a second, as shipped.
    with Lab(tmp_path_factory.mktemp("lab"), state_rows=500, commit_seconds=60) as running:
        yield running
        assert not running.strays()


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
    result.seconds = page["at"] - lab.broken_at
    result.allowed = allowed_seconds(lab, budget + lab.knob("stall_for"))
    lab.kept(result)


def test_query_that_dies_at_once_pages_until_it_is_back(lab: Lab):
    """The page comes after a minute of the rules' time, stays, and ends with the next start."""
    lab.begin("dies")
    lab.on("stay")
    lab.on("fail", 1)
    page = lab.wait_page("QueryFailed")
    died_at = lab.said("ended")[-1]
    lab.settle(minutes=8)
    assert "QueryFailed" in lab.firing()
    lab.off("fail")
    lab.off("stay")
    lab.wait_quiet()
    result = Result("a query that dies at once", ["QueryFailed"])
    result.seconds = page["at"] - died_at
    result.allowed = allowed_seconds(lab, lab.knob("failed_for"))
    lab.kept(result)


def test_source_without_data_is_silent(lab: Lab):
    """Idle is not stalled: twenty-five minutes without data sets off nothing."""
    lab.begin("no-data")
    lab.feeder.paused = True
    lab.settle(minutes=25)
    assert lab.verdict() == "idle"
    lab.kept(Result("a source with no new data for long"))


def test_planned_stop_and_restart_is_silent(lab: Lab):
    """Stopped well, away for four minutes, started again: nothing to say."""
    lab.begin("planned")
    lab.on("stop")
    lab.settle(minutes=4)
    lab.off("stop")
    lab.wait_number(f"changes({lab.of('query_started_timestamp_seconds')}[1m])", 1)
    lab.settle(minutes=3)
    lab.kept(Result("a planned stop and restart"))


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


# ---- the rest --------------------------------------------------------------------------------


def warned(lab: Lab, fault: str, *alerts: str) -> None:
    """Wait for warnings that must come; nothing may page, and nothing else may warn."""
    for alert in alerts:
        lab.wait_firing(alert, deadline=180)
    lab.kept(Result(fault, warns=list(alerts)))


# ---- what pages ------------------------------------------------------------------------------


@pytest.mark.lab
def test_deleted_checkpoint_pages_at_once(lab: Lab):
    """The same name with a new query id."""
    lab.begin("deleted")
    lab.on("reset")
    result = Result("a deleted checkpoint", ["CheckpointReset"])
    paged(lab, result, window=0.0, begun=lambda: lab.said("started deleted")[-1])
    lab.kept(result)


@pytest.mark.lab
def test_two_queries_on_one_checkpoint_page(lab: Lab):
    """Both are named in the page."""
    lab.begin("shared", batches=0, shared=True)
    lab.feeder.paused = True
    page = lab.wait_page("CheckpointShared")
    lab.broken_at = lab.said("started shared-second")[-1]
    result = Result("two queries on one checkpoint", ["CheckpointShared"])
    paged(lab, result, lab.knob("shared_for") + LOOK)
    assert {one["labels"]["query"] for one in page["alerts"]} == {"shared", "shared-second"}
    lab.kept(result)


@pytest.mark.lab
def test_removed_listener_is_blindness(lab: Lab):
    """The query goes on, the agent says that it can't see it, and nobody calls it stalled."""
    lab.begin("deaf")
    lab.on("deaf")
    dropped = "AgentEventsDropped"  # the batches that nobody saw are counted once it hears again
    result = Result("a listener that is removed", ["AgentBlind"], may_warn=[dropped])
    paged(lab, result, lab.knob("blind_for") + 30 * lab.scale + BEAT)
    assert lab.verdict() == "blind"
    lab.off("deaf")
    lab.wait_quiet()
    lab.kept(result)


@pytest.mark.lab
def test_blocked_worker_is_blindness(lab: Lab):
    """An exporter that never returns holds the agent's worker; the page says blind."""
    lab.begin("blocked")
    lab.on("block")
    result = Result("the Python worker of the agent blocked", ["AgentBlind"])
    paged(lab, result, lab.knob("blind_for") + 30 * lab.scale + BEAT)
    lab.off("block")
    lab.wait_quiet()
    lab.kept(result)


@pytest.mark.lab
def test_event_from_the_future_pages_when_rows_are_lost(lab: Lab):
    """One event moves the watermark; from then on every row is late, and that pages."""
    lab.begin("future", kind="windows", batches=8)
    lab.feeder.write(at=time.time() + 3600, rows=1)
    lab.broken_at = time.time()
    warns = ["FutureEventTime"]
    may_warn = ["LateRowsDropped", "WatermarkStuck"]
    result = Result("one event from the future", ["AllRowsLate"], warns, may_warn)
    # The batch that brings the event still takes the others in.
    taken_in = f"sum({lab.of('state_rows_updated_total')})"
    window = lab.knob("rate_window") + lab.knob("all_late_for")
    paged(lab, result, window, begun=lambda: lab.last_change(taken_in))
    lab.kept(result)


@pytest.mark.lab
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
    # The rule counts stale minutes in steps of one.
    paged(lab, result, lab.knob("burn_step"), lambda: budget_burnt_at(lab), deadline=200)
    lab.wait_firing("FallingBehind")
    lab.kept(result)


def budget_burnt_at(lab: Lab) -> float:
    """When the query had been stale for so much of an hour that its budget burns 14.4 times too fast."""
    share = lab.knob("burn_fast") * (1 - lab.knob("freshness_objective"))
    past = lab.history(f"{lab.of('freshness_lag_seconds')} > bool {FRESH}")
    stale = [at for at, is_stale in past if is_stale]
    scrapes = int(share * lab.knob("burn_1h") / SCRAPE)  # each one after the first is so much time
    assert len(stale) > scrapes, past
    return stale[scrapes]


# ---- what only warns -------------------------------------------------------------------------


@pytest.mark.lab
def test_stuck_watermark_warns(lab: Lab):
    """Rows keep coming with one and the same event time."""
    lab.begin("watermark", kind="windows", batches=8)
    lab.feeder.frozen_at = time.time()
    lab.broken_at = time.time()
    warned(lab, "a stuck watermark", "WatermarkStuck")


@pytest.mark.lab
def test_late_rows_warn(lab: Lab):
    """Half of the rows are an hour old."""
    lab.begin("late", kind="windows", batches=8)
    lab.feeder.late = 10
    lab.broken_at = time.time()
    warned(lab, "late rows", "LateRowsDropped")


@pytest.mark.lab
def test_state_without_a_watermark_warns(lab: Lab):
    """A state that only grows, against a past in which it was small."""
    lab.begin("growing", kind="keys", batches=8)
    labels = 'job="spark",app="shop",query="growing",operator="0-stateStoreSave"'
    name = "query_operator:streamgauge_state_rows:max"
    window = lab.knob("growth_window")
    history = write_history({name: lambda _: 10.0}, labels, 4 * window, window / 2, 5.0)
    lab.restart_prometheus(history=history)
    lab.broken_at = time.time()
    warned(lab, "a state that grows without a watermark", "StateBloat")


def _with_a_week(lab: Lab) -> None:
    """Measure the query as it is, and write a week of the same into Prometheus' past."""
    lab.settle(minutes=30)
    mean = lab.number(f'query:streamgauge_batch_duration:mean15m{{query="{lab.query}"}}') or 0
    cost = lab.number(f'query:streamgauge_row_cost:seconds_per_krow1h{{query="{lab.query}"}}') or 0
    week = lab.knob("baseline_window") + lab.knob("baseline_offset")
    wobble = 0.1 * mean
    series = {
        "query:streamgauge_batch_duration:mean15m": lambda age: mean + wobble * (int(age) % 3 - 1),
        "query:streamgauge_row_cost:seconds_per_krow1h": lambda _: cost,
        "query:streamgauge_input_rows:rate1h": lambda _: 1000 * mean / cost,
    }
    labels = f'job="spark",app="shop",query="{lab.query}"'
    lab.restart_prometheus(history=write_history(series, labels, week, 60.0, 2.0))


# A batch every six seconds, whatever happens: 240 rows of 10 ms each.
STEADY = {"seconds_per_row": 0.01, "trigger": {"processingTime": "6 seconds"}}


@pytest.mark.lab
def test_batch_twice_as_slow_warns_of_code_that_got_slower(lab: Lab):
    """The same rows take twice the time: duration and cost both say so."""
    lab.begin("slower", **STEADY)
    _with_a_week(lab)
    lab.on("slow", 2)
    names = ("BatchDurationRegression", "ProcessingCostRegression")
    warned(lab, "a batch twice as slow as before", *names)


@pytest.mark.lab
def test_more_load_is_not_slower_code(lab: Lab):
    """Twice the rows make longer batches, but a row costs no more than it did."""
    lab.begin("load", **STEADY)
    _with_a_week(lab)
    lab.feeder.rows = 40
    lab.broken_at = time.time()
    lab.wait_firing("BatchDurationRegression", deadline=180)
    lab.settle(minutes=60)
    warned(lab, "the same load doubled", "BatchDurationRegression")


# ---- what is silent --------------------------------------------------------------------------


@pytest.mark.lab
def test_long_trigger_interval_is_silent(lab: Lab):
    """Twenty minutes between triggers: silence is what was asked for."""
    lab.begin("hourly", batches=2, trigger={"processingTime": "20 seconds"})
    lab.settle(minutes=45)
    lab.kept(Result("a long trigger interval"))


@pytest.mark.lab
def test_large_healthy_batch_is_silent(lab: Lab):
    """A batch of many times the budget whose tasks finish one by one is slow, not hung."""
    lab.begin("large")
    lab.on("tasks", 40)
    lab.wait_number(lab.of("inflight_batch_seconds"), 8)
    assert lab.verdict() == "running"
    lab.off("tasks")
    lab.wait_number(f"-{lab.of('inflight_batch_seconds')}", -5)
    lab.kept(Result("a large but healthy batch"))


@pytest.mark.lab
def test_catching_up_after_an_outage_is_silent(lab: Lab):
    """A backlog of many files, read two at a time, shrinks."""
    lab.begin("outage", max_files=2)
    lab.on("stop")
    for _ in range(40):
        lab.feeder.write()
    lab.feeder.every = 2.0
    lab.off("stop")
    lab.settle(minutes=30)
    lab.kept(Result("catching up after an outage"))


@pytest.mark.lab
def test_available_now_that_ends_well_is_silent(lab: Lab):
    """It ends by design, and nobody is called for that."""
    available_now = {"availableNow": True}
    lab.begin("nightly", batches=1, files=4, seconds_per_row=0.03, trigger=available_now)
    lab.wait_number(f"{lab.of('query_active')} == bool 0", 1)
    lab.settle(minutes=12)
    lab.kept(Result("an availableNow job that ends well"))


@pytest.mark.lab
def test_prometheus_away_for_a_while_is_silent(lab: Lab):
    """Back after twenty minutes, Prometheus draws no wrong conclusions from the gap."""
    lab.begin("gap")
    lab.restart_prometheus(away=20 * 60 * lab.scale)
    lab.settle(minutes=10)
    lab.kept(Result("Prometheus itself down for a while"))
