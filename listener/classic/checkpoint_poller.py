"""A slow timer that reads the names in each query's `offsets/` and `commits/`, and what its sources hold.

Through Spark's own file system, which has the credentials; names (and, if asked for, the size of
`state/`), of a source's own log also contents, within bounds. Nothing is ever written. A thread of its own: an object store that hangs holds up nobody else.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from streamgauge.listener.inbox import LOOK, Inbox, Item
from streamgauge.model.observations import CheckpointNames, SourceBacklog
from streamgauge.model.query import Query
from streamgauge.model.sources.waiting import Waiting

from .driver import ApplicationStopped

_LONGEST_PAUSE = 900.0
_ROUNDS_KEPT = 3  # for so long, what waits is shown without a new look
_SIZE_EVERY = 10  # rounds: sizes move slowly, and each file of `state/` is listed for them


class CheckpointDriver(Protocol):
    """What can read the names; a Connect client can't."""

    def checkpoint(self, query: Query, *, size: bool) -> CheckpointNames | None:
        """The batches on disk of one live query, and the size of its state."""

    def waiting(self, query: Query) -> Mapping[str, Waiting]:
        """What waits in its sources, by label, where a source does not say it itself."""


@dataclass
class _Past:
    """What earlier rounds know of a run."""

    looks: int = 0
    state_bytes: float | None = None


class CheckpointWatch:
    """Looks at every live query each minute; twice as seldom after each round that failed."""

    def __init__(
        self,
        driver: CheckpointDriver,
        inbox: Inbox,
        queries: Callable[[], Mapping[str, Query]],
        *,
        seconds: float,
        sizes: bool,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._driver = driver
        self._inbox = inbox
        self._queries = queries
        self._seconds = seconds
        self._sizes = sizes
        self._failed = failed
        self._past: dict[str, _Past] = {}  # by run id
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
        """One round over the live queries; whether all that was asked could be read.

        A slow store gets no more than the pause between two rounds: who was left out comes first in
        the next.
        """
        good = True
        live = [query for query in self._queries().values() if query.live]
        self._past = {query.run_id: self._past.get(query.run_id, _Past()) for query in live}
        until = time.monotonic() + self._seconds
        for query in sorted(live, key=lambda query: self._past[query.run_id].looks):
            if self._closed.is_set() or time.monotonic() > until:
                break
            for look in (self._look_at, self._look_behind):
                try:
                    seen = look(query)
                    if seen is not None:
                        self._inbox.put(Item(LOOK, seen, time.time()))
                except ApplicationStopped:
                    return good
                except Exception as error:  # noqa: BLE001 - a store that fails is counted, and asked again
                    good = False
                    self._failed(error)
        return good

    def _look_at(self, query: Query) -> CheckpointNames | None:
        """The names each time; the size each tenth time, and kept in between."""
        past = self._past[query.run_id]
        due = self._sizes and past.looks % _SIZE_EVERY == 0
        past.looks += 1
        seen = self._driver.checkpoint(query, size=due)
        if seen is None or not self._sizes:
            return seen
        if due:
            past.state_bytes = seen.state_bytes
        return msgspec.structs.replace(seen, state_bytes=past.state_bytes)

    def _look_behind(self, query: Query) -> SourceBacklog | None:
        """What waits; nothing to say of a query whose sources can't be asked."""
        waiting = self._driver.waiting(query)
        if not waiting and not any(lag.waiting for lag in query.lags.values()):
            return None
        until = time.time() + _ROUNDS_KEPT * self._seconds
        return SourceBacklog(
            query_id=query.query_id, run_id=query.run_id, until=until, waiting=waiting
        )
