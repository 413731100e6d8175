"""Calls that may never return, on daemon threads that nobody has to wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress


class BackgroundCall:
    """One piece of work on a daemon thread of its own; what it raises is dropped.

    `run` is for one caller at a time: while the last call is still under way, no other is begun.
    """

    def __init__(self, name: str) -> None:
        self._name = f"streamgauge-{name}"
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether a call is under way."""
        return self._thread is not None and self._thread.is_alive()

    def run(self, work: Callable[[], None], wait_seconds: float) -> None:
        """Begin the work unless a call is under way, and wait so long for it at most.

        At exit no thread can be started from Python 3.12 on; the work is done here then, in the
        watchdog's thread, for which nobody waits any more.
        """
        if not self.running:
            self._thread = threading.Thread(
                target=_run_quietly, args=(work,), name=self._name, daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError:
                _run_quietly(work)
                return
        if self._thread is not None:
            self._thread.join(wait_seconds)

    def abandon(self) -> None:
        """Leave the call under way to itself; the next one gets another thread."""
        self._thread = None


def _run_quietly(work: Callable[[], None]) -> None:
    with suppress(Exception):  # the next poll finds what is wrong
        work()
