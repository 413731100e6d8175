"""Where Spark's events enter Python: from a queue in the JVM, without Python on Spark's threads.

Spark's threads leave each event in a `JvmQueue`. A daemon thread of ours waits there, on a Py4J connection of
its own and without the interpreter lock, and passes events on to the inbox in order of arrival.

When Python stands still for so long that the queue fills up, started and terminated events are kept, and
progress and idle events are dropped. `dropped` counts both; lost batches also show as gaps in the batch
ids, lost idle events do not.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from streamgauge.listener.host import Host
from streamgauge.listener.inbox import Inbox, Item
from streamgauge.steady import steady_time

from .application import active_context
from .bridge import find_gateway, text_of
from .jvm_queue import MARK, UNKNOWN, JvmQueue, Row, Taken

# Events that wait in the JVM. An event that lists 3 x 1,000 partitions takes 150 KiB there.
_CAPACITY = 500
# Started and terminated events that wait beyond that: small, and far more than Python can be late for.
_RESERVE = 10_000
# Events per Py4J call: bounds the text that is built in the JVM and again in Python.
_BURST = 64
# An event ends the wait at once; this is how soon the thread sees that nobody needs it any more.
_WAIT_MS = 500
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0  # after a failure, and after many in a row
_making = threading.Lock()


def make_queue_listener(host: Host) -> Any:
    """A Java listener that fills the queue of this agent, which is made if there is none in this JVM.

    Raises where this JVM or this Spark lacks what is needed.
    """
    known = host.registrations
    with _making:
        if known.queue is None or not known.queue.connected:
            known.queue = QueueBridge(host.inbox)
        return known.queue.make_listener()


class QueueBridge:
    """Feeds one inbox from any number of listeners, on any number of Spark's buses.

    All methods are safe on any thread. The constructor and `make_listener` raise where this JVM or this
    Spark lacks what is needed; nothing else raises.
    """

    def __init__(
        self, inbox: Inbox, *, capacity: int = _CAPACITY, clock: Callable[[], float] = steady_time
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._gateway = find_gateway()
        self._queue = JvmQueue(self._gateway, capacity=capacity, reserve=_RESERVE, burst=_BURST)
        self.dropped = 0  # progress and idle events that did not fit into the queue
        self._lock = threading.Lock()  # for the three below
        self._thread: threading.Thread | None = None
        self._context: Any = None
        self._marks: dict[str, threading.Event] = {}
        self._names = itertools.count()
        self._held: list[Row] = []  # of the reserve, while older events are in the main queue

    @property
    def connected(self) -> bool:
        """Whether the JVM of this bridge is still the one that PySpark uses."""
        return self._gateway is not None and self._gateway is find_gateway()

    def make_listener(self) -> Any:
        """A Java listener for Spark's bus."""
        return self._queue.make_listener()

    def listen(self) -> None:
        """A listener goes on a bus: pass events on until the application or the agent ends.

        Call it before each `addListener`; it resumes in the next application.
        """
        with self._lock:
            self._context = active_context()
            self._ensure_thread()

    def drain(self, seconds: float) -> bool:
        """Wait until the events in the queue now are in the inbox; whether they are, in that time."""
        name, passed = str(next(self._names)), threading.Event()
        with self._lock:
            if self._thread is None:
                return True  # nothing is in the queue
            self._marks[name] = passed
            self._ensure_thread()
        try:
            self._queue.mark(name)
            return passed.wait(seconds)
        except Exception:  # noqa: BLE001 - Py4J's: the JVM is gone, and the queue with it
            return False
        finally:
            self._marks.pop(name, None)

    def _ensure_thread(self) -> None:
        """Start the thread unless it runs; also if something has killed it."""
        if self._thread is not None and self._thread.is_alive():
            return
        with suppress(Exception):  # Py4J's; RuntimeError at exit, when no thread can be started
            self._queue.open()
            self._thread = threading.Thread(target=self._run, name="streamgauge-queue", daemon=True)
            self._thread.start()

    # ---- our thread --------------------------------------------------------------------------

    def _run(self) -> None:
        pause = _PAUSE_SECONDS
        while True:
            try:
                count = self._pass_on()
                if self._end_if_unneeded(idle=count == 0):
                    return
                pause = _PAUSE_SECONDS
            except Exception as error:  # noqa: BLE001 - Py4J's, and whatever the JVM threw
                if self._inbox.closed or not self._has_context() or not self.connected:
                    break
                if not _is_disconnect(error):  # of those the watchdog tells
                    self._inbox.put_failure(error)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        with self._lock:
            self._end()

    def _pass_on(self) -> int:
        """Wait for events and put them into the inbox; how many there were."""
        taken = self._queue.take(0 if self._held else _WAIT_MS)
        now = self._clock()
        self.dropped = taken.dropped
        rows, self._held = _merge(taken, self._held)
        for row in rows:
            self._handle(row, now - taken.age_of(row))
        return len(rows) + len(self._held)

    def _handle(self, row: Row, at: float) -> None:
        try:
            if row.kind == MARK:
                self._pass_mark(row.text)
            elif row.text:
                self._inbox.put(Item(row.kind, row.text, at))
            elif row.kind != UNKNOWN:
                self._inbox.put(Item(row.kind, self._read_public(row.kind), at, fallback=True))
        except Exception as error:  # noqa: BLE001 - one event must not hold up the others
            self._inbox.put_failure(error)

    def _pass_mark(self, name: str) -> None:
        passed = self._marks.get(name)
        if passed is not None:
            passed.set()

    def _read_public(self, kind: str) -> str:
        """An event whose JSON failed, as on an unknown Spark: through PySpark's public objects."""
        from pyspark.sql.streaming import listener  # noqa: PLC0415 - only where it is needed

        cls = getattr(listener, f"Query{kind.capitalize()}Event")
        return text_of(kind, cls.fromJObject(self._queue.take_unrendered()))

    def _end_if_unneeded(self, *, idle: bool) -> bool:
        """End once nobody reads the inbox, or nothing came and nothing more will."""
        with self._lock:
            if self._inbox.closed or (idle and not self._has_context()):
                self._end()
                return True
            return False

    def _end(self) -> None:
        """Keep nothing in the JVM, and let nobody wait. With the lock held."""
        self._thread = None
        with suppress(Exception):  # Py4J's: the JVM may be gone
            self._queue.shut()
        for passed in list(self._marks.values()):
            passed.set()

    def _has_context(self) -> bool:
        """Whether the application that was listened to still runs."""
        return self._context is None or self._context is active_context()


def _merge(taken: Taken, held: list[Row]) -> tuple[list[Row], list[Row]]:
    """Events that can be passed on, in order, and those of the reserve that are still too new.

    Events that are left in the main queue are newer than those that were taken from it, and may be older
    than one from the reserve.
    """
    reserve = sorted([*held, *taken.reserve])
    if not reserve:
        return taken.main, []
    newest = taken.main[-1].number if taken.main else 0
    ready = [row for row in reserve if row.number < newest or not taken.left]
    return sorted([*taken.main, *ready]), reserve[len(ready) :]


def _is_disconnect(error: Exception) -> bool:
    """Whether the JVM can't be reached; what it threw itself is another matter."""
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - pyspark is an extra

    if isinstance(error, Py4JError):
        return not isinstance(error, Py4JJavaError)
    return isinstance(error, OSError)  # Py4J tries to connect again
