"""A timer that asks Kafka itself about the topics that the queries read.

Between batches Spark tells nothing: while a query hangs or is down, only the broker knows how far
behind it falls. A thread of its own, since a broker that is down answers nobody for ten seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from streamgauge.listener.inbox import LOOK, Inbox, Item
from streamgauge.model.query import Query
from streamgauge.model.sources.broker_offsets import BrokerOffsets, Positions

_LONGEST_PAUSE = 30.0  # after failures: how much later than the broker we may be back
_TICK = 0.5  # topics that are new are asked for so soon
_SHARE = 40  # of a processor, one part in so many; the client's own thread takes as much again
_FIRST_STEP, _WEEK = 5.0, 7 * 86400.0  # how far back a first look reaches: from, and to at most
_MOST_STEPS, _MOST_OFFSETS = 24, 20_000  # on the way
_HALVES, _MOST_NARROW = 6, 8  # steps to the second, and for how many sources at one time


class Broker(Protocol):
    """What the probe can ask; `KafkaBroker`, or a test's own."""

    def look(self, topics: frozenset[str]) -> BrokerOffsets:
        """The ends of some topics."""

    def look_back(self, seen: BrokerOffsets, at: float) -> BrokerOffsets:
        """Their ends at an earlier time."""


class KafkaProbe:
    """Looks every few seconds, and at new topics at once; twice as seldom after each failure."""

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
        self._asked: frozenset[str] = frozenset()
        self._known: frozenset[str] = frozenset()  # topics whose past was looked at
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamgauge-kafka", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking; a look that is under way is left to itself."""
        self._closed.set()

    def _run(self) -> None:
        due, pause = 0.0, self._seconds
        while not self._closed.wait(min(self._seconds, _TICK)):
            topics = self._topics()
            if time.monotonic() < due and topics <= self._asked:
                continue
            began = time.thread_time()
            good = self.look()
            pause = max(self._seconds, _SHARE * (time.thread_time() - began)) if good else pause * 2
            pause = min(pause, max(self._seconds, _LONGEST_PAUSE))
            due = time.monotonic() + pause

    def look(self) -> bool:
        """One look at all topics that are read; whether it could be had. Never raises."""
        self._asked = topics = self._topics()
        if not topics:  # nobody reads Kafka: nobody is connected to
            return True
        try:
            if self._broker is None:
                self._broker = self._connect()
            seen = self._broker.look(topics)
            self._put(seen)
            if not topics <= self._known:
                self._look_back(self._broker, seen)
                self._known = topics
        except Exception as error:  # noqa: BLE001 - a broker that fails is counted, and asked again
            self._failed(error)
            return False
        return True

    def _topics(self) -> frozenset[str]:
        return frozenset(t for query in self._queries().values() for t in topics_of(query))

    def _look_back(self, broker: Broker, seen: BrokerOffsets) -> None:
        """Where topics ended before anybody looked: else a backlog from then would have no age."""
        looks = [seen]  # from now back
        steps = min(_MOST_STEPS, max(8, _MOST_OFFSETS // max(1, len(seen.latest))))
        for age in ages(max(seen.retention.values(), default=_WEEK), steps):
            if self._closed.is_set():
                return
            looks.append(broker.look_back(seen, seen.at - age))
            if all(looks[-1].latest[key] <= first for key, first in seen.earliest.items()):
                break
        new = [
            lag.end.by_key()
            for query in self._queries().values()
            for lag in query.lags.values()
            if lag.kind == "kafka" and lag.end and self._known < lag.topics | self._known
        ]
        for read in new[:_MOST_NARROW]:
            looks += _narrow(broker, looks, read)
            looks.sort(key=lambda look: -look.at)
        for look in looks[1:]:  # each before the last
            self._put(look)

    def _put(self, seen: BrokerOffsets) -> None:
        self._inbox.put(Item(LOOK, seen, seen.at))


def _narrow(broker: Broker, looks: list[BrokerOffsets], read: Positions) -> list[BrokerOffsets]:
    """More looks around the time when the first row past `read` came in, half by half."""

    def holds_more(look: BrokerOffsets) -> bool:
        return any(look.latest.get(key, 0) > offset for key, offset in read.items())

    index = next((i for i, look in enumerate(looks) if not holds_more(look)), 0)
    if not index:  # all was read, or it came in before all looks
        return []
    young, old = looks[index - 1], looks[index]
    found: list[BrokerOffsets] = []
    while young.at - old.at > 1.0 and len(found) < _HALVES:
        found.append(broker.look_back(looks[0], (young.at + old.at) / 2))
        young, old = (found[-1], old) if holds_more(found[-1]) else (young, found[-1])
    return found


def ages(retention: float, steps: int) -> list[float]:
    """How long ago to look, from a few seconds to the retention, each step longer than the last."""
    oldest = min(max(retention, 2 * _FIRST_STEP), _WEEK)
    growth = (oldest / _FIRST_STEP) ** (1 / (steps - 1))
    return [_FIRST_STEP * growth**step for step in range(steps)]


def topics_of(query: Query) -> frozenset[str]:
    """The topics that a query reads, by its last batch; it may be over."""
    return frozenset(
        topic for lag in query.lags.values() if lag.kind == "kafka" for topic in lag.topics
    )
