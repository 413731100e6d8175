"""What is changed in PySpark for Connect: as little as that, once, and nothing where it is built differently."""

import atexit
import threading
from types import SimpleNamespace

import pytest
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Stream
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming import query

from streamgauge.listener.connect.patches import (
    DaemonPool,
    exclude_disabled_listeners,
    find_listener_bus,
    intercept_listener_removal,
    notify_of_new_sessions,
    skip_exit_call,
    use_daemon_threads,
)

POOL = "_release_thread_pool_instance"


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    """Whatever a test changes in PySpark is undone."""
    monkeypatch.setattr(query, "Thread", threading.Thread)
    monkeypatch.setattr(Stream, POOL, None)
    monkeypatch.setattr(SparkSession, "__init__", SparkSession.__init__)
    yield
    notify_of_new_sessions(None)


def test_threads_of_connect_are_daemons_afterwards():
    """Both kinds, and a second call changes nothing more."""
    use_daemon_threads()
    first = query.Thread, getattr(Stream, POOL)
    use_daemon_threads()
    assert (query.Thread, getattr(Stream, POOL)) == first
    assert query.Thread(target=print).daemon
    assert isinstance(first[1], DaemonPool)


def test_pyspark_that_is_built_differently_is_left_alone(monkeypatch):
    """Where the places are not there, nothing is put there and nothing is raised."""
    monkeypatch.delattr(query, "Thread")
    monkeypatch.delattr(Stream, POOL)
    use_daemon_threads()
    assert not hasattr(query, "Thread")
    assert not hasattr(Stream, POOL)


def test_thread_class_of_somebody_else_stays(monkeypatch):
    """Whoever has put one there has a reason."""

    class Other(threading.Thread):
        pass

    monkeypatch.setattr(query, "Thread", Other)
    use_daemon_threads()
    assert query.Thread is Other


def test_pool_serves_the_next_session_while_a_dead_ones_tasks_wait():
    """Spark has one pool for all sessions, and a dead server's tasks sit in it for minutes."""
    pool, back = DaemonPool(), threading.Event()
    stuck = [pool.submit(back.wait, 60) for _ in range(16)]
    assert pool.submit(lambda: "served").result(20) == "served"
    back.set()
    assert all(future.result(20) for future in stuck)


def test_new_session_is_told_to_the_latest_and_never_harmed():
    """One call per session; what is told may fail; None ends it."""
    told = []

    def fail(_):
        raise RuntimeError("no")

    def make():
        session = SparkSession("sc://127.0.0.1:1")  # nobody is asked until something is sent
        skip_exit_call(session)
        return session

    notify_of_new_sessions(fail)
    make()
    notify_of_new_sessions(told.append)
    second = make()
    assert told == [second]
    notify_of_new_sessions(None)
    make()
    assert told == [second]


def test_exit_call_is_taken_off(monkeypatch):
    """The exit handler that the client has registered itself, and not another."""
    registered = []

    def unregister(handler):
        registered[:] = [one for one in registered if one != handler]

    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(atexit, "unregister", unregister)
    session = SparkSession("sc://127.0.0.1:1")
    assert len(registered) == 1
    skip_exit_call(session)
    assert registered == []


def test_pool_has_what_spark_looks_for_inside():
    """Connect of 4.1 asks a pool whether it was shut down before it hands it a task."""
    use_daemon_threads()
    pool = getattr(Stream, POOL)
    assert pool._shutdown is False
    pool.shutdown()
    assert pool.submit(lambda: "still here").result(20) == "still here"


class Bus:
    """The client's listener bus, as far as it is patched."""

    def __init__(self):
        self._listener_bus, self._execution_thread, self._lock = [], None, threading.Lock()
        self.removed = []

    def append(self, listener):
        self._listener_bus.append(listener)

    def remove(self, listener):
        self.removed.append(listener)


def _session(bus):
    return SimpleNamespace(streams=SimpleNamespace(_sqlb=bus))


def test_removal_of_our_listener_is_ours_and_that_of_others_sparks():
    """The latest is asked first; the bus is patched once, however often it is asked for."""
    bus, asked = Bus(), []

    def handler(mine):
        return lambda listener: asked.append(mine) or listener == mine

    first, second = handler("first"), handler("second")
    intercept_listener_removal(_session(bus), first)
    patched = bus.remove
    for handle in (first, second, second):
        intercept_listener_removal(_session(bus), handle)
    assert bus.remove is patched
    bus.remove("second")
    assert asked == ["second"]
    bus.remove("first")
    assert bus.removed == []
    asked.clear()
    bus.remove("theirs")
    assert asked == ["second", "first"]
    assert bus.removed == ["theirs"]


def test_disabled_listeners_are_not_added():
    """Others are; a second call changes nothing more."""
    bus = Bus()
    assert exclude_disabled_listeners(_session(bus), lambda listener: listener == "off")
    patched = bus.append
    assert exclude_disabled_listeners(_session(bus), lambda listener: listener == "off")
    assert bus.append is patched
    bus.append("off")
    bus.append("on")
    assert bus._listener_bus == ["on"]


def test_bus_that_is_built_differently_is_left_alone():
    """Nothing is changed, and nothing is raised."""
    bus = SimpleNamespace(remove=print, append=print)
    assert find_listener_bus(_session(bus)) is None
    intercept_listener_removal(_session(bus), lambda _: True)
    assert not exclude_disabled_listeners(_session(bus), lambda _: True)
    assert (bus.remove, bus.append) == (print, print)
