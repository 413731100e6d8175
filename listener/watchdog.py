"""The state between events: polls the driver and puts what it observes on the inbox.

No event is sent until a batch ends, so without this a hung batch would show the last good numbers.
It has a thread of its own, because a call into a sick JVM may not return.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from streamgauge.model.observations import (
    ApplicationStatus,
    Gone,
    GoneCause,
    QueryStatus,
    RunDetails,
    Unseen,
    UnseenCause,
)
from streamgauge.model.query import Query
from streamgauge.steady import steady_time

from .driver import ApplicationStopped, Driver, DriverUnreachable
from .inbox import GONE, OBSERVATION, Inbox, Item
from .poller import Pace, PollLoop

_MOST_REQUESTS = 1000
_OVERDUE_SECONDS = 60.0  # for one call to a driver whose calls are bounded
_REFUSED_POLLS = 2  # so many polls in a row to which nothing listens any more: the JVM is gone
# A call takes milliseconds. One that takes so long, or two intervals, while no event comes, has no answer.
UNANSWERED_SECONDS = 10.0
_JVM_GONE = "JVM_GONE"  # the error class of runs that ended with their JVM


class Watchdog:
    """Polls every few seconds, and reads a new run's details at once.

    Only its own thread calls the driver. All methods are safe on any thread; only `drain` waits.
    `before_poll` is called before each round: a place to check that others are alive.
    """

    def __init__(
        self,
        driver: Driver,
        inbox: Inbox,
        queries: Callable[[], Mapping[str, Query]],
        *,
        interval_seconds: float,
        report_error: Callable[[BaseException], None],
        before_poll: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._driver = driver
        self._inbox = inbox
        self._queries = queries
        self._report_error = report_error
        self._before_poll = before_poll
        self._clock = clock
        self._requests: dict[str, str] = {}  # run id → query id, whose details are wanted
        self._read: dict[str, bool] = {}  # run id → were its details read after its first batch?
        self._drains: deque[tuple[float, threading.Event]] = deque()
        self._asking_since: float | None = None  # begin of the call to Spark under way, monotonic
        self._reported_since: float | None = None  # begin of the call that was reported as overdue
        self._patience = max(UNANSWERED_SECONDS, 2 * interval_seconds)
        self._refused_polls = 0
        self._loop = PollLoop(
            "streamgauge-watchdog",
            self.poll,
            pace=Pace(interval_seconds=interval_seconds, fixed_rate=True),
            report_error=report_error,
            check=self.serve_requests,
        )

    def start(self) -> None:
        """Begin to poll; raises RuntimeError when no thread can be started."""
        self._loop.start()

    def request_details(self, query_id: str, run_id: str) -> None:
        """Ask for the details of a run, soon."""
        if len(self._requests) < _MOST_REQUESTS:  # the next poll finds the others
            self._requests[run_id] = query_id
        self._loop.wake()

    def poll_soon(self) -> None:
        """Ask for a poll now instead of at the end of the interval."""
        self._loop.poll_soon()

    def drain(self, seconds: float) -> bool:
        """Wait until Spark's bus is empty, for so long at most; whether it was.

        The call into the JVM is made by the watchdog's thread: a caller at exit can't start one,
        one in a signal handler has its own call into the JVM under way.
        """
        done = threading.Event()
        self._drains.append((time.monotonic() + seconds, done))
        self._loop.wake()
        return self._loop.alive and done.wait(seconds)

    def check_overdue(self) -> None:
        """Report, once, a call that Spark does not answer: its queries can't be seen. For the worker."""
        since = self._asking_since
        if since is None or since == self._reported_since:
            return
        waited = time.monotonic() - since
        if self._driver.may_hang:
            overdue = min(waited, self._count_quiet_seconds()) > self._patience
        else:
            overdue = waited > _OVERDUE_SECONDS
        if not overdue:
            return
        self._reported_since = since
        if not self._driver.may_hang:
            words = f"a poll of Spark has not returned for {_OVERDUE_SECONDS:.0f} s"
            self._report_error(TimeoutError(words))
            return
        began = time.strftime("%H:%M:%S", time.gmtime(time.time() - waited))
        why = f"the JVM of the driver does not answer since {began} UTC"
        self._report_error(DriverUnreachable(why))
        self._hide_all(UnseenCause.JVM_SILENT, why)

    def _count_quiet_seconds(self) -> float:
        """Time since the last event of any query that is live: a JVM that sends events lives."""
        live = (query for query in self._queries().values() if query.live)
        return self._clock() - max((query.last_event_at for query in live), default=0.0)

    def lose_all(self, cause: GoneCause) -> None:
        """Put the end of every run that is live, as far as we know, on the inbox."""
        # Runs that lost their JVM did not end well, and nobody wanted it.
        failed = cause is GoneCause.JVM_GONE
        for query in self._queries().values():
            if query.live:
                self._put(
                    Gone(
                        query_id=query.query_id,
                        run_id=query.run_id,
                        at=self._clock(),
                        cause=cause,
                        why=cause.sentence,
                        exception=cause.sentence if failed else None,
                        error_class=_JVM_GONE if failed else None,
                    )
                )

    def _hide_all(self, cause: UnseenCause, why: str) -> None:
        """Put it on the inbox that no live query can be seen."""
        for query in self._queries().values():
            if query.live:
                self._put(
                    Unseen(
                        query_id=query.query_id,
                        run_id=query.run_id,
                        at=self._clock(),
                        cause=cause,
                        why=why,
                    )
                )

    def close(self) -> None:
        """Stop polling; a call that is under way is left to itself."""
        self._loop.close()

    # ---- the watchdog's thread, or a test's ----------------------------------------------------

    def poll(self) -> bool:
        """One round: the application, then each live query; failures are reported here."""
        self._attempt(self._before_poll)
        self._guard(self._poll_reachable)
        return True  # no back-off: the next round is due as always

    def serve_requests(self) -> bool:
        """What was asked for since; never a reason to poll at once."""
        self._guard(self._read_requested)
        self._guard(self._drain)
        return False

    def _guard(self, work: Callable[[], None]) -> None:
        """Work; a stopped application ends every run and is no failure."""
        try:
            self._attempt(work)
        except ApplicationStopped:
            self.lose_all(GoneCause.APPLICATION_STOPPED)
        except DriverUnreachable as error:
            self._report_error(error)

    def _attempt(self, work: Callable[[], None]) -> None:
        """Work; a failure is reported, and hides nothing but what it was to find."""
        self._asking_since = time.monotonic()
        try:
            work()
        except (ApplicationStopped, DriverUnreachable):
            raise
        except Exception as error:  # noqa: BLE001 - whatever Py4J raises; it is tried again
            self._report_error(error)
        finally:
            self._asking_since = None

    def _poll_reachable(self) -> None:
        """Poll; when Spark can't be reached its queries are hidden, and over when it is gone for good."""
        try:
            self._poll_all()
        except DriverUnreachable as error:
            self._refused_polls = self._refused_polls + 1 if error.gone else 0
            if self._refused_polls >= _REFUSED_POLLS:
                self.lose_all(GoneCause.JVM_GONE)
            else:
                cause = UnseenCause.JVM_REFUSES if error.gone else UnseenCause.JVM_SILENT
                self._hide_all(cause, str(error))
            raise
        self._refused_polls = 0

    def _poll_all(self) -> None:
        self._put(self._driver.poll_application())
        live = [query for query in self._queries().values() if query.live]
        self._driver.forget({query.run_id for query in live})
        self._read = {q.run_id: self._read[q.run_id] for q in live if q.run_id in self._read}
        for query in live:
            self._attempt(partial(self._poll_query, query))

    def _poll_query(self, query: Query) -> None:
        if self._read.get(query.run_id) is not query.has_batch:
            self._read_details(query.query_id, query.run_id, query.has_batch)
        observed = self._driver.poll_query(query)
        if observed is not None:
            self._put(observed)

    def _read_requested(self) -> None:
        requests, self._requests = self._requests, {}
        for run_id, query_id in requests.items():
            self._attempt(partial(self._read_details, query_id, run_id, has_batch=False))

    def _read_details(self, query_id: str, run_id: str, has_batch: bool) -> None:
        """Read a run's details; after its first batch again: the checkpoint's settings win then."""
        details = self._driver.details(query_id, run_id)
        if details is not None:
            self._read[run_id] = has_batch
            self._put(details)

    def _drain(self) -> None:
        while self._drains:
            deadline, done = self._drains.popleft()
            try:
                self._driver.drain(max(0.0, deadline - time.monotonic()))
            finally:
                done.set()

    def _put(self, observed: ApplicationStatus | RunDetails | QueryStatus | Unseen | Gone) -> None:
        kind = GONE if isinstance(observed, Gone) else OBSERVATION
        self._inbox.put(Item(kind, observed, self._clock()))
