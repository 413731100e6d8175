"""A timer that asks Kafka itself about the topics that the queries read.

Between batches Spark tells nothing: while a query hangs or is down, only the broker knows how far
behind it falls. A thread of its own, since a broker that is down answers nobody for ten seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from .inbox import Inbox, Item
from .query import Query
from .sources.look import SourceLook

_LONGEST_PAUSE = 30.0  # after failures: how much later than the broker we may be back
_SHARE = 20  # a look may take one part in so many of the time


class Broker(Protocol):
    """What the probe can ask; `KafkaBroker`, or a test's own."""

    def look(self, topics: frozenset[str]) -> SourceLook:
        """The ends of some topics."""


class KafkaProbe:
    """Looks every few seconds; twice as seldom after each look that failed."""

    def __init__(
        self,
        connect: Callable[[], Broker],
        inbox: Inbox,
        queries: Callable[[], Mapping[str, Query]],
        *,
        seconds: float,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._connect = connect
        self._inbox = inbox
        self._queries = queries
        self._seconds = seconds
        self._failed = failed
        self._broker: Broker | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamgauge-kafka", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking; a look that is under way is left to itself."""
        self._closed.set()

    def _run(self) -> None:
        pause = self._seconds
        while not self._closed.wait(pause):
            began = time.monotonic()
            if self.look():
                pause = max(self._seconds, _SHARE * (time.monotonic() - began))
            else:
                pause *= 2
            pause = min(pause, max(self._seconds, _LONGEST_PAUSE))

    def look(self) -> bool:
        """One look at all topics that are read; whether it could be had. Never raises."""
        topics = frozenset(
            topic for query in self._queries().values() for topic in topics_of(query)
        )
        if not topics:  # nobody reads Kafka: nobody is connected to
            return True
        try:
            if self._broker is None:
                self._broker = self._connect()
            seen = self._broker.look(topics)
        except Exception as error:  # noqa: BLE001 - a broker that fails is counted, and asked again
            self._failed(error)
            return False
        self._inbox.put(Item("look", seen, seen.at))
        return True


def topics_of(query: Query) -> set[str]:
    """The topics that a query reads, by its last batch; it may be over."""
    last = query.last or query.committed
    return {
        topic
        for source in (last.sources if last else ())
        if source.kind == "kafka" and isinstance(source.end, dict)
        for topic in source.end
    }
