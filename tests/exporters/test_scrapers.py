"""Who scrapes, how often, and for how long the end of the process waits for them."""

import threading
import time

import pytest

from streamgauge.exporters.http.scrapers import (
    Expected,
    Rhythm,
    Scraper,
    ScraperLog,
    expect,
    find_rhythm,
)


def _every(seconds, number, start=0.0, jitter=0.0):
    late = (0.9, 0.1, 0.5, 0.0, 0.7, 0.3)
    return [start + n * seconds + jitter * late[n % len(late)] for n in range(number)]


@pytest.mark.parametrize(
    ("visits", "timeout", "rhythm"),
    [
        ([5.0], 10, None),
        (_every(15, 12), 10, Rhythm(15, 1)),
        (_every(15, 2), 10, Rhythm(15, 1)),
        ([0, 15, 30, 60, 75, 90, 105], 10, Rhythm(15, 1)),  # one scrape failed
        ([0, 900, 915, 930, 945, 960], 10, Rhythm(15, 1)),  # a new Prometheus
        (
            sorted(_every(15, 6) + _every(15, 6, start=4)),
            10,
            Rhythm(15, 2),
        ),  # two behind one address
        (sorted(_every(15, 6) + _every(15, 6, start=0.2)), 10, Rhythm(15, 2)),
        (
            sorted(_every(15, 6) + _every(15, 6, start=7.5)),
            10,
            Rhythm(15, 2),
        ),  # told by the timeout
        (
            sorted(_every(30, 4) + _every(30, 4, start=10) + _every(30, 4, start=14)),
            10,
            Rhythm(30, 3),
        ),
        ([0, 7], 10, Rhythm(10, 1)),  # two at one address, each seen once
        ([0, 3, 47, 60, 61, 99], 2, Rhythm(44, 1)),  # no rhythm: the longest pause
    ],
)
def test_interval_is_learned_from_the_visits(visits, timeout, rhythm):
    """The usual interval, whatever went wrong now and then; several at one address are several visits."""
    found = find_rhythm(visits, timeout)
    assert found == rhythm or (found.seconds, found.visits) == pytest.approx(
        (rhythm.seconds, rhythm.visits)
    )


def test_interval_with_jitter():
    """A loaded Prometheus comes a little late."""
    assert find_rhythm(_every(15, 12, jitter=1.0), 10).seconds == pytest.approx(15, abs=1)


def _scraper(visits, timeout=10.0):
    return Scraper(name="p", timeout=timeout, visits=tuple(visits))


def test_next_visit_is_one_interval_after_the_last():
    """With a little room for a late one, and never more than one interval from now."""
    due = expect(_scraper(_every(15, 12)), 11 * 15 + 4.0)
    assert due.first == pytest.approx(11)
    assert 11 < due.last < 13
    just_gone = expect(_scraper(_every(15, 12)), 11 * 15 + 0.01)
    assert just_gone.first == pytest.approx(14.99)
    assert just_gone.last < 17


def test_visit_that_was_missed_moves_on_to_the_next():
    """Two missed scrapes are a bad moment; more mean that nobody is there."""
    due = expect(_scraper(_every(15, 12)), 11 * 15 + 20.0)
    assert due.first == pytest.approx(10)
    assert expect(_scraper(_every(15, 12)), 11 * 15 + 50.0) is None


def test_late_visit_is_still_waited_for():
    """The next one is due now: it is not put off by an interval."""
    due = expect(_scraper(_every(15, 12)), 11 * 15 + 15.5)
    assert due.first == 0
    assert 0 < due.last < 2


def test_scraper_that_was_seen_once_is_expected_within_a_minute():
    """Its interval is unknown: Prometheus' default bounds it."""
    due = expect(_scraper([100.0]), 110.0)
    assert (due.visits, due.first) == (1, 0.0)
    assert 50 <= due.last <= 53
    assert expect(_scraper([100.0]), 170.0) is None


def test_pair_is_expected_twice():
    """The first of two comes soon, and both within one interval."""
    due = expect(_scraper(sorted(_every(15, 6) + _every(15, 6, start=4))), 75 + 5.0)
    assert due.visits == 2
    assert due.first == pytest.approx(10)
    assert 14 <= due.last < 17


