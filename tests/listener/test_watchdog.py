"""The watchdog polls each query, whatever becomes of the poll of another."""

import io
import threading
import time

import pytest
from py4j.protocol import Py4JNetworkError
from stage import Life, apply_to, wait_for

from streamgauge.error_guard import ErrorGuard
from streamgauge.exporters.logs import make_logger
from streamgauge.listener.classic.jvm import explain
from streamgauge.listener.driver import ApplicationStopped, DriverUnreachable, QuietDriver
from streamgauge.listener.inbox import Inbox
from streamgauge.listener.watchdog import Watchdog
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import (
    Gone,
    GoneCause,
    QueryStatus,
    RunDetails,
    Unseen,
    UnseenCause,
)


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


class DeadDriver(Driver):
    """A driver whose JVM is not there."""

    def __init__(self, *, gone):
        super().__init__()
        self.gone = gone

    def poll_application(self):
        raise DriverUnreachable("the JVM of the driver is gone: connection refused", gone=self.gone)


def _contents(inbox, kind):
    return [item.content for item in inbox.take(0.0) if isinstance(item.content, kind)]


def test_jvm_that_refuses_hides_its_queries_at_once_and_ends_them_with_the_next_poll():
    """The runs went with it: that is a failure, and told as one."""
    lives = Life("a"), Life("b")
    watchdog, inbox, errors = _watch(DeadDriver(gone=True), *lives)
    assert watchdog.poll()
    hidden = _contents(inbox, Unseen)
    assert [each.query_id for each in hidden] == [life.query_id for life in lives]
    assert {each.cause for each in hidden} == {UnseenCause.JVM_REFUSES}
    assert watchdog.poll()
    gone = _contents(inbox, Gone)
    assert [each.query_id for each in gone] == [life.query_id for life in lives]
    assert {(each.cause, each.error_class) for each in gone} == {(GoneCause.JVM_GONE, "JVM_GONE")}
    assert {each.exception for each in gone} == {
        "the JVM of the driver is gone: connection refused"
    }
    assert [type(error) for error in errors] == [DriverUnreachable] * 2


def test_connection_that_breaks_hides_queries_and_ends_none():
    """Only a JVM that nothing listens for is known to be dead."""
    life = Life()
    watchdog, inbox, _ = _watch(DeadDriver(gone=False), life)
    for _ in range(5):
        watchdog.poll()
        assert [each.cause for each in _contents(inbox, Unseen)] == [UnseenCause.JVM_SILENT]


def test_refusal_between_two_answers_ends_nothing():
    """Two in a row it takes."""
    watchdog, inbox, _ = _watch(DeadDriver(gone=True), Life())
    for _ in range(3):
        watchdog.poll()
        watchdog._driver.poll_application, dead = (
            QuietDriver().poll_application,
            watchdog._driver.poll_application,
        )
        watchdog.poll()
        watchdog._driver.poll_application = dead
    assert not _contents(inbox, Gone)


def test_jvm_that_does_not_answer_hides_its_queries(monkeypatch):
    """Once per call; not while events come, which only a JVM that lives sends."""
    monkeypatch.setattr("streamgauge.listener.watchdog.UNANSWERED_SECONDS", 0.2)
    now = [1000.0]
    fleet, inbox, errors, life = Fleet(), Inbox(100), [], Life()
    apply_to(fleet, decode(life.started()), now[0])
    driver, let_go = Driver(), threading.Event()
    driver.may_hang = True
    driver.poll_application = lambda: let_go.wait(30)
    watchdog = Watchdog(
        driver,
        inbox,
        lambda: fleet.queries,
        interval_seconds=0.1,
        report_error=errors.append,
        clock=lambda: now[0],
    )
    watchdog.start()
    wait_for(lambda: watchdog._asking_since is not None, what="the call")
    wait_for(lambda: time.monotonic() - watchdog._asking_since > 0.3, what="the time")
    watchdog.check_overdue()
    assert not errors  # an event came this very moment
    now[0] += 5.0
    watchdog.check_overdue()
    watchdog.check_overdue()
    hidden = _contents(inbox, Unseen)
    let_go.set()
    watchdog.close()
    assert [each.cause for each in hidden] == [UnseenCause.JVM_SILENT]
    assert hidden[0].why.startswith("the JVM of the driver does not answer since ")
    assert [type(error) for error in errors] == [DriverUnreachable]


def test_no_line_says_that_the_query_is_not_affected_when_spark_cant_be_reached():
    """Nobody knows that then."""
    written = io.StringIO()
    guard = ErrorGuard(make_logger(stream=written))
    guard.count_error("watchdog", DriverUnreachable("the JVM of the driver is gone", gone=True))
    assert "not affected" not in written.getvalue()
    assert "whether its queries run is unknown" in written.getvalue()


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (ConnectionRefusedError(111, "Connection refused"), True),
        (ConnectionResetError(104, "Connection reset by peer"), False),
        (BrokenPipeError(32, "Broken pipe"), False),
        (Py4JNetworkError("Answer from Java side is empty"), False),
    ],
)
def test_errors_of_the_connection_are_told_from_others(error, gone):
    """Py4J raises some of its own, and some as they are."""
    found = explain(error)
    assert isinstance(found, DriverUnreachable)
    assert found.gone is gone
    assert explain(ValueError("x")).args == ("x",)


def test_refusal_behind_an_error_of_py4j_is_found():
    """It wraps what the socket says."""
    error = Py4JNetworkError("An error occurred while trying to connect")
    error.__context__ = ConnectionRefusedError(111, "Connection refused")
    assert explain(error).gone
