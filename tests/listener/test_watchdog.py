"""The watchdog looks at each query, whatever becomes of the look at another."""

import threading

from stage import Life, QuietDriver, apply_to, wait_for

from streamgauge.listener.classic.driver import ApplicationStopped
from streamgauge.listener.inbox import Inbox
from streamgauge.listener.watchdog import Watchdog
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import Gone, QueryStatus, RunDetails


class Driver(QuietDriver):
    """Sees every query but those that it stumbles over."""

    def __init__(self, *sick, error=RuntimeError):
        self._sick = {life.query_id for life in sick}
        self._error = error

    def details(self, query_id, run_id):
        self._stumble(query_id)
        return RunDetails(query_id=query_id, run_id=run_id)

    def sight(self, query):
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
    """A watchdog that is not started, what it finds, and what it complains of."""
    fleet, inbox, errors = Fleet(), Inbox(100), []
    for life in lives:
        apply_to(fleet, decode(life.started()), 0.0)
    watchdog = Watchdog(driver, inbox, lambda: fleet.queries, seconds=5.0, failed=errors.append)
    return watchdog, inbox, errors


def _found(inbox, kind):
    return [item.content.query_id for item in inbox.take(0.0) if isinstance(item.content, kind)]


def test_query_that_cant_be_looked_at_hides_no_other():
    """The failure is counted, once; the queries after it are seen all the same."""
    sick, well = Life("a"), Life("b")
    watchdog, inbox, errors = _watch(Driver(sick), sick, well)
    watchdog._guard(watchdog.look)
    assert _found(inbox, QueryStatus) == [well.query_id]
    assert len(errors) == 1


def test_new_query_that_cant_be_read_hides_no_other():
    """Nor does one that has just begun."""
    sick, well = Life("a"), Life("b")
    watchdog, inbox, errors = _watch(Driver(sick))
    for life in (sick, well):
        watchdog.kick(life.query_id, life.run_id)
    watchdog._guard(watchdog._read_new)
    assert _found(inbox, RunDetails) == [well.query_id]
    assert len(errors) == 1


def test_application_that_stops_in_the_middle_of_a_round_ends_every_query_once():
    """That is no failure of a look."""
    lives = Life("a"), Life("b")
    watchdog, inbox, errors = _watch(Driver(*lives, error=ApplicationStopped), *lives)
    watchdog._guard(watchdog.look)
    assert _found(inbox, Gone) == [life.query_id for life in lives]
    assert errors == []


def test_look_that_does_not_come_back_is_counted_once(monkeypatch):
    """Nothing else would say that the watchdog is gone."""
    monkeypatch.setattr("streamgauge.listener.watchdog._PATIENCE", 0.05)
    watchdog, _, errors = _watch(QuietDriver())
    let_go = threading.Event()
    watchdog.driver.tick = lambda: let_go.wait(30)
    watchdog.start()
    wait_for(lambda: watchdog.check() or errors, what="the complaint")
    watchdog.check()
    let_go.set()
    watchdog.close()
    assert [str(error) for error in errors] == ["a look at Spark has not come back for 0 s"]


def test_agent_counts_a_watchdog_that_is_stuck(agent, monkeypatch):
    """The worker notices, beat by beat."""
    monkeypatch.setattr("streamgauge.listener.watchdog._PATIENCE", 0.05)
    let_go = threading.Event()
    mine = agent()
    mine._watchdog.driver.tick = lambda: let_go.wait(30)
    mine._watchdog.wake()
    wait_for(lambda: mine.stats.of("errors").get("watchdog"), what="the count")
    let_go.set()
