"""The loop of all pollers: pace, back-off, wake-ups, and a close that waits for nobody."""

import threading
import time

from stage import wait_for

from streamgauge.listener.poller import Pace, PollLoop


def _loop(poll, *, check=lambda: False, check_seconds=float("inf"), **pace):
    """A loop that is not started, and what it reports."""
    errors = []
    pace = Pace(**{"interval_seconds": 60.0, **pace})
    loop = PollLoop(
        "streamgauge-test",
        poll,
        pace=pace,
        report_error=errors.append,
        check=check,
        check_seconds=check_seconds,
    )
    return loop, errors


def test_pause_doubles_after_each_failure_up_to_the_longest():
    """And is the interval again after a success."""
    pace = Pace(interval_seconds=5.0, longest_pause_seconds=30.0)
    pauses, pause = [], 5.0
    for _ in range(4):
        pause = pace.pause_after(pause, 0.0, succeeded=False)
        pauses.append(pause)
    assert pauses == [10.0, 20.0, 30.0, 30.0]
    assert pace.pause_after(pause, 0.0, succeeded=True) == 5.0


def test_longest_pause_is_never_shorter_than_the_interval():
    """A failure must not make polls more frequent; without a limit there is no back-off."""
    pace = Pace(interval_seconds=60.0, longest_pause_seconds=30.0)
    assert pace.pause_after(60.0, 0.0, succeeded=False) == 60.0
    assert Pace(interval_seconds=5.0).pause_after(5.0, 0.0, succeeded=False) == 5.0


def test_expensive_polls_are_made_less_often():
    """Their share of a processor is bounded, and so is the pause."""
    pace = Pace(interval_seconds=5.0, longest_pause_seconds=30.0, max_cpu_share=1 / 40)
    assert pace.pause_after(5.0, 0.01, succeeded=True) == 5.0
    assert pace.pause_after(5.0, 0.5, succeeded=True) == 20.0
    assert pace.pause_after(5.0, 9.0, succeeded=True) == 30.0


def test_poll_that_raises_is_reported_and_the_loop_goes_on():
    """It counts as a failure."""
    polls = []

    def poll():
        polls.append(time.monotonic())
        raise OSError("down")

    loop, errors = _loop(poll, interval_seconds=0.05, longest_pause_seconds=10.0)
    loop.start()
    wait_for(lambda: len(polls) >= 4, what="four polls")
    loop.close()
    assert [str(error) for error in errors[:3]] == ["down"] * 3
    assert polls[3] - polls[2] >= 0.39  # 0.1, 0.2, 0.4


def test_first_poll_waits_for_its_pause():
    """At once by default; later where the pace says so."""
    polled = threading.Event()
    soon, _ = _loop(lambda: polled.set() or True)
    late, _ = _loop(lambda: 1 / 0, first_pause_seconds=60.0)
    soon.start()
    late.start()
    wait_for(polled.is_set, what="the first poll")
    soon.close()
    late.close()
    wait_for(lambda: not late.alive, what="the end of the loop")


def test_wake_up_runs_the_check_and_no_poll():
    """A poll follows only when the check asks for one, or `poll_soon` does."""
    checks, polls, urgent = [], [], threading.Event()
    loop, errors = _loop(
        lambda: polls.append(1) or True,
        check=lambda: checks.append(1) or urgent.is_set(),
        first_pause_seconds=60.0,
    )
    loop.start()
    loop.wake()
    wait_for(lambda: checks, what="the check")
    assert polls == []
    urgent.set()
    loop.wake()
    wait_for(lambda: len(polls) == 1, what="the urgent poll")
    urgent.clear()
    loop.poll_soon()
    wait_for(lambda: len(polls) == 2, what="the poll that was asked for")
    loop.close()
    assert errors == []


def test_check_runs_between_polls():
    """Every so many seconds, without a wake-up."""
    checks = []
    loop, _ = _loop(
        lambda: True,
        check=lambda: checks.append(1) and False,
        check_seconds=0.01,
        first_pause_seconds=60.0,
    )
    loop.start()
    wait_for(lambda: len(checks) > 3, what="checks")
    loop.close()


def test_fixed_rate_counts_from_the_begin_of_a_poll():
    """A slow poll does not push the next one back; without it the pause follows the poll."""
    assert Pace(interval_seconds=5.0, fixed_rate=True).due_after(100.0, 103.0, 5.0) == 105.0
    assert Pace(interval_seconds=5.0).due_after(100.0, 103.0, 5.0) == 108.0


def test_close_waits_for_nobody():
    """A poll that hangs is left to itself, on a daemon thread; until then the loop is busy."""
    let_go = threading.Event()
    loop, _ = _loop(lambda: let_go.wait(30))
    assert loop.busy_since is None
    loop.start()
    wait_for(lambda: loop.busy_since is not None, what="the poll")
    assert time.monotonic() - loop.busy_since < 20
    began = time.monotonic()
    loop.close()
    assert time.monotonic() - began < 1
    assert loop.closed
    assert loop._thread.daemon
    let_go.set()
    wait_for(lambda: not loop.alive, what="the end of the loop")


def test_request_from_before_the_close_is_still_served():
    """Whoever waits for it would else wait in vain."""
    served = threading.Event()
    loop, _ = _loop(lambda: True, check=lambda: served.set() or False, first_pause_seconds=60.0)
    loop.start()
    loop.close()
    assert served.wait(20)
