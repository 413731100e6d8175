"""The watchdog polls each query, whatever becomes of the poll of another."""

import threading

from stage import Life, apply_to, wait_for

from streamgauge.listener.driver import ApplicationStopped, QuietDriver
from streamgauge.listener.inbox import Inbox
from streamgauge.listener.watchdog import Watchdog
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import Gone, GoneCause, QueryStatus, RunDetails


class Driver(QuietDriver):
    """Sees every query but those that it stumbles over."""

    def __init__(self, *sick, error=RuntimeError):
        self._sick = {life.query_id for life in sick}
        self._error = error

    def details(self, query_id, run_id):
        self._stumble(query_id)
        return RunDetails(query_id=query_id, run_id=run_id)

    def poll_query(self, query):
        self._stumble(query.query_id)
        return QueryStatus(
            query_id=query.query_id,
            run_id=query.run_id,
            at=1.0,
            trigger_active=False,
            data_available=False,
            phase="waiting_for_data",
        )

    def _stumble(self, query_id):
        if query_id in self._sick:
            raise self._error("stumbled")


def _watch(driver, *lives):
    """A watchdog that is not started, what it finds, and what it reports."""
    fleet, inbox, errors = Fleet(), Inbox(100), []
    for life in lives:
        apply_to(fleet, decode(life.started()), 0.0)
    watchdog = Watchdog(
        driver,
        inbox,
        lambda: fleet.queries,
        interval_seconds=5.0,
        report_error=errors.append,
    )
    return watchdog, inbox, errors


def _found(inbox, kind):
    return [item.content.query_id for item in inbox.take(0.0) if isinstance(item.content, kind)]


def test_query_that_cant_be_polled_hides_no_other():
    """The failure is counted, once; the queries after it are seen all the same."""
    sick, well = Life("a"), Life("b")
    watchdog, inbox, errors = _watch(Driver(sick), sick, well)
    assert watchdog.poll()
    assert _found(inbox, QueryStatus) == [well.query_id]
    assert len(errors) == 1


def test_new_query_that_cant_be_read_hides_no_other():
    """Nor does one that has just begun."""
    sick, well = Life("a"), Life("b")
    watchdog, inbox, errors = _watch(Driver(sick))
    for life in (sick, well):
        watchdog.request_details(life.query_id, life.run_id)
    assert not watchdog.serve_requests()
    assert _found(inbox, RunDetails) == [well.query_id]
    assert len(errors) == 1


def test_application_that_stops_in_the_middle_of_a_round_ends_every_query_once():
    """That is no failure of a poll; the cause is told."""
    lives = Life("a"), Life("b")
    watchdog, inbox, errors = _watch(Driver(*lives, error=ApplicationStopped), *lives)
    assert watchdog.poll()
    gone = [item.content for item in inbox.take(0.0) if isinstance(item.content, Gone)]
    assert [each.query_id for each in gone] == [life.query_id for life in lives]
    assert {each.cause for each in gone} == {GoneCause.APPLICATION_STOPPED}
    assert {each.why for each in gone} == {"the Spark application was stopped"}
    assert errors == []


def test_poll_that_does_not_return_is_counted_once(monkeypatch):
    """Nothing else would say that the watchdog is gone."""
    monkeypatch.setattr("streamgauge.listener.watchdog._OVERDUE_SECONDS", 0.05)
    watchdog, _, errors = _watch(QuietDriver())
    let_go = threading.Event()
    watchdog._driver.poll_application = lambda: let_go.wait(30)
    watchdog.start()
    wait_for(lambda: watchdog.check_overdue() or errors, what="the report")
    watchdog.check_overdue()
    let_go.set()
    watchdog.close()
    assert [str(error) for error in errors] == ["a poll of Spark has not returned for 0 s"]


def test_drain_is_done_by_the_watchdogs_thread():
    """And nobody waits for a watchdog that is not there."""
    drained = []
    driver = QuietDriver()
    driver.drain = lambda seconds: drained.append((threading.current_thread().name, seconds))
    watchdog, _, errors = _watch(driver)
    assert not watchdog.drain(20.0)
    watchdog.start()
    assert watchdog.drain(20.0)
    watchdog.close()
    assert {name for name, _ in drained} == {"streamgauge-watchdog"}
    assert all(0 < seconds <= 20.0 for _, seconds in drained)
    assert errors == []


def test_agent_counts_a_watchdog_that_is_stuck(agent, monkeypatch):
    """The worker notices, beat by beat."""
    monkeypatch.setattr("streamgauge.listener.watchdog._OVERDUE_SECONDS", 0.05)
    let_go = threading.Event()
    mine = agent()
    mine._watchdog._driver.poll_application = lambda: let_go.wait(30)
    mine._watchdog.poll_soon()
    wait_for(lambda: mine.stats.of("errors").get("watchdog"), what="the count")
    let_go.set()
