"""What a Connect client needs to be able to exit, and how to hear of its new sessions.

Connect's threads are not daemons, and with a dead server they try again for minutes: a process that
has a listener would not end (spark-facts 10). All that is changed here is private in PySpark; where a
Spark does not have it, nothing is changed.
"""

from __future__ import annotations

import atexit
import functools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_HOOK = "_streamgauge_hook"
_THREADS = 4


class DaemonPool:
    """As much of an executor as Connect's client asks for, on threads that don't outlive the program."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0

    def submit(self, task: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a task run soon; its outcome is in the future that is returned."""
        future: Future[Any] = Future()
        self._tasks.put((future, functools.partial(task, *args, **kwargs)))
        with self._lock:
            if self._idle < self._tasks.qsize() and self._threads < _THREADS:
                self._threads += 1
                threading.Thread(target=self._run, name="connect-release", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to do: the threads are daemons and wait for more."""

    def _run(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            future, task = self._tasks.get()
            with self._lock:
                self._idle -= 1
            try:
                future.set_result(task())
            except BaseException as error:  # noqa: BLE001 - the future carries it, as an executor's does
                future.set_exception(error)


def let_exit() -> None:
    """Have the threads that a listener brings to a Connect client not hold up its exit."""
    from pyspark.sql.connect.client import reattach  # noqa: PLC0415 - pyspark is an extra
    from pyspark.sql.connect.streaming import query  # noqa: PLC0415

    if hasattr(query, "Thread") and not hasattr(query.Thread, _HOOK):
        query.Thread = _DaemonThread
    stream: Any = reattach.ExecutePlanResponseReattachableIterator
    name = "_release_thread_pool_instance"
    if hasattr(stream, name) and not isinstance(getattr(stream, name), DaemonPool):
        setattr(stream, name, DaemonPool())


def skip_farewell(session: Any) -> None:
    """Have a client not wait, at exit, for a server that does not answer; it would try for minutes."""
    farewell = getattr(session.client, "_on_exit", None)
    if farewell is not None:
        atexit.unregister(farewell)


class _DaemonThread(threading.Thread):
    """The thread on which Connect's client hands out events."""

    _streamgauge_hook = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "daemon": True})


def hear_of_sessions(made: Callable[[Any], None]) -> None:
    """Have `made` called with each Connect session this process makes from now on, in its thread.

    The session is not complete then: `made` may note it and nothing else, and must not raise. A
    later call takes the place of an earlier one.
    """
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

    init = getattr(SparkSession.__init__, _HOOK, SparkSession.__init__)

    @functools.wraps(init)
    def init_and_tell(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made(self)

    setattr(init_and_tell, _HOOK, init)
    SparkSession.__init__ = init_and_tell
