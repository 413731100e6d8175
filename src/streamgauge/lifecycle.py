"""From the first session to the end of the process: `stop()` of contexts and sessions, SIGTERM, exit.

Spark sends no event for the runs that die with their application, so whoever stops it is hooked:
what is on the bus is taken in first, and the runs that are left are ended after. Safe on any thread;
nothing here raises.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from streamgauge.listener.classic.application import hook_stop
from streamgauge.listener.driver import ApplicationInfo, Driver
from streamgauge.listener.inbox import GONE, MARK, Inbox, Item
from streamgauge.listener.watchdog import Watchdog
from streamgauge.model.observations import ApplicationStopping, GoneCause
from streamgauge.steady import steady_time

from .error_guard import ErrorGuard
from .last_scrape import AT_EXIT_SECONDS, ON_SIGTERM_SECONDS, LastScrape
from .sigterm import TermGuard

# Exit may take two seconds longer than without us, and the server's end is in it.
EXIT_SECONDS = 1.6
_BUS_SECONDS = 1.0
_INBOX_SECONDS = 0.5
_FINAL_SECONDS = 2 * _INBOX_SECONDS


class Lifecycle:
    """What an agent does when an application begins or ends, and when the process does."""

    def __init__(
        self,
        *,
        driver: Driver,
        watchdog: Watchdog,
        inbox: Inbox,
        guard: ErrorGuard,
        last_scrape: LastScrape,
        application_ended: Callable[[], None],
        close: Callable[[float], None],
    ) -> None:
        """`close` ends the agent in so many seconds."""
        self._driver = driver
        self._watchdog = watchdog
        self._inbox = inbox
        self._guard = guard
        self._last_scrape = last_scrape
        self._application_ended = application_ended
        self._close = close
        self._pid = os.getpid()
        self._running = False
        self._leaving = threading.Lock()
        self._term = TermGuard(
            lambda: self.leave(GoneCause.PROCESS_TERMINATED),
            EXIT_SECONDS + _BUS_SECONDS + _FINAL_SECONDS + last_scrape.longest(ON_SIGTERM_SECONDS),
        )

    # ---- the process -----------------------------------------------------------------------

    def begin(self) -> None:
        """Be called at exit and on SIGTERM from now on."""
        self._running = True
        self._guard.run("exit", self._term.install)
        atexit.register(self._exit)

    def end(self) -> None:
        """The agent has ended: nothing is left to do at exit."""
        self._running = False
        self._guard.run("exit", self._driver.close)
        self._guard.run("exit", self._term.remove)
        atexit.unregister(self._exit)

    def leave(self, cause: GoneCause) -> None:
        """The process ends: flush, end what runs, have the final state scraped, close."""
        deadline = time.monotonic() + EXIT_SECONDS
        if not self._running or os.getpid() != self._pid:  # a forked child has none of our threads
            return
        if not self._leaving.acquire(blocking=False):  # SIGTERM while exit waits: no more of that
            self._close(EXIT_SECONDS)
            return
        self.flush()
        self._guard.run("exit", self._driver.skip_farewells)
        if self._end_runs(cause):
            deadline = time.monotonic() + EXIT_SECONDS
        self._close(max(0.2, deadline - time.monotonic()))

    def _end_runs(self, cause: GoneCause) -> bool:
        """End what runs, and have the final state scraped; whether that took time.

        A run that nobody stopped dies with the process, by mistake or in a crash. That must not pass for
        a clean end: its end is not served, and Prometheus finds that it vanished.
        """
        if cause is GoneCause.PROCESS_ENDED and not self._last_scrape.fixed:
            waited = self._await_scrapes(AT_EXIT_SECONDS)
            self._last_scrape.stop_serving()
            self._lose_all(cause)
            return waited
        self._lose_all(cause)
        return self._await_scrapes(ON_SIGTERM_SECONDS)

    def _await_scrapes(self, limit: float) -> bool:
        waited: list[bool] = []
        self._guard.run("exit", lambda: waited.append(self._last_scrape.wait(limit)))
        return any(waited)

    def _exit(self) -> None:
        self._guard.run("exit", lambda: self.leave(GoneCause.PROCESS_ENDED))

    def meet_session(self) -> None:
        """A Connect session was made: poll soon, and leave before its client does.

        Exit hooks run in reverse: the last to register is the first to be called.
        """
        if self._running:
            atexit.unregister(self._exit)
            atexit.register(self._exit)
        self._watchdog.poll_soon()

    # ---- applications ----------------------------------------------------------------------

    def follow(self, stoppable: Any, listener: Any, *, everywhere: bool) -> ApplicationInfo:
        """See a context or Connect session through its `stop()`; what it says of its application."""
        info = self._driver.add(stoppable, listener, everywhere=everywhere)
        self._guard.run(
            "bridge",
            lambda: hook_stop(
                stoppable,
                lambda: self._guard.run("bridge", lambda: self._before_stop(stoppable)),
                lambda: self._guard.run("bridge", lambda: self._after_stop(stoppable)),
            ),
        )
        return info

    def _before_stop(self, stoppable: Any) -> None:
        self._driver.part(stoppable)
        self.flush()
        if self._driver.stop_cause is GoneCause.APPLICATION_STOPPED:
            # A context takes every query with it; what failed before has been taken in above.
            now = steady_time()
            self._inbox.put(Item(GONE, ApplicationStopping(at=now), now))

    def _after_stop(self, stoppable: Any) -> None:
        if not self._driver.leave(stoppable):
            self._application_ended()
            self._lose_all(self._driver.stop_cause)

    # ---- what is on the way ----------------------------------------------------------------

    def flush(self) -> bool:
        """Take in what is on Spark's bus now; whether all of it was handled in time."""
        if not self._running:
            return False
        self._watchdog.drain(_BUS_SECONDS)
        return self._settle()

    def _lose_all(self, cause: GoneCause) -> None:
        """End the runs that go on: Spark sends no event for those that die with the application."""
        if self._running:
            self._watchdog.lose_all(cause)
            self._settle()

    def _settle(self) -> bool:
        """Wait a little until what is in the inbox now has been handled."""
        handled = threading.Event()
        self._inbox.put(Item(MARK, handled, steady_time()))
        return handled.wait(_INBOX_SECONDS)
