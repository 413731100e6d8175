"""A broker whose every row has a known time, and a query that reads from it: for tests of lag."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timezone

from stage import Life, apply_to

from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.sources.broker_offsets import BrokerOffsets

T0 = 1_794_787_200.0  # 2026-11-16T00:00:00Z


def steady(rate: float, seconds: float, begin: float = 0.0) -> list[float]:
    """Times of rows that come in evenly."""
    return [T0 + begin + (n + 0.5) / rate for n in range(int(rate * (seconds - begin)))]


class Broker:
    """Topics with partitions; each is the times of its rows, oldest first."""

    def __init__(self, rows: dict[tuple[str, str], list[float]]) -> None:
        self.rows = rows

    def latest(self, at: float) -> dict[tuple[str, str], int]:
        """The offsets at a time."""
        return {key: bisect_right(times, at) for key, times in self.rows.items()}

    def oldest_unread(self, read: dict[tuple[str, str], int], now: float) -> float | None:
        """When the oldest row that was not read came in, by the producer's own clock."""
        ages = [
            times[read.get(key, 0)]
            for key, times in self.rows.items()
            if read.get(key, 0) < bisect_right(times, now)
        ]
        return min(ages, default=None)


class Reader:
    """A query on that broker, told to a fleet through real events."""

    def __init__(self, broker: Broker, *, description: str = "KafkaV2[Subscribe[t0]]") -> None:
        self.broker = broker
        self.fleet = Fleet()
        self.life = Life("reader")
        self.description = description
        self.read: dict[tuple[str, str], int] = {}
        self._tell(self.life.started(iso(T0)), T0)

    @property
    def lag(self):
        """What the fleet knows of the one source."""
        return self.fleet.queries[self.life.query_id].lags["0-kafka"]

    def batch(self, at: float, seconds: float, limit: float | None = None, **changes) -> None:
        """A trigger at that time that ends well; each partition gives its share of the limit."""
        latest = self.broker.latest(at)
        waits = sum(latest[key] - self.read.get(key, 0) for key in latest)
        share = 1.0 if limit is None or not waits else min(1.0, limit / waits)
        start = dict(self.read)
        for key, end in latest.items():
            begin = self.read.get(key, 0)
            self.read[key] = begin + int((end - begin) * share)
        self.told(at, seconds, start, latest, **changes)

    def told(self, at, seconds, start, latest, **changes) -> None:
        """The event of a batch that read up to where `read` is."""
        source = {
            "description": self.description,
            "startOffset": nested(start) or None,
            "endOffset": nested(self.read),
            "latestOffset": nested(latest) if latest is not None else None,
            "numInputRows": sum(self.read.values()) - sum(start.values()),
        }
        phases = {"latestOffset": 10, "addBatch": seconds * 1000, "walCommit": 1}
        text = self.life.progress(
            iso(at),
            sources=[source],
            durationMs={**phases, "triggerExecution": seconds * 1000},
            **changes,
        )
        self._tell(text, at + seconds)

    def idle(self, at: float) -> None:
        """A trigger that found nothing."""
        self._tell(self.life.idle(iso(at)), at)

    def probe(self, at: float, **changes) -> None:
        """A look at the broker itself."""
        latest = self.broker.latest(at)
        found = {
            "kind": "kafka",
            "topics": frozenset(topic for topic, _ in latest),
            "earliest": dict.fromkeys(latest, 0),
            "latest": latest,
            "retention": {},
            "at": at,
        }
        apply_to(self.fleet, BrokerOffsets(**{**found, **changes}))

    def _tell(self, text: str, now: float) -> None:
        apply_to(self.fleet, decode(text), now)


def nested(positions: dict[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """As Spark writes it."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in positions.items():
        found.setdefault(topic, {})[partition] = offset
    return found


def iso(at: float) -> str:
    """A time as Spark writes it."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def check(reader: Reader, now: float, slack: float = 0.0) -> float | None:
    """Lag is within 10 % or 1 s of the producer's clock, or absent; never a false zero."""
    found = reader.lag.seconds(now)
    since = reader.broker.oldest_unread(reader.read, now)
    true = 0.0 if since is None else now - since
    if found is not None:
        assert abs(found - true) <= max(1.0, 0.1 * true) + slack, (found, true)
    return found


def two_partitions() -> Reader:
    """A query that has read half a minute of two partitions."""
    reader = Reader(Broker({("t0", "0"): steady(10, 600), ("t0", "1"): steady(10, 600)}))
    for n in range(5):
        reader.batch(T0 + 10 + 5 * n, 1.0)
    return reader
