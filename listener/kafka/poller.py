"""Polls Kafka itself for the topics that the queries read.

Between batches Spark reports nothing: while a query hangs or is down, only the broker knows how far
behind it falls. It has a thread of its own, since a broker that is down answers nobody for ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from streamgauge.listener.inbox import OBSERVATION, Inbox, Item
from streamgauge.listener.poller import Pace, PollLoop
from streamgauge.model.query import Query
from streamgauge.model.sources.broker_offsets import BrokerOffsets, Positions
from streamgauge.steady import wall_offset

_LONGEST_PAUSE_SECONDS = 30.0  # after failures: how much later than the broker we may be back
_CHECK_SECONDS = 0.5  # new topics are asked for this soon
_MAX_CPU_SHARE = 1 / 40  # of one processor; the client's own thread takes as much again
_FIRST_AGE_SECONDS = 5.0  # how far back the first poll of a topic reaches: from this
_OLDEST_AGE_SECONDS = 7 * 86400.0  # to this at most
_MOST_STEPS = 24  # on the way
_MOST_OFFSETS = 20_000  # to ask for in all steps together
_MOST_HALVINGS = 6  # steps to the second
_MOST_NARROWED = 8  # sources at one time


class Broker(Protocol):
    """What the poller can ask; `KafkaBroker`, or a test's own. Every method may wait, and raise."""

    def read_offsets(self, topics: frozenset[str]) -> BrokerOffsets:
        """The ends of some topics now."""

    def read_past_offsets(self, now: BrokerOffsets, at: float) -> BrokerOffsets:
        """Their ends at an earlier time."""


class KafkaPoller:
    """Polls every few seconds, and new topics at once; half as often after each failure.

    Nobody is connected to while no query reads Kafka.
    """

    def __init__(
        self,
        connect: Callable[[], Broker],
        inbox: Inbox,
        queries: Callable[[], Mapping[str, Query]],
        *,
        interval_seconds: float,
        report_error: Callable[[BaseException], None],
    ) -> None:
        self._connect = connect
        self._inbox = inbox
        self._queries = queries
        self._broker: Broker | None = None
        self._asked: frozenset[str] = frozenset()
        self._known: frozenset[str] = frozenset()  # topics whose past was read
        check_seconds = min(interval_seconds, _CHECK_SECONDS)
        self._loop = PollLoop(
            "streamgauge-kafka",
            self.poll,
            pace=Pace(
                interval_seconds=interval_seconds,
                first_pause_seconds=check_seconds,
                longest_pause_seconds=_LONGEST_PAUSE_SECONDS,
                max_cpu_share=_MAX_CPU_SHARE,
            ),
            report_error=report_error,
            check=self._has_new_topics,
            check_seconds=check_seconds,
        )

    def start(self) -> None:
        """Begin to poll; raises RuntimeError when no thread can be started."""
        self._loop.start()

    def close(self) -> None:
        """Stop polling; never waits."""
        self._loop.close()

    def poll(self) -> bool:
        """Read all topics that are read by queries; raises what the broker raises.

        For the poller's thread.
        """
        self._asked = topics = self._topics()
        if not topics:
            return True
        if self._broker is None:
            self._broker = self._connect()
        now = self._broker.read_offsets(topics)
        self._put(now)
        if not topics <= self._known:
            self._read_past(self._broker, now)
            self._known = topics
        return True

    def _has_new_topics(self) -> bool:
        return not self._topics() <= self._asked

    def _topics(self) -> frozenset[str]:
        return frozenset(t for query in self._queries().values() for t in topics_of(query))

    def _read_past(self, broker: Broker, now: BrokerOffsets) -> None:
        """Where topics ended before anybody polled: else a backlog from then would have no age."""
        observed = [now]  # from now back
        steps = min(_MOST_STEPS, max(8, _MOST_OFFSETS // max(1, len(now.latest))))
        for age in ages(max(now.retention.values(), default=_OLDEST_AGE_SECONDS), steps):
            if self._loop.closed:
                return
            observed.append(broker.read_past_offsets(now, now.at - age))
            if all(observed[-1].latest[key] <= first for key, first in now.earliest.items()):
                break
        new = [
            lag.end.by_key()
            for query in self._queries().values()
            for lag in query.lags.values()
            if lag.kind == "kafka" and lag.end and self._known < lag.topics | self._known
        ]
        for read in new[:_MOST_NARROWED]:
            observed += _narrow(broker, observed, read)
            observed.sort(key=lambda each: -each.at)
        for each in observed[1:]:  # each before the last
            self._put(each)

    def _put(self, observed: BrokerOffsets) -> None:
        at = observed.at - wall_offset()  # the broker is asked by the wall clock
        self._inbox.put(Item(OBSERVATION, msgspec.structs.replace(observed, at=at), at))


def _narrow(broker: Broker, observed: list[BrokerOffsets], read: Positions) -> list[BrokerOffsets]:
    """More observations around the time when the first row past `read` came in, half by half."""

    def holds_more(offsets: BrokerOffsets) -> bool:
        return any(offsets.latest.get(key, 0) > offset for key, offset in read.items())

    index = next((i for i, each in enumerate(observed) if not holds_more(each)), 0)
    if not index:  # all was read, or it came in before all observations
        return []
    young, old = observed[index - 1], observed[index]
    found: list[BrokerOffsets] = []
    while young.at - old.at > 1.0 and len(found) < _MOST_HALVINGS:
        found.append(broker.read_past_offsets(observed[0], (young.at + old.at) / 2))
        young, old = (found[-1], old) if holds_more(found[-1]) else (young, found[-1])
    return found


def ages(retention_seconds: float, steps: int) -> list[float]:
    """How many seconds to go back, from a few to the retention, each step longer than the last."""
    oldest = min(max(retention_seconds, 2 * _FIRST_AGE_SECONDS), _OLDEST_AGE_SECONDS)
    growth = (oldest / _FIRST_AGE_SECONDS) ** (1 / (steps - 1))
    return [_FIRST_AGE_SECONDS * growth**step for step in range(steps)]


def topics_of(query: Query) -> frozenset[str]:
    """The topics that a query reads, by its last batch; it may be over."""
    return frozenset(
        topic for lag in query.lags.values() if lag.kind == "kafka" for topic in lag.topics
    )
