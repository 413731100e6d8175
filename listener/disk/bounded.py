"""Reads that may hang: each gets a disposable thread and a limited time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def read_bounded(read: Callable[[], Result], seconds: float) -> list[Result]:
    """What `read` returns, as the only item; an empty list when it fails or takes too long.

    A read that hangs, on a dead mount for example, leaves its daemon thread behind.
    """
    found: list[Result] = []

    def work() -> None:
        try:
            found.append(read())
        except (OSError, ValueError):  # unreadable, or a path that no file can have
            return

    reader = threading.Thread(target=work, name="streamgauge-disk", daemon=True)
    reader.start()
    reader.join(seconds)
    return found[:1]
