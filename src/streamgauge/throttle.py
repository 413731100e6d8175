"""Holds repeated log lines back: one a minute per key. Safe on any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Throttle:
    """Lets a line through once a minute, with the number of those that were held back."""

    def __init__(self, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, int]] = {}

    def ask(self, key: str) -> int | None:
        """Return how many were held back since the last one, or None to hold this one back."""
        now = self._clock()
        with self._lock:
            last, held = self._last.get(key, (float("-inf"), 0))
            if now - last < self._seconds:
                self._last[key] = (last, held + 1)
                return None
            self._last[key] = (now, 0)
            return held
