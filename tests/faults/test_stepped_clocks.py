"""The fault lab: steps of the driver's wall clock set nothing off, and hide nothing.

The driver and its JVM run with libfaketime, which leaves the monotonic clock alone.
"""

from __future__ import annotations

import time

import pytest
from lab import Lab
from results import Result, allowed_seconds, keep

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

HOUR = 3600


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """A driver whose clock can be stepped."""
    with Lab(tmp_path_factory.mktemp("clock"), clock=True) as running:
        yield running
        assert not running.strays()


def hang(lab: Lab, result: Result) -> None:
    """Let the sink hang; the page comes in the time that it takes with a clock that is right."""
    lab.on("hang")
    page = lab.wait_page("QueryStalled")
    budget = lab.number(lab.of("silence_budget_seconds")) or 0
    lab.off("hang")
    result.seconds = page["at"] - lab.broken_at
    # The batch that was under way still ends, and the next one's tasks: a second at most.
    result.allowed = allowed_seconds(lab, 1 + budget + lab.parameter("stall_for"))
    result.says = ["in addBatch (sink): no task running"]
    assert budget < 2 * 300 * lab.scale, budget
    keep(lab, result)


def test_step_forward_is_no_fault(stepped: Lab):
    """An hour ahead: the difference is warned of, and a hang after it pages in time."""
    stepped.begin("ahead")
    stepped.step_clock(HOUR)
    stepped.wait_firing("ClockSkew")
    stepped.settle(minutes=12)
    keep(stepped, Result("a clock that steps an hour forward", warns=["ClockSkew"]))
    result = Result("a hang after a step forward", ["QueryStalled"], ["ClockSkew"], ["BatchStuck"])
    hang(stepped, result)


def test_step_back_is_no_fault(stepped: Lab):
    """Back by an hour while a query runs: nothing to say, and a hang after it pages in time."""
    stepped.step_clock(HOUR)
    stepped.begin("back")
    stepped.step_clock(0)
    time.sleep(2)
    stepped.since = time.time()
    stepped.settle(minutes=12)
    keep(stepped, Result("a clock that steps an hour back", may_warn=["ClockSkew"]))
    result = Result("a hang after a step back", ["QueryStalled"])
    result.may_warn = ["BatchStuck", "ClockSkew"]
    hang(stepped, result)
