"""A slow timer that reads the names in each query's `offsets/` and `commits/`.

Through Spark's own file system, which has the credentials; names only, never contents, and nothing is
ever written. A thread of its own: an object store that hangs holds up nobody else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from .driver import ApplicationStopped
from .inbox import Inbox, Item
from .looks import CheckpointLook
from .query import Query

_LONGEST_PAUSE = 900.0


class CheckpointDriver(Protocol):
    """What can read the names; a Connect client can't."""

    def checkpoint(self, query: Query) -> CheckpointLook | None:
        """The batches on disk of one live query."""


class CheckpointWatch:
    """Looks at every live query each minute; twice as seldom after each round that failed."""

    def __init__(
        self,
        driver: CheckpointDriver,
        inbox: Inbox,
        queries: Callable[[], Mapping[str, Query]],
        *,
        seconds: float,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._driver = driver
        self._inbox = inbox
        self._queries = queries
        self._seconds = seconds
        self._failed = failed
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="streamgauge-checkpoints", daemon=True
        )

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking; a look that is under way is left to itself."""
        self._closed.set()

    def _run(self) -> None:
        pause = self._seconds
        while not self._closed.wait(pause):
            good = self.look()
            pause = self._seconds if good else min(pause * 2, _LONGEST_PAUSE)

    def look(self) -> bool:
        """One round over the live queries; whether all of it could be read."""
        good = True
        for query in self._queries().values():
            if not query.live or self._closed.is_set():
                continue
            try:
                seen = self._driver.checkpoint(query)
                if seen is not None:
                    self._inbox.put(Item("look", seen, time.time()))
            except ApplicationStopped:
                return good
            except Exception as error:  # noqa: BLE001 - a store that fails is counted, and asked again
                good = False
                self._failed(error)
        return good
