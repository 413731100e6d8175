"""What is changed in PySpark for Connect: as little as that, once, and nothing where it is built differently."""

import atexit
import threading

import pytest
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Stream
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming import query

from streamgauge.listener.connect.patches import (
    DaemonPool,
    hear_of_sessions,
    let_exit,
    skip_farewell,
)

POOL = "_release_thread_pool_instance"


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    """Whatever a test changes in PySpark is undone."""
    monkeypatch.setattr(query, "Thread", threading.Thread)
    monkeypatch.setattr(Stream, POOL, None)
    monkeypatch.setattr(SparkSession, "__init__", SparkSession.__init__)
    yield
    hear_of_sessions(None)


def test_threads_of_connect_are_daemons_afterwards():
    """Both kinds, and a second call changes nothing more."""
    let_exit()
    first = query.Thread, getattr(Stream, POOL)
    let_exit()
    assert (query.Thread, getattr(Stream, POOL)) == first
    assert query.Thread(target=print).daemon
    assert isinstance(first[1], DaemonPool)


def test_pyspark_that_is_built_differently_is_left_alone(monkeypatch):
    """Where the places are not there, nothing is put there and nothing is raised."""
    monkeypatch.delattr(query, "Thread")
    monkeypatch.delattr(Stream, POOL)
    let_exit()
    assert not hasattr(query, "Thread")
    assert not hasattr(Stream, POOL)


def test_thread_class_of_somebody_else_stays(monkeypatch):
    """Whoever has put one there has a reason."""

    class Other(threading.Thread):
        pass

    monkeypatch.setattr(query, "Thread", Other)
    let_exit()
    assert query.Thread is Other


def test_pool_serves_the_next_session_while_a_dead_ones_tasks_wait():
    """Spark has one pool for all sessions, and a dead server's tasks sit in it for minutes."""
    pool, back = DaemonPool(), threading.Event()
    stuck = [pool.submit(back.wait, 60) for _ in range(16)]
    assert pool.submit(lambda: "served").result(20) == "served"
    back.set()
    assert all(future.result(20) for future in stuck)


def test_new_session_is_told_to_the_latest_and_never_harmed():
    """One call a session; what is told may fail; None ends it."""
    told = []

    def fail(_):
        raise RuntimeError("no")

    def make():
        session = SparkSession("sc://127.0.0.1:1")  # nobody is asked until something is sent
        skip_farewell(session)
        return session

    hear_of_sessions(fail)
    make()
    hear_of_sessions(told.append)
    second = make()
    assert told == [second]
    hear_of_sessions(None)
    make()
    assert told == [second]


def test_farewell_is_taken_off(monkeypatch):
    """The exit handler that the client has registered itself, and not another."""
    registered = []

    def unregister(handler):
        registered[:] = [one for one in registered if one != handler]

    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(atexit, "unregister", unregister)
    session = SparkSession("sc://127.0.0.1:1")
    assert len(registered) == 1
    skip_farewell(session)
    assert registered == []


def test_pool_has_what_spark_looks_for_inside():
    """Connect of 4.1 asks a pool whether it was shut down before it hands it a task."""
    let_exit()
    pool = getattr(Stream, POOL)
    assert pool._shutdown is False
    pool.shutdown()
    assert pool.submit(lambda: "still here").result(20) == "still here"