def _visit(log, at, *, address="10.0.0.1", agent="Prometheus/3.5", timeout="10", active=("r",)):
    environ = {"REMOTE_ADDR": address, "HTTP_USER_AGENT": agent}
    if timeout is not None:
        environ["HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS"] = timeout
    log.note(environ, at, frozenset(active))


ENDED = frozenset({"r"})


@pytest.mark.parametrize("timeout", [None, "", "soon", "nan", "-1", "0", "inf"])
def test_browsers_and_curl_are_no_scrapers(timeout):
    """Nobody waits for them, nor for what only looks like a scraper."""
    log = ScraperLog()
    _visit(log, time.monotonic(), agent="curl/8", timeout=timeout)
    assert log.find(ENDED) == {}


def test_who_saw_the_end_or_never_saw_the_query_is_not_waited_for():
    """What matters is the last visit of each."""
    log, now = ScraperLog(), time.monotonic()
    _visit(log, now - 20, active=("r", "s"))
    assert len(log.find(ENDED)) == 1
    assert log.find(frozenset({"other"})) == {}
    _visit(log, now - 5, active=("s",))
    assert log.find(ENDED) == {}


def test_one_of_two_behind_one_address_has_seen_the_end():
    """The other has not, and is waited for."""
    log, now = ScraperLog(), time.monotonic()
    for visit in sorted(_every(3, 4, start=now - 14) + _every(3, 4, start=now - 13)):
        _visit(log, visit, timeout="3")
    _visit(log, now - 2, timeout="3", active=())
    assert len(log.find(ENDED)) == 1
    _visit(log, now - 1, timeout="3", active=())
    assert log.find(ENDED) == {}


def test_slow_answer_does_not_hide_a_newer_visit():
    """A scrape that began earlier and was answered later says nothing of now."""
    log, now = ScraperLog(), time.monotonic()
    _visit(log, now - 1, active=())
    _visit(log, now - 9, active=("r",))
    assert log.find(ENDED) == {}


def test_flood_of_scrapers_is_bounded():
    """Whoever sends a new name each time fills no memory."""
    log = ScraperLog()
    for n in range(1000):
        _visit(log, float(n), agent=f"Prometheus/{n}" + "x" * 10_000)
    assert len(log.find(ENDED)) == 64


def _soon(work, *delays):
    for delay in delays:
        threading.Timer(delay, work).start()


def test_both_of_a_pair_are_waited_for():
    """One of two Prometheis has come; the wait ends with the other."""
    log, began = ScraperLog(), time.monotonic()
    for address in ("10.0.0.1", "10.0.0.2"):
        _visit(log, began - 1, address=address)
    due = {key: Expected(1, 0.0, 20.0) for key in log.find(ENDED)}
    _soon(lambda: _visit(log, time.monotonic(), address="10.0.0.1"), 0.1)
    _soon(lambda: _visit(log, time.monotonic(), address="10.0.0.2"), 0.4)
    assert log.await_each(due, 35.0) == set()
    assert 0.4 <= time.monotonic() - began < 10


def test_two_behind_one_address_must_both_come():
    """Then one visit is not enough."""
    log, began = ScraperLog(), time.monotonic()
    _visit(log, began - 1)
    due = {key: Expected(2, 0.0, 20.0) for key in log.find(ENDED)}
    _soon(lambda: _visit(log, time.monotonic()), 0.1, 0.4)
    assert log.await_each(due, 35.0) == set()
    assert 0.4 <= time.monotonic() - began < 10


def test_scrape_that_began_before_the_final_state_does_not_count():
    """It was answered after, but what it shows is older."""
    log, began = ScraperLog(), time.monotonic()
    _visit(log, began - 1)
    due = {key: Expected(1, 0.0, 0.5) for key in log.find(ENDED)}
    _soon(lambda: _visit(log, began - 0.01), 0.1)
    assert log.await_each(due, 35.0) == {"10.0.0.1 Prometheus/3.5"}


@pytest.mark.parametrize(("last", "limit"), [(0.4, 35.0), (20.0, 0.4)])
def test_nobody_is_waited_for_beyond_its_time_or_the_limit(last, limit):
    """Who does not come costs one interval at most."""
    log, began = ScraperLog(), time.monotonic()
    _visit(log, began - 1)
    due = {key: Expected(1, 0.0, last) for key in log.find(ENDED)}
    assert log.await_each(due, limit) == {"10.0.0.1 Prometheus/3.5"}
    assert 0.4 <= time.monotonic() - began < 5
