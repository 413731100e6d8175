"""The Connect driver over sessions that are played; Connect itself is tested in tests/spark."""

import threading
from types import SimpleNamespace

import pytest
from pyspark.sql.connect.session import SparkSession
from stage import Life, apply_to, wait_for

from streamgauge.listener.connect import patches
from streamgauge.listener.connect.background import BackgroundCall
from streamgauge.listener.connect.driver import ConnectDriver
from streamgauge.listener.connect.subscription import Subscription
from streamgauge.listener.driver import ApplicationInfo, ApplicationStopped
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import Gone, GoneCause, Phase, QueryStatus, Unseen, UnseenCause


class Bus:
    """The client's listener bus; its thread is the test's own."""

    def __init__(self):
        self._listener_bus, self._lock = [], threading.Lock()
        self._execution_thread = threading.current_thread()

    def remove(self, listener):
        self._listener_bus.remove(listener)


class Session:
    """A session of public parts, whose server answers until it is broken."""

    def __init__(self, *queries):
        self.bus, self.version, self.is_stopped = Bus(), "4.0.1", False
        self.streams = SimpleNamespace(_sqlb=self.bus, addListener=self._add)
        self.conf = SimpleNamespace(get=lambda key: f"{key} of shop")
        self.client = SimpleNamespace(execute_command=lambda _: None)
        self.queries, self.error = list(queries), None

    def _add(self, listener):
        self.bus._listener_bus.append(listener)

    def __getattribute__(self, name):
        error = object.__getattribute__(self, "__dict__").get("error")
        if name == "version" and error is not None:
            raise error
        if name == "streams":
            object.__getattribute__(self, "__dict__")["streams"].active = self.queries
        return object.__getattribute__(self, name)


def _running(life, message="Processing new data"):
    status = {"message": message, "isDataAvailable": True, "isTriggerActive": True}
    return SimpleNamespace(id=life.query_id, runId=life.run_id, name=life.name, status=status)


@pytest.fixture
def driver(monkeypatch):
    """A driver, with what it lost and how often it woke somebody; PySpark is as before afterwards."""
    monkeypatch.setattr(SparkSession, "__init__", SparkSession.__init__)
    lost, woken = [], []
    made = ConnectDriver(lose_all=lost.append, wake=lambda: woken.append(1), clock=lambda: 100.0)
    made.lost, made.woken = lost, woken
    yield made
    made.close()


@pytest.fixture
def query():
    """A query that has begun."""
    life = Life("orders")
    started = apply_to(Fleet(), decode(life.started()), 50.0)
    return life, started


def test_constructor_patches_nothing(driver):
    """The first `add` does, and says so; `close` ends it."""
    assert not hasattr(SparkSession.__init__, "_streamgauge_hook")
    session = Session()
    remove = session.bus.remove
    driver.add(session, object())
    assert hasattr(SparkSession.__init__, "_streamgauge_hook")
    assert session.bus.remove != remove
    assert patches._on_new_session == driver._note
    driver.close()
    assert patches._on_new_session is None


def test_added_session_is_described_and_polled(driver, query):
    """What the client knows, and no more."""
    life, started = query
    session, listener = Session(_running(life)), object()
    session.streams.addListener(listener)
    found = driver.add(session, listener)
    assert found == ApplicationInfo("spark.app.name of shop")
    assert driver.woken == [1]
    status = driver.poll_application()
    assert (status.app_name, status.spark_version) == ("spark.app.name of shop", "4.0.1")
    seen = driver.poll_query(started)
    assert isinstance(seen, QueryStatus)
    assert (seen.phase, seen.listening, seen.tasks) == (Phase.PROCESSING, True, None)
    assert driver.details(life.query_id, life.run_id).spark_version == "4.0.1"
    assert driver.checkpoint_files() is None


def test_run_that_no_session_has_is_gone_after_three_polls(driver, query):
    """Its Terminated event may still be on the way."""
    _, started = query
    session, listener = Session(), object()
    session.streams.addListener(listener)
    driver.add(session, listener)
    gone = [driver.poll_query(started) for _ in range(3)]
    assert gone[:2] == [None, None]
    assert isinstance(gone[2], Gone)
    assert gone[2].cause is GoneCause.INACTIVE


