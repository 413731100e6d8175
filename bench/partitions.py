"""Handling an event of a source with three thousand partitions, against one with twenty-four."""

from __future__ import annotations

import time
from statistics import median

from figures import report
from known_broker import T0, iso
from stage import Life, QuietDriver

from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.listener.inbox import Item

EVENTS = 400


class Query:
    """A throttled query on three topics: rows wait in every partition, and more come in."""

    def __init__(self, partitions: int) -> None:
        self.life = Life("bench")
        self._partitions = partitions
        config = make_config({"metrics_address": "", "log_level": "off", "app": "bench"})
        self.agent = Agent(config, driver=QuietDriver())
        self.agent._worker.handle(Item("started", self.life.started(), T0))

    def next(self) -> Item:
        """The next batch's event."""
        batch = self.life.batch_id + 1
        read, ends = self._offsets(900 * batch), self._offsets(900 * batch + 900)
        source = {
            "description": "KafkaV2[Subscribe[orders,payments,returns]]",
            "startOffset": read,
            "endOffset": ends,
            "latestOffset": self._offsets(1000 * batch + 1500),
            "numInputRows": 900 * 3 * self._partitions,
        }
        return Item("progress", self.life.progress(iso(T0 + 5 * batch), sources=[source]), T0)

    def _offsets(self, base: int) -> dict[str, dict[str, int]]:
        return {
            topic: {str(n): base + n % 97 for n in range(self._partitions)}
            for topic in ("orders", "payments", "returns")
        }


def main() -> None:
    few, many = Query(8), Query(1000)
    times: dict[Query, list[float]] = {few: [], many: []}
    for _ in range(EVENTS):
        for query, spent in times.items():
            item = query.next()
            began = time.perf_counter()
            query.agent._worker.handle(item)
            spent.append(time.perf_counter() - began)
    for query in times:
        assert query.agent.stats.of("events")["progress"] == EVENTS
        assert not query.agent.stats.of("errors")
    small, large = (median(spent[EVENTS // 4 :]) for spent in times.values())
    report(
        "an event with 3 × 1,000 partitions ÷ one with 3 × 8", large / small, 10,
        microseconds_3_x_8=small * 1e6, microseconds_3_x_1000=large * 1e6,
    )  # fmt: skip


if __name__ == "__main__":
    main()
