"""The fault lab: what looks like a fault and is none must stay silent."""

from __future__ import annotations

import time

import pytest
from history import write_history, write_past
from lab import Lab
from results import Result, keep

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def test_long_trigger_interval_is_silent(lab: Lab):
    """Twenty minutes between triggers: silence is what was asked for."""
    lab.begin("hourly", batches=2, trigger={"processingTime": "20 seconds"})
    lab.settle(minutes=45)
    keep(lab, Result("a long trigger interval"))


def test_large_healthy_batch_is_silent(lab: Lab):
    """A batch of many times the budget whose tasks finish one by one is slow, not hung."""
    lab.begin("large")
    lab.on("tasks", 40)
    lab.wait_number(lab.of("inflight_batch_seconds"), 8)
    assert lab.verdict() == "running"
    lab.off("tasks")
    lab.wait_number(f"-{lab.of('inflight_batch_seconds')}", -5)
    keep(lab, Result("a large but healthy batch"))


def test_catching_up_after_an_outage_is_silent(lab: Lab):
    """A backlog of many files, read two at a time, shrinks."""
    lab.begin("outage", max_files=2)
    lab.on("stop")
    for _ in range(40):
        lab.feeder.write()
    lab.feeder.every = 2.0
    lab.off("stop")
    lab.settle(minutes=30)
    keep(lab, Result("catching up after an outage"))


def test_available_now_that_ends_well_is_silent(lab: Lab):
    """It ends by design, and nobody is called for that."""
    available_now = {"availableNow": True}
    lab.begin("nightly", batches=1, files=4, seconds_per_row=0.03, trigger=available_now)
    lab.wait_number(f"{lab.of('query_active')} == bool 0", 1)
    lab.settle(minutes=12)
    keep(lab, Result("an availableNow job that ends well"))


def test_prometheus_away_for_a_while_is_silent(lab: Lab):
    """Back after twenty minutes, Prometheus draws no wrong conclusions from the gap."""
    lab.begin("gap")
    lab.restart_prometheus(away=20 * 60 * lab.scale)
    lab.settle(minutes=10)
    keep(lab, Result("Prometheus itself down for a while"))


def test_sparse_files_are_silent(lab: Lab):
    """A file every three minutes, each read in a batch that is longer than the trigger."""
    trigger = {"processingTime": "500 milliseconds"}
    lab.begin("sparse", batches=0, trigger=trigger, seconds_per_row=0.04)
    lab.feeder.every = 3 * 60 * lab.scale
    lab.wait_batches(2)
    lab.settle(minutes=45)
    keep(lab, Result("a file every three minutes"))


def test_long_deduplication_is_no_bloat(lab: Lab):
    """A state grows for ten hours because its watermark is ten hours late, and not for ever.

    The seven hours before are in Prometheus' past, and in the query's first file.
    """
    rate, hours = 40, 3600 * lab.scale
    lab.begin("unique", kind="unique", batches=0, delay=f"{10 * hours:.0f} seconds")
    for hour in range(7, 0, -1):
        lab.feeder.write(at=time.time() - hour * hours, rows=int(rate * hours))
    lab.wait_batches(4)
    labels = 'job="spark",app="shop",query="unique",operator="0-dedupe"'
    name = "query_operator:streamgauge_state_rows:max"
    span = {"begin": 7 * hours, "end": 5.0, "step": 5.0}
    past = write_past(name, lambda age: rate * (7 * hours - age), labels, **span)
    lab.restart_prometheus(history=write_history(past))
    lab.settle(minutes=75)
    keep(lab, Result("a long deduplication"))


# ---- planned ends ----------------------------------------------------------------------------


def test_notebook_restart_is_silent(lab: Lab):
    """spark.stop() in a process that lives on, and then a new session in it."""
    lab.begin("notebook")
    lab.drain()
    since = time.time()
    lab.on("session")
    lab.wait_said("session stopped", since)
    lab.settle(minutes=12)
    keep(lab, Result("spark.stop() in a process that lives on"))
    since = time.time()
    lab.off("session")
    lab.wait_started(since)
    lab.settle(minutes=4)
    keep(lab, Result("a new session in the same process"))


def test_clean_deployment_is_silent(lab: Lab):
    """Everything stopped, the process gone, and back when a new one has started."""
    lab.begin("deployed")
    lab.drain()
    lab.on("exit")
    assert lab.wait_exit() == 0
    lab.off("exit")
    lab.settle(minutes=2)
    since = time.time()
    lab.start_driver()
    lab.wait_started(since)
    lab.settle(minutes=4)
    keep(lab, Result("a clean deployment"))


def test_deployment_by_sigterm_is_silent(lab: Lab):
    """A cluster asks the driver to end and starts another one."""
    lab.begin("evicted")
    lab.drain()
    lab.terminate()
    lab.settle(minutes=2)
    since = time.time()
    lab.start_driver()
    lab.wait_started(since)
    lab.settle(minutes=4)
    keep(lab, Result("a deployment by SIGTERM"))
