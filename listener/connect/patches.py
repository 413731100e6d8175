"""All patches of PySpark for Connect; docs/connect.md lists them.

Connect's threads are not daemons, and with a dead server they try again for minutes: a process that
has a listener would not end. What is patched is private in PySpark. Each patch is made by a function that
says so, when it is called and not on import; a second call changes nothing more; and where a PySpark is
built differently, nothing is changed and nothing is raised.
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
_EXIT_CALLS = ("_on_exit", "_cleanup_ml_cache", "_cleanup_ml")  # 4.2 and newer; 4.1; 4.0
_REMOVAL_HANDLERS = "_streamgauge_removal_handlers"
# Spark has one pool for all sessions; tasks for a dead server sit in it for minutes, and those of
# the application's next session must not wait behind them.
_MOST_THREADS = 32


class DaemonPool(ThreadPoolExecutor):
    """Works as Spark's own pool does, on threads that don't outlive the program.

    A subclass, because Spark 4.1 reads its `_shutdown`; the base class starts no threads.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=_MOST_THREADS)
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._idle = threading.Semaphore(0)  # the threads that have no task and are promised none
        self._running = 0

    def submit(self, task: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a task run soon; its outcome is in the future that is returned."""
        future: Future[Any] = Future()
        self._tasks.put((future, functools.partial(task, *args, **kwargs)))
        with self._starting:
            if not self._idle.acquire(blocking=False) and self._running < _MOST_THREADS:
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


def use_daemon_threads() -> None:
    """Patch Connect so that the threads of its listeners do not hold up the exit of the process."""
    with suppress(ImportError, AttributeError):
        from pyspark.sql.connect.streaming import query  # noqa: PLC0415 - pyspark is an extra

        if query.Thread is threading.Thread:  # not where somebody has put another one
            query.Thread = _DaemonThread
    with suppress(ImportError, AttributeError):
        from pyspark.sql.connect.client import reattach  # noqa: PLC0415

        stream: Any = reattach.ExecutePlanResponseReattachableIterator
        if not isinstance(getattr(stream, _POOL), DaemonPool):
            setattr(stream, _POOL, DaemonPool())


def skip_exit_call(session: Any) -> None:
    """Unregister a client's exit handler, which would try for minutes to reach a dead server."""
    for name in _EXIT_CALLS:
        handler = getattr(session.client, name, None)
        if handler is not None:
            atexit.unregister(handler)


# ---- new sessions ------------------------------------------------------------------------------

_on_new_session: Callable[[Any], None] | None = None


def notify_of_new_sessions(notify: Callable[[Any], None]) -> None:
    """Patch `SparkSession.__init__` to call `notify` with each Connect session, in its thread.

    The session is not complete then: `notify` may keep it and nothing else. A later call replaces
    `notify`.
    """
    global _on_new_session  # noqa: PLW0603 - one per process, as the agent is
    _on_new_session = notify
    with suppress(ImportError, AttributeError):
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

        if not hasattr(SparkSession.__init__, _HOOK):
            SparkSession.__init__ = _then_notify(SparkSession.__init__)


def stop_notifying(notify: Callable[[Any], None]) -> None:
    """End it, unless another agent has taken over by now."""
    global _on_new_session  # noqa: PLW0603
    if _on_new_session == notify:
        _on_new_session = None


def _then_notify(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def init_and_notify(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        notify = _on_new_session
        if notify is not None:
            with suppress(Exception):  # the application must not notice
                notify(self)

    setattr(init_and_notify, _HOOK, True)
    return init_and_notify


# ---- one session's listener bus ----------------------------------------------------------------


def find_listener_bus(session: Any) -> Any:
    """The client's own listener bus, if it is built as we know it; else None."""
    bus = getattr(session.streams, "_sqlb", None)
    parts = ("_listener_bus", "_execution_thread", "_lock", "remove")
    return bus if all(hasattr(bus, part) for part in parts) else None


def intercept_listener_removal(session: Any, handle: Callable[[Any], bool]) -> None:
    """Patch a session's bus to ask `handle(listener)` first when a listener is removed.

    True means that it was removed, and Spark's own `remove` is not called. `handle` runs in the
    application's thread and must not raise. Of several, the latest is asked first.
    """
    bus = find_listener_bus(session)
    if bus is None:
        return
    handlers: list[Callable[[Any], bool]] | None = getattr(bus, _REMOVAL_HANDLERS, None)
    if handlers is None:
        handlers = []
        setattr(bus, _REMOVAL_HANDLERS, handlers)
        bus.remove = _then_remove(handlers, bus.remove)
    if handle not in handlers:
        handlers.insert(0, handle)


def _then_remove(
    handlers: list[Callable[[Any], bool]], remove: Callable[[Any], None]
) -> Callable[[Any], None]:
    @functools.wraps(remove)
    def handle_or_remove(listener: Any) -> None:
        for handle in tuple(handlers):
            if handle(listener):
                return
        remove(listener)

    return handle_or_remove


def exclude_disabled_listeners(session: Any, is_disabled: Callable[[Any], bool]) -> bool:
    """Patch a session's bus so that it ignores disabled listeners when they are added; whether it does.

    Then nothing is registered on the server and no thread begins; to remove one that is not on
    the bus is nothing to Spark. Raises what a session that is built differently raises.
    """
    bus = find_listener_bus(session)
    append: Callable[[Any], None] | None = getattr(bus, "append", None)
    if append is None:
        return False
    if not hasattr(append, _HOOK):

        @functools.wraps(append)
        def append_enabled(listener: Any) -> None:
            if not is_disabled(listener):
                append(listener)

        setattr(append_enabled, _HOOK, True)
        bus.append = append_enabled
    return True
