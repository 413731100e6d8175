"""SIGTERM: a word before the process dies of it, and only where nobody else has a say.

Python runs nothing on SIGTERM unless it is handled, so the last events of a job that a scheduler
ends would be lost. A handler of the user's is never replaced, and the process dies of the same
signal as before.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class TermGuard:
    """Calls `flush` once when SIGTERM comes, then lets the process die of it."""

    def __init__(self, flush: Callable[[], None], patience: float) -> None:
        self._flush = flush
        self._patience = patience
        self._pid = os.getpid()
        self._handling = False

    def install(self) -> bool:
        """Take the signal if nobody has it; only the main thread can. Whether it was taken."""
        if threading.current_thread() is not threading.main_thread():
            return False
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return False
        signal.signal(signal.SIGTERM, self._handle)
        return True

    def remove(self) -> None:
        """Give the signal back, if it is still ours; from another thread it stays, and flushes nothing."""
        self._flush = lambda: None
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) == self._handle
        ):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _handle(self, number: int, _: Any) -> None:
        """In the main thread, between any two of its instructions, so the work is done in another.

        The main thread may hold a lock of ours, or be in the middle of a call into the JVM. Who sends
        the signal a second time does not want to wait.
        """
        if os.getpid() == self._pid and not self._handling:  # not in a forked child
            self._handling = True
            flushing = threading.Thread(target=self._flush, name="streamgauge-term", daemon=True)
            with suppress(RuntimeError):  # from Python 3.12 no thread can be started at exit
                flushing.start()
                flushing.join(self._patience)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
