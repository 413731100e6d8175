"""The fault lab's crash loop: a driver that is killed again and again, alone on the machine."""

from __future__ import annotations

import shutil
import time

import pytest
from lab import Lab, Result, paged


@pytest.mark.lab
@pytest.mark.timeout(600)
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
