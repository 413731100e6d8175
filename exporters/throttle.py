"""Keeps one message from filling a log. Safe on any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Throttle:
    """Lets each message through once a minute, with the number of those that were suppressed."""

    def __init__(self, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, int]] = {}  # message → when it passed, suppressed since

    def ask(self, what: str) -> int | None:
        """How many were suppressed since the last one; None when this one must be suppressed too."""
        with self._lock:
            now = self._clock()
            last, suppressed = self._last.get(what, (float("-inf"), 0))
            if now - last < self._seconds:
                self._last[what] = (last, suppressed + 1)
                return None
            self._last[what] = (now, 0)
            return suppressed
