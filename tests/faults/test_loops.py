"""The fault lab's loops: what fails is started again, and that is what pages.

A start takes as long as it takes, however fast the rules run. So these two have a lab of their own with
slower rules, in which the time from a failure to the next start is as short beside QueryFailed's minute
as it is in production.
"""

from __future__ import annotations

import shutil
import time

import pytest
from lab import Lab
from results import Result, keep, paged

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def test_crash_loop_of_the_driver_is_one_page(tmp_path):
    """Each driver is killed soon after its first batch: no counter survives, the loop is seen."""
    with Lab(tmp_path, scale=1 / 2) as lab:
        lab.begin("crashing", batches=1)
        lab.broken_at = time.time()
        for _ in range(2):
            lab.kill()
            lab.start_driver()
            began = time.time()
            lab.wait_number(lab.of("query_started_timestamp_seconds"), began, deadline=200)
        result = Result("a crash loop of the whole driver", ["RestartLoop"])
        result.may_warn, result.says = ["DuplicateRisk"], ["the driver was killed"]
        paged(lab, result, window=0.0, begun=lambda: lab.said("started crashing")[2])
        assert time.time() - lab.broken_at < lab.parameter("restart_window")
        keep(lab, result)
    shutil.rmtree(tmp_path / "prometheus-data")


def test_sink_that_fails_every_third_batch_is_a_loop(tmp_path):
    """Restarted by its own driver each time, the query is in a loop: one page says so."""
    with Lab(tmp_path, scale=1 / 6) as lab:
        lab.begin("third")
        lab.on("fail", 3)
        result = Result("a sink that fails every third batch", ["RestartLoop"], ["DuplicateRisk"])
        result.says = ["the sink refuses"]
        paged(lab, result, window=0.0, begun=lambda: lab.said("started third")[2])
        lab.off("fail")
        lab.settle(minutes=3)
        keep(lab, result)
    shutil.rmtree(tmp_path / "prometheus-data")


def test_two_deployments_are_no_loop_and_hide_nothing(tmp_path):
    """The whole driver is deployed twice within 13 minutes; the third deployment has no query."""
    expected = {"twice": {"expected": True}}
    with Lab(tmp_path, scale=1 / 20, queries=expected) as lab:
        lab.begin("twice")
        for _ in range(2):
            lab.drain()
            deploy(lab)
            lab.feeder.paused = False
            lab.wait_batches(1)
        assert time.time() - lab.since < lab.parameter("restart_window")
        lab.settle(minutes=3)
        keep(lab, Result("two planned deployments within 13 minutes"))
        lab.drain()
        lab.on("absent")
        stopped_at = deploy(lab)
        result = Result("a deployment after which the query is missing", ["QueryMissing"])
        result.says = ["has not been running"]
        lab.broken_at = stopped_at
        paged(lab, result, lab.parameter("missing_for"))
        keep(lab, result)
    shutil.rmtree(tmp_path / "prometheus-data")


def deploy(lab: Lab) -> float:
    """Stop everything, exit, and start a new driver; when the old one was gone."""
    began = time.time()
    lab.on("exit")
    assert lab.wait_exit() == 0
    gone_at = time.time()
    lab.off("exit")
    lab.start_driver()
    lab.wait_said("ready", began, deadline=200)
    return gone_at