def test_dead_session_hides_its_queries_until_a_new_one_takes_its_place(driver, query):
    """Then its runs are lost, with the cause, and our listener is put on the new one."""
    life, started = query
    old, listener = Session(_running(life)), object()
    old.streams.addListener(listener)
    driver.add(old, listener)
    old.error = RuntimeError("[NO_ACTIVE_SESSION] No active Spark session")
    driver.poll_application()
    hidden = driver.poll_query(started)
    assert isinstance(hidden, Unseen)
    assert hidden.cause is UnseenCause.SESSION_DEAD
    assert driver.lost == []
    new = Session()
    driver._note(new)
    driver.poll_application()
    assert driver.lost == [GoneCause.SESSION_DIED]
    assert new.bus._listener_bus == [listener]


def test_every_new_session_is_followed_when_asked_for(driver):
    """Without it the living one is enough."""
    first, second, listener = Session(), Session(), object()
    first.streams.addListener(listener)
    driver.add(first, listener)
    driver._note(second)
    driver.poll_application()
    assert second.bus._listener_bus == []
    driver.add(first, listener, everywhere=True)
    driver.poll_application()
    assert second.bus._listener_bus == [listener]
    assert driver.lost == []


def test_stopped_sessions_end_the_application_when_the_last_one_goes(driver):
    """`leave` says whether another one goes on."""
    first, second = Session(), Session()
    for session in (first, second):
        driver.add(session, object())
    driver.part(first)
    assert driver.leave(first)
    assert not driver.leave(second)
    with pytest.raises(ApplicationStopped):
        driver.poll_application()
    assert driver.stop_cause is GoneCause.SESSION_STOPPED


def test_listener_that_the_application_removed_is_not_put_back(driver, query):
    """It is taken off without Spark's own `remove`, and the query is not seen from then on."""
    life, started = query
    session, listener, other = Session(_running(life)), object(), object()
    for one in (listener, other):
        session.streams.addListener(one)
    driver.add(session, listener)
    session.bus.remove(listener)
    driver.poll_application()
    assert session.bus._listener_bus == [other]
    assert driver.poll_query(started).cause is UnseenCause.LISTENER_REMOVED


def test_cleared_bus_gets_our_listener_again(driver):
    """Spark clears it when the stream of events breaks; a dead thread is not waited for."""
    session, listener = Session(), object()
    session.streams.addListener(listener)
    driver.add(session, listener)
    session.bus._listener_bus.clear()
    session.bus._execution_thread = None
    driver.poll_application()
    assert session.bus._listener_bus == [listener]


def test_removal_that_fails_is_a_warning():
    """Spark's own does not raise either."""
    session, listener = Session(), object()
    session.streams.addListener(listener)
    session.bus._execution_thread = None

    def fail(_):
        raise OSError("no server")

    session.client.execute_command = fail
    subscription = Subscription(session, listener)
    assert not subscription.handle_removal(object())
    with pytest.warns(UserWarning, match="no server"):
        assert subscription.handle_removal(listener)
    assert subscription.removed


def test_background_call_is_made_once_at_a_time_and_can_be_abandoned():
    """Nobody waits longer than asked; what it raises is dropped."""
    let_go, calls = threading.Event(), []
    background = BackgroundCall("test")

    def work():
        calls.append(threading.current_thread().daemon)
        let_go.wait(30)
        raise OSError("no server")

    for _ in range(2):
        background.run(work, 0.01)
    assert background.running
    assert calls == [True]
    background.abandon()
    assert not background.running
    let_go.set()
    background.run(work, 20)
    wait_for(lambda: not background.running, what="the end")
    assert calls == [True, True]


def test_background_call_works_where_no_thread_can_be_started(monkeypatch):
    """At exit: in the caller's thread then."""

    def full(_):
        raise RuntimeError("can't start new thread at interpreter shutdown")

    calls = []
    monkeypatch.setattr(threading.Thread, "start", full)
    BackgroundCall("test").run(lambda: calls.append(1), 1.0)
    assert calls == [1]
