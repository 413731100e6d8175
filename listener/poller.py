"""One loop for everything that polls: a daemon thread, an interval, and back-off after failures."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct


class Poller(Protocol):
    """Polls something on a thread of its own and puts what it observes on the inbox."""

    def start(self) -> None:
        """Begin to poll; raises RuntimeError when no thread can be started."""

    def close(self) -> None:
        """Stop polling; never waits: a poll under way is left to itself."""


class Pace(Struct, frozen=True, kw_only=True):
    """When to poll."""

    interval_seconds: float
    first_pause_seconds: float = 0.0
    longest_pause_seconds: float = 0.0  # after failures; at or below the interval: no back-off
    max_cpu_share: float = math.inf  # of one processor, by longer pauses after expensive polls
    fixed_rate: bool = False  # pauses count from the begin of a poll, not from its end

    def pause_after(self, last_pause: float, cpu_seconds: float, *, succeeded: bool) -> float:
        """Seconds until the next poll: twice the last pause after each failure, within the limit."""
        if succeeded:
            pause = max(self.interval_seconds, cpu_seconds / self.max_cpu_share)
        else:
            pause = last_pause * 2
        return min(pause, max(self.interval_seconds, self.longest_pause_seconds))

    def due_after(self, began: float, ended: float, pause: float) -> float:
        """When the next poll is due, by the times of the last one."""
        return (began if self.fixed_rate else ended) + pause


class PollLoop:
    """Calls `poll` at a pace, on a daemon thread of its own.

    `poll` returns whether it succeeded; what it raises is reported and counts as a failure. `check` runs
    after each wake-up and every `check_seconds`, and returns whether to poll at once. Both are called by
    the loop's thread only. All methods are safe on any thread, and none waits.
    """

    def __init__(
        self,
        name: str,
        poll: Callable[[], bool],
        *,
        pace: Pace,
        report_error: Callable[[BaseException], None],
        check: Callable[[], bool] = lambda: False,
        check_seconds: float = math.inf,
    ) -> None:
        self._poll = poll
        self._pace = pace
        self._report_error = report_error
        self._check = check
        self._check_seconds = check_seconds
        self._wakeup = threading.Event()
        self._poll_soon = False
        self._closed = False
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; raises RuntimeError when there can be none."""
        self._thread.start()

    def wake(self) -> None:
        """Have `check` called soon."""
        self._wakeup.set()

    def poll_soon(self) -> None:
        """Have the next poll begin as soon as possible."""
        self._poll_soon = True
        self._wakeup.set()

    def close(self) -> None:
        """End the loop; a call that is under way is left to itself."""
        self._closed = True
        self._wakeup.set()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def closed(self) -> bool:
        """Whether `close` was called: a long poll ends early then."""
        return self._closed

    @property
    def busy_since(self) -> float | None:
        """When the call under way began, on the monotonic clock; None between calls."""
        return self._busy_since

    def _run(self) -> None:
        pause = self._pace.interval_seconds
        due = time.monotonic() + self._pace.first_pause_seconds
        while True:
            wait_seconds = min(self._check_seconds, due - time.monotonic())
            if self._wakeup.wait(max(0.0, wait_seconds)):
                self._wakeup.clear()
            urgent = self._call(self._check)  # also after `close`: what was requested before counts
            if self._closed:
                return
            if not (urgent or self._poll_soon or time.monotonic() >= due):
                continue
            self._poll_soon = False
            began, cpu_began = time.monotonic(), time.thread_time()
            succeeded = self._call(self._poll)
            cpu_seconds = time.thread_time() - cpu_began
            pause = self._pace.pause_after(pause, cpu_seconds, succeeded=succeeded)
            due = self._pace.due_after(began, time.monotonic(), pause)

    def _call(self, work: Callable[[], bool]) -> bool:
        self._busy_since = time.monotonic()
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop goes on
            self._report_error(error)
            return False
        finally:
            self._busy_since = None
