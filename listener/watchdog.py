"""The truth between events: a timer that looks at the driver and puts what it sees on the inbox.

No event is sent until a batch ends, so without this a hung batch would show the last good numbers.
A thread of its own, because a call into a sick JVM may not come back.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from streamgauge.model.observations import ApplicationStatus, Gone, QueryStatus, RunDetails, Unseen
from streamgauge.model.query import Query

from .classic.driver import ApplicationStopped
from .inbox import GONE, LOOK, Inbox, Item

_NEW = 1000
_PATIENCE = 60.0  # for one round; a call into the JVM takes milliseconds


class Driver(Protocol):
    """What the watchdog can ask; the classic driver, a Connect client, or a test's own."""

    def tick(self) -> ApplicationStatus:
        """The application as a whole; raises `ApplicationStopped`."""

    def details(self, query_id: str, run_id: str) -> RunDetails | None:
        """How a run is configured."""

    def sight(self, query: Query) -> QueryStatus | Unseen | Gone | None:
        """One live query now."""

    def forget(self, run_ids: set[str]) -> None:
        """Let go of what belongs to other runs."""

    def drain(self, seconds: float) -> None:
        """Wait, for so long at most, until the events on Spark's bus have reached us."""


class Watchdog:
    """Looks every few seconds, and at once for a query that has just begun."""

    def __init__(
        self,
        driver: Driver,
        inbox: Inbox,
        queries: Callable[[], Mapping[str, Query]],
        *,
        seconds: float,
        failed: Callable[[BaseException], None],
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.driver = driver
        self._inbox = inbox
        self._queries = queries
        self._seconds = seconds
        self._failed = failed
        self._beat = beat  # checks what else must go on
        self._clock = clock
        self._new: dict[str, str] = {}  # run id → query id
        self._read: dict[str, bool] = {}  # run id → read again after its first batch?
        self._drains: deque[tuple[float, threading.Event]] = deque()
        self._kicked = threading.Event()
        self._closed = self._hurry = False
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="streamgauge-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def kick(self, query_id: str, run_id: str) -> None:
        """Ask for the details of a run soon. Never waits."""
        if len(self._new) < _NEW:  # the next round finds the others
            self._new[run_id] = query_id
        self._kicked.set()

    def wake(self) -> None:
        """Ask for a look soon. Never waits."""
        self._hurry = True
        self._kicked.set()

    def drain(self, seconds: float) -> bool:
        """Wait until Spark's bus is empty, for so long at most; whether it was. Any thread.

        The call into the JVM is made by the watchdog's thread: a caller at exit can't start one,
        one in a signal handler has its own call into the JVM under way.
        """
        done = threading.Event()
        self._drains.append((time.monotonic() + seconds, done))
        self._kicked.set()
        return self._thread.is_alive() and done.wait(seconds)

    def check(self) -> None:
        """Complain, once, of a round that does not come back. The worker; never waits."""
        since = self._busy_since
        if since is not None and time.monotonic() - since > _PATIENCE:
            self._busy_since = None
            self._failed(TimeoutError(f"a look at Spark has not come back for {_PATIENCE:.0f} s"))

    def close(self) -> None:
        """Stop looking; a look that is under way is left to itself."""
        self._closed = True
        self._kicked.set()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closed:
            if self._kicked.wait(max(0.0, due - time.monotonic())):
                self._kicked.clear()
                self._guard(self._read_new)
                self._guard(self._drain)
            if not self._closed and (self._hurry or time.monotonic() >= due):
                self._hurry = False
                due = time.monotonic() + self._seconds
                self._guard(self._beat)
                self._guard(self.look)

    def _guard(self, look: Callable[[], None]) -> None:
        self._busy_since = time.monotonic()
        try:
            self._attempt(look)
        except ApplicationStopped:
            self.lose_all("the Spark application was stopped")
        finally:
            self._busy_since = None

    def _attempt(self, look: Callable[[], None]) -> None:
        """Look; a failure is counted, and hides nothing but what it was to find."""
        try:
            look()
        except ApplicationStopped:
            raise
        except Exception as error:  # noqa: BLE001 - whatever Py4J raises; it is tried again
            self._failed(error)

    def look(self) -> None:
        """One round: the application, then each live query."""
        self._put(self.driver.tick())
        live = [query for query in self._queries().values() if query.live]
        self.driver.forget({query.run_id for query in live})
        self._read = {q.run_id: self._read[q.run_id] for q in live if q.run_id in self._read}
        for query in live:
            self._attempt(partial(self._look_at, query))

    def _look_at(self, query: Query) -> None:
        if self._read.get(query.run_id) is not query.has_batch:
            self._learn(query.query_id, query.run_id, query.has_batch)
        seen = self.driver.sight(query)
        if seen is not None:
            self._put(seen)

    def _read_new(self) -> None:
        new, self._new = self._new, {}
        for run_id, query_id in new.items():
            self._attempt(partial(self._learn, query_id, run_id, has_batch=False))

    def _learn(self, query_id: str, run_id: str, has_batch: bool) -> None:
        """Read a run's details; after its first batch again: the checkpoint's settings win then."""
        details = self.driver.details(query_id, run_id)
        if details is not None:
            self._read[run_id] = has_batch
            self._put(details)

    def _drain(self) -> None:
        while self._drains:
            deadline, done = self._drains.popleft()
            try:
                self.driver.drain(max(0.0, deadline - time.monotonic()))
            finally:
                done.set()

    def lose_all(self, why: str) -> None:
        """End every run that goes on, as far as we know. Any thread; never waits."""
        for query in self._queries().values():
            if query.live:
                self._put(
                    Gone(query_id=query.query_id, run_id=query.run_id, at=self._clock(), why=why)
                )

    def _put(self, look: ApplicationStatus | RunDetails | QueryStatus | Unseen | Gone) -> None:
        kind = GONE if isinstance(look, Gone) else LOOK
        self._inbox.put(Item(kind, look, self._clock()))
