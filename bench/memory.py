"""Memory after 200,000 events of 50 queries, and the time of one scrape of 100."""

from __future__ import annotations

import gc
import re
import time
import uuid
from pathlib import Path
from statistics import median

from figures import report
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from stage import QuietDriver, recorded

from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.listener.inbox import Item

EVENTS, QUERIES = 200_000, 50


def _agent() -> Agent:
    config = make_config({"metrics_address": "", "log_level": "off", "app": "bench"})
    agent = Agent(config, driver=QuietDriver())
    agent.registry.register(agent.prometheus)
    return agent


def _resident() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class Query:
    """A stateful query on RocksDB, batch after batch, from a real event."""

    def __init__(self, name: str) -> None:
        text = recorded("4.3.0", "progress-agg-rocksdb")
        text = re.sub(r'"id": "[^"]+"', f'"id": "{uuid.uuid4()}"', text)
        text = re.sub(r'"runId": "[^"]+"', f'"runId": "{uuid.uuid4()}"', text)
        before, after = text.replace("q_agg_rocksdb", name).split('"batchId": 7', 1)
        self.parts, self.batch = (before, after), 0

    def next(self) -> Item:
        self.batch += 1
        text = f'{self.parts[0]}"batchId": {self.batch}{self.parts[1]}'
        return Item("progress", text, time.time())


def memory() -> None:
    agent = _agent()
    queries = [Query(f"q{n}") for n in range(QUERIES)]
    for n in range(EVENTS // 10):
        agent._worker.handle(queries[n % QUERIES].next())
    before = _resident()
    began = time.perf_counter()
    for n in range(EVENTS):
        agent._worker.handle(queries[n % QUERIES].next())
    spent = time.perf_counter() - began
    assert agent.stats.of("events")["progress"] == EVENTS + EVENTS // 10
    report(
        "memory growth over 200,000 events after warm-up, MiB", _resident() - before, 5,
        queries=QUERIES, microseconds_an_event=spent / EVENTS * 1e6,
    )  # fmt: skip


def scrape() -> None:
    agent = _agent()
    for n in range(100):
        query = Query(f"q{n}")
        for _ in range(2):
            agent._worker.handle(query.next())
    samples = sum(len(family.samples) for family in agent.registry.collect())
    plain = CollectorRegistry()
    families = sum(1 for _ in agent.registry.collect())
    for f in range(families):
        gauge = Gauge(
            f"plain_metric_number_{f}", "Plain.", ["app", "query", "operator"], registry=plain
        )
        for n in range(samples // families):
            gauge.labels("bench", f"q{n}", "0-stateStoreSave").set(n * 1.5)
    count = sum(len(family.samples) for family in plain.collect())
    ratios, ours = [], []
    for _ in range(15):
        times = []
        for registry in (agent.registry, plain):
            began = time.perf_counter()
            generate_latest(registry)
            times.append(time.perf_counter() - began)
        ours.append(times[0])
        ratios.append((times[0] / samples) / (times[1] / count))
    report(
        "scrape of 100 queries ÷ prometheus-client rendering as many plain samples", median(ratios), 1.2,
        samples=samples, milliseconds=median(ours) * 1000,
    )  # fmt: skip


if __name__ == "__main__":
    scrape()
    memory()
