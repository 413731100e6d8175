"""What a Connect client needs to be able to exit, and how to hear of its new sessions.

Connect's threads are not daemons, and with a dead server they try again for minutes: a process that
has a listener would not end (spark-facts 10). These are all the changes that are made to PySpark itself
(docs/connect.md lists them). Each is private there, each is made on its own, and where a Spark
does not have the place, nothing is changed and nothing is raised.
"""

from __future__ import annotations

import atexit
import functools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

_HOOK = "_streamgauge_hook"
_POOL = "_release_thread_pool_instance"
_FAREWELLS = ("_on_exit", "_cleanup_ml_cache", "_cleanup_ml")  # 4.2 and newer; 4.1; 4.0
# Spark has one pool for all sessions; tasks for a dead server sit in it for minutes, and those of
# the application's next session must not wait behind them.
_THREADS = 32


class DaemonPool(ThreadPoolExecutor):
    """Spark's pool as far as Spark can tell, on threads that don't outlive the program.

    A subclass, because Spark looks inside (4.1 asks for `_shutdown`); it starts no threads of its own.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=_THREADS)
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._idle = threading.Semaphore(0)  # the threads that have no task and are promised none
        self._running = 0

    def submit(self, task: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a task run soon; its outcome is in the future that is returned."""
        future: Future[Any] = Future()
        self._tasks.put((future, functools.partial(task, *args, **kwargs)))
        with self._starting:
            if not self._idle.acquire(blocking=False) and self._running < _THREADS:
                self._running += 1
                threading.Thread(target=self._run, name="connect-release", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to do: the threads are daemons and wait for more."""

    def _run(self) -> None:
        while True:
            future, task = self._tasks.get()
            try:
                future.set_result(task())
            except BaseException as error:  # noqa: BLE001 - the future carries it, as an executor's does
                future.set_exception(error)
            self._idle.release()


class _DaemonThread(threading.Thread):
    """The thread on which Connect's client hands out events."""

    _streamgauge_hook = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "daemon": True})


def let_exit() -> None:
    """Have the threads that a listener brings to a Connect client not hold up its exit."""
    with suppress(ImportError, AttributeError):
        from pyspark.sql.connect.streaming import query  # noqa: PLC0415 - pyspark is an extra

        if query.Thread is threading.Thread:  # not where somebody has put another one
            query.Thread = _DaemonThread
    with suppress(ImportError, AttributeError):
        from pyspark.sql.connect.client import reattach  # noqa: PLC0415

        stream: Any = reattach.ExecutePlanResponseReattachableIterator
        if not isinstance(getattr(stream, _POOL), DaemonPool):
            setattr(stream, _POOL, DaemonPool())


def skip_farewell(session: Any) -> None:
    """Have a client not wait, at exit, for a server that does not answer; it would try for minutes."""
    for name in _FAREWELLS:
        farewell = getattr(session.client, name, None)
        if farewell is not None:
            atexit.unregister(farewell)


_told_of_sessions: Callable[[Any], None] | None = None


def hear_of_sessions(made: Callable[[Any], None] | None) -> None:
    """Have `made` called with each Connect session this process makes from now on, in its thread.

    The session is not complete then: `made` may note it and nothing else. A later call takes the
    place of an earlier one; None ends it.
    """
    global _told_of_sessions  # noqa: PLW0603 - one a process, as the agent is
    _told_of_sessions = made
    with suppress(ImportError, AttributeError):
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

        if not hasattr(SparkSession.__init__, _HOOK):
            SparkSession.__init__ = _then_tell(SparkSession.__init__)


def _then_tell(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def init_and_tell(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        told = _told_of_sessions
        if told is not None:
            with suppress(Exception):  # the application must not notice
                told(self)

    setattr(init_and_tell, _HOOK, True)
    return init_and_tell
