"""The fault lab: what may only warn."""

from __future__ import annotations

import time

import pytest
from history import write_history, write_past
from lab import Lab
from results import Result, keep, warned

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def test_stuck_watermark_warns(lab: Lab):
    """Rows keep coming with one and the same event time."""
    lab.begin("watermark", kind="windows", batches=8)
    lab.feeder.frozen_at = time.time()
    lab.broken_at = time.time()
    warned(lab, "a stuck watermark", "WatermarkStuck")


def test_late_rows_warn(lab: Lab):
    """Half of the rows are an hour old."""
    lab.begin("late", kind="windows", batches=8)
    lab.feeder.late = 10
    lab.broken_at = time.time()
    warned(lab, "late rows", "LateRowsDropped")


def test_state_without_a_watermark_warns(lab: Lab):
    """A state that only grows, against a past in which it was small."""
    lab.begin("growing", kind="keys", batches=8)
    labels = 'job="spark",app="shop",query="growing",operator="0-stateStoreSave"'
    name = "query_operator:streamgauge_state_rows:max"
    window = lab.parameter("growth_window")
    past = write_past(name, lambda _: 10.0, labels, begin=4 * window, end=window / 2, step=5.0)
    lab.restart_prometheus(history=write_history(past))
    lab.broken_at = time.time()
    warned(lab, "a state that grows without a watermark", "StateBloat")


def _with_a_week(lab: Lab) -> None:
    """Measure the query as it is, and write a week of the same into Prometheus' past."""
    lab.settle(minutes=30)
    mean = lab.number(f'query:streamgauge_batch_duration:mean15m{{query="{lab.query}"}}') or 0
    cost = lab.number(f'query:streamgauge_row_cost:seconds_per_krow1h{{query="{lab.query}"}}') or 0
    slice_seconds = lab.parameter("baseline_slice")
    steps = slice_seconds / lab.parameter("baseline_step")
    week = lab.parameter("baseline_window") + lab.parameter("baseline_offset")
    wobble = 0.1 * mean
    labels = f'job="spark",app="shop",query="{lab.query}"'
    slices = {
        "query:streamgauge_batch_duration:count1h": steps,
        "query:streamgauge_batch_duration:sum1h": steps * mean,
        "query:streamgauge_batch_duration:sumsq1h": steps * (mean**2 + wobble**2),
    }
    rates = {
        "query:streamgauge_row_cost:seconds_per_krow1h": cost,
        "query:streamgauge_input_rows:rate1h": 1000 * mean / cost,
    }
    pasts = [
        write_past(name, lambda _, v=value: v, labels, begin=week, end=slice_seconds, step=step)
        for series, step in ((slices, slice_seconds), (rates, 2.0))
        for name, value in series.items()
    ]
    lab.restart_prometheus(history=write_history(*pasts))


# A batch every six seconds, whatever happens: 240 rows of 10 ms each.
STEADY = {"seconds_per_row": 0.01, "trigger": {"processingTime": "6 seconds"}}


def test_batch_twice_as_slow_warns_of_code_that_got_slower(lab: Lab):
    """The same rows take twice the time: duration and cost both say so."""
    lab.begin("slower", **STEADY)
    _with_a_week(lab)
    lab.on("slow", 2)
    names = ("BatchDurationRegression", "ProcessingCostRegression")
    warned(lab, "a batch twice as slow as before", *names)


def test_more_load_is_not_slower_code(lab: Lab):
    """Twice the rows make longer batches, but a row costs no more than it did."""
    lab.begin("load", **STEADY)
    _with_a_week(lab)
    lab.feeder.rows = 40
    lab.broken_at = time.time()
    lab.wait_firing("BatchDurationRegression", deadline=180)
    lab.settle(minutes=60)
    warned(lab, "the same load doubled", "BatchDurationRegression")


# ---- replays and files -----------------------------------------------------------------------


def stop_in_a_batch(lab: Lab) -> None:
    """Stop the query while its sink is at work, and start it again: the batch is run again."""
    since = time.time()
    lab.on("hang")
    lab.wait_number(lab.of("inflight_batch_seconds"), 0.2)
    lab.on("stop")
    time.sleep(0.5)
    lab.off("hang")
    lab.wait_said("ended", since)
    lab.off("stop")
    lab.wait_number(f"sum({lab.of('batches_replayed_total')})", 1)


def test_replayed_foreach_batch_warns_once(lab: Lab):
    """Whether its sink removes duplicates is unknown, so it warns, and says which batch."""
    lab.begin("replayed")
    stop_in_a_batch(lab)
    lab.broken_at = time.time()
    lab.wait_firing("DuplicateRisk")
    lab.settle(minutes=10)
    warned(lab, "a replayed foreachBatch", "DuplicateRisk", says=("batch",))
    assert len(lab.texts("DuplicateRisk")) == 1


def test_replayed_batch_of_an_idempotent_sink_is_silent(lab: Lab):
    """The settings say that the sink removes duplicates."""
    lab.begin("safe")
    stop_in_a_batch(lab)
    lab.settle(minutes=10)
    keep(lab, Result("a replayed foreachBatch with idempotent_sink"))


def test_file_source_that_falls_behind_warns(lab: Lab):
    """More files come than are read; their number is all that is known of the backlog."""
    lab.begin("files", max_files=1, seconds_per_row=0.04)
    lab.broken_at = time.time()
    warned(lab, "a file source that falls behind", "FallingBehind", says=("files",))


def test_silent_source_that_holds_the_watermark_is_named(lab: Lab):
    """Two sources are joined, one gives nothing any more: the watermark waits for that one."""
    lab.begin("joined", kind="joined", batches=8, both=True)
    lab.feeder.other = None
    lab.broken_at = time.time()
    fault = "a silent source that holds the watermark"
    warned(lab, fault, "WatermarkStuck", says=("in-joined-other",))
