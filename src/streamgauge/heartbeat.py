"""The worker's sign of life: one number, written by the worker, read by everybody who judges."""

from __future__ import annotations

from collections.abc import Callable


class Heartbeat:
    """When the worker was last seen at work, by the driver's clock. Calling it reads it; any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen_at = clock()

    def beat(self) -> None:
        """The worker lives. The worker's thread."""
        self._seen_at = self._clock()

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self._seen_at
