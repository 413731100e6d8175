"""The fault lab's loops: what fails is started again, and that is what pages.

A start takes as long as it takes, however fast the rules run. So these two have a lab of their own with
slower rules, in which the time from a failure to the next start is as short beside QueryFailed's minute
as it is in production.
"""

from __future__ import annotations

import shutil
import time

import pytest
from lab import Lab, Result, paged

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
        paged(lab, result, window=0.0, begun=lambda: lab.said("started crashing")[2])
        assert time.time() - lab.broken_at < lab.knob("restart_window")
        lab.kept(result)
    shutil.rmtree(tmp_path / "prometheus-data")


def test_sink_that_fails_every_third_batch_is_a_loop(tmp_path):
    """Restarted by its own driver each time, the query is in a loop: one page says so."""
    with Lab(tmp_path, scale=1 / 6) as lab:
        lab.begin("third")
        lab.on("fail", 3)
        result = Result("a sink that fails every third batch", ["RestartLoop"])
        paged(lab, result, window=0.0, begun=lambda: lab.said("started third")[2])
        lab.off("fail")
        lab.settle(minutes=3)
        lab.kept(result)
    shutil.rmtree(tmp_path / "prometheus-data")
