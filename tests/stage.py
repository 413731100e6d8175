"""What tests play with: recorded events, a query's life in a few words, pages, programs."""

from __future__ import annotations

import json
import shutil
import socket
import time
import uuid
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streamgauge.listener import driver
from streamgauge.listener.driver import ApplicationInfo
from streamgauge.listener.inbox import Item
from streamgauge.model.decoder import decode
from streamgauge.model.events import kind_of

ROOT = Path(__file__).resolve().parent.parent
EVENTS = ROOT / "tests" / "data" / "events"


def recorded(version: str, name: str) -> str:
    """The text of a real event of one Spark version."""
    return (EVENTS / version / f"{name}.json").read_text(encoding="utf-8")


def program(name: str) -> str:
    """Path of a program that `make setup` brings; a test without it fails and says so."""
    found = shutil.which(name)
    assert found, f"{name} is not here; `make setup` brings it"
    return found


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Life:
    """Writes the events of one query as Spark would."""

    def __init__(self, name: str | None = "orders", query_id: str | None = None) -> None:
        self.name = name
        self.query_id = query_id or str(uuid.uuid4())
        self.run_id = str(uuid.uuid4())
        self.batch_id = -1

    def started(self, at: str = "2026-11-16T00:00:00.000Z") -> str:
        """A new run."""
        self.run_id = str(uuid.uuid4())
        return json.dumps(
            {"id": self.query_id, "runId": self.run_id, "name": self.name, "timestamp": at}
        )

    def progress(self, at: str = "2026-11-16T00:00:01.000Z", **changes) -> str:
        """The next batch."""
        self.batch_id += 1
        progress = {
            "id": self.query_id,
            "runId": self.run_id,
            "name": self.name,
            "timestamp": at,
            "batchId": self.batch_id,
            "batchDuration": 500,
            "numInputRows": 10,
            "inputRowsPerSecond": 10.0,
            "processedRowsPerSecond": 20.0,
            "durationMs": {
                "addBatch": 400,
                "commitOffsets": 20,
                "getBatch": 1,
                "latestOffset": 2,
                "queryPlanning": 30,
                "triggerExecution": 500,
                "walCommit": 20,
            },
            "stateOperators": [],
            "sources": [
                {
                    "description": "KafkaV2[Subscribe[orders]]",
                    "startOffset": {"orders": {"0": self.batch_id * 10}},
                    "endOffset": {"orders": {"0": self.batch_id * 10 + 10}},
                    "latestOffset": {"orders": {"0": self.batch_id * 10 + 10}},
                    "numInputRows": 10,
                    "inputRowsPerSecond": 10.0,
                    "processedRowsPerSecond": 20.0,
                }
            ],
            "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
        }
        progress.update(changes)
        return json.dumps({"progress": progress})

    def idle(self, at: str = "2026-11-16T00:00:02.000Z") -> str:
        """A trigger without work."""
        return json.dumps({"id": self.query_id, "runId": self.run_id, "timestamp": at})

    def terminated(self, exception: str | None = None, error_class: str | None = None) -> str:
        """The end of the run."""
        return json.dumps(
            {
                "id": self.query_id,
                "runId": self.run_id,
                "exception": exception,
                "errorClassOnException": error_class,
            }
        )


class QuietDriver(driver.QuietDriver):
    """A driver that sees nothing; what it is to know of an application is in that's `info`."""

    def add(self, stoppable, listener, *, everywhere=False):
        return getattr(stoppable, "info", ApplicationInfo())


def apply_to(fleet, cause, now=0.0):
    """Have a fleet take in an event or observation; the query that it changed, or None."""
    changed = fleet.apply(cause, now).queries
    return changed[0] if changed else None


def feed(agent, *texts, settle=True):
    """Give an agent events as the bridge would, and wait until they are handled."""
    for text in texts:
        kind = kind_of(decode(text)) if text.startswith("{") else "progress"
        agent.inbox.put(Item(kind, text, time.time()))
    agent.fed = getattr(agent, "fed", 0) + len(texts)
    if settle:
        wait_for(lambda: _handled(agent) >= agent.fed, what="handling")


def _handled(agent):
    """How many events every exporter has been told of; `agent_events_total` counts them before."""
    return sum(agent.prometheus.handling_seconds._counts)


def wait_for(condition, seconds=30.0, what="the condition"):
    """Wait for a condition with a deadline; returns what it gave."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come true in {seconds} s")


def page(source):
    """The samples of a page, by (name, labels less app and query)."""
    text = source if isinstance(source, str) else generate_latest(source.registry).decode()
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def value(samples, name, /, query="orders", **labels):
    """One sample of a page, or None; a query's labels are found by its name."""
    found = [
        number
        for (full, pairs), number in samples.items()
        if full == f"streamgauge_{name}"
        and (query is None or ("query", query) in pairs)
        and set(labels.items()) <= set(pairs)
    ]
    assert len(found) <= 1, found
    return found[0] if found else None
