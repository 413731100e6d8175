"""What the agent's worker takes for one event, now and before it was made faster, and what each part takes of it.

Both trees play the same recorded events in turns: a stateful query on RocksDB, a join, a stateless query from
Kafka. The parts are timed in the working tree, with traces written to a file.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median

from figures import ROOT, report
from trees import base_tree, python, take_turns

BASE = "dd78174"
RUNS, EVENTS, QUERIES = 9, 6_000, 24
RECORDED = ("progress-agg-rocksdb", "progress-stream-stream-join-rocksdb", "progress-kafka-limited")


def main() -> None:
    with base_tree(BASE) as base:
        trees = {"then": base, "now": ROOT}

        def once(name: str) -> float:
            told = json.loads(python(trees[name], __file__, str(trees[name])).stdout)
            if not Path(told["module"]).is_relative_to(trees[name]):
                raise AssertionError(f"{told['module']} was imported, not the package in {name}")
            return told["microseconds"]

        taken = take_turns(RUNS, once, trees)
    report(
        "worker's time per event, then ÷ now, same events",
        median(taken["then"]) / median(taken["now"]), 1.5, at_least=True,
        microseconds=median(taken["now"]), microseconds_then=median(taken["then"]),
        of_means=mean(taken["then"]) / mean(taken["now"]), runs=RUNS, events=EVENTS,
    )  # fmt: skip
    parts = json.loads(python(ROOT, __file__, str(ROOT), "parts").stdout)
    whole = parts.pop("whole")
    report("worker's time per event with traces, microseconds", whole, float("inf"), **parts)


def play(tree: Path, *, traces: str = "off") -> tuple[object, list[object]]:
    """An agent that has seen some of each query's events, and the events that are to come."""
    sys.path.insert(0, str(tree / "tests"))
    from stage import QuietDriver

    from streamgauge.agent import Agent
    from streamgauge.config import make_config
    from streamgauge.listener.inbox import Item

    config = make_config(
        {"metrics_address": "", "log_level": "off", "app": "bench", "traces": traces}
    )
    agent = Agent(config, driver=QuietDriver())
    queries = [Batches(RECORDED[n % len(RECORDED)], n) for n in range(QUERIES)]
    items = [
        Item("progress", queries[n % QUERIES].next(), time.time()) for n in range(EVENTS + 1200)
    ]
    for item in items[:1200]:
        agent._worker.handle(item)
    return agent, items[1200:]


class Batches:
    """Batch after batch of one query, from a real event."""

    def __init__(self, recorded: str, number: int) -> None:
        text = (ROOT / "tests" / "data" / "events" / "4.3.0" / f"{recorded}.json").read_text()
        event = json.loads(text)
        self._event = event.get("progress", event)
        self._event |= {"id": f"id-{number}", "runId": f"run-{number}", "name": f"q{number}"}
        self._event["batchId"] = 0

    def next(self) -> str:
        self._event["batchId"] += 1
        return json.dumps({"progress": self._event})


def time_worker(tree: Path) -> None:
    """Print the time per event, and which package it was of."""
    import streamgauge

    agent, items = play(tree)
    began = time.process_time()
    for item in items:
        agent._worker.handle(item)
    spent = time.process_time() - began
    print(json.dumps({"microseconds": spent / EVENTS * 1e6, "module": streamgauge.__file__}))


def time_parts(tree: Path) -> None:
    """Print what each part takes per event; what is timed is not free itself."""
    from streamgauge import worker

    spent: dict[str, float] = {}

    def timed(name, call):
        def wrapper(*args, **kwargs):
            began = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent[name] = spent.get(name, 0.0) + time.perf_counter() - began

        return wrapper

    with tempfile.TemporaryDirectory() as folder:
        agent, items = play(tree, traces=f"{folder}/traces.jsonl")
        worker.decode = timed("decode", worker.decode)
        agent.fleet.apply = timed("fleet", agent.fleet.apply)
        agent._worker._tracer.trace = timed("traces", agent._worker._tracer.trace)
        for exporter in agent._worker._exporters:
            name = "page" if exporter.name == "prometheus" else exporter.name
            exporter.export = timed(name, exporter.export)
        handle = timed("whole", agent._worker.handle)
        for item in items:
            handle(item)
        agent._worker.close_exporters()
    print(json.dumps({name: total / EVENTS * 1e6 for name, total in spent.items()}))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif len(sys.argv) == 2:
        time_worker(Path(sys.argv[1]))
    else:
        time_parts(Path(sys.argv[1]))
