"""Many drivers in one process, without Spark: real agents, played real recorded events.

    python bench/fleet_drivers.py FIRST END QUERIES FOLDER

Each driver is an agent with its own registry, server and threads, and tells Prometheus its port by a file in the
folder. Runs until it is ended.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import figures  # noqa: F401 - finds the stage
from stage import Life, QuietDriver, recorded

from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.listener.inbox import Item
from streamgauge.model.observations import (
    ApplicationStatus,
    CheckpointNames,
    QueryStatus,
    RunDetails,
)

TRIGGER = 10.0
# One driver's mix; a Kafka source as `Life` writes it, where no recording is named.
KINDS = (
    *(None, None, None, "progress-file-source"),
    *("progress-agg-append-rocksdb", "progress-agg-append-rocksdb", "progress-dedup-rocksdb"),
    *("progress-agg-append-hdfs", "progress-stream-stream-join-rocksdb"),
    "progress-session-window-rocksdb",
)
STARTED = time.time() // 86_400 * 86_400  # one moment for all, as a past needs it


class Driver(QuietDriver):
    """Sees what a classic driver sees of a query that waits for its next trigger."""

    def poll_application(self):
        return ApplicationStatus(at=time.time(), spark_version="4.3.0", bus_dropped=0)

    def details(self, query_id, run_id):
        return RunDetails(
            query_id=query_id,
            run_id=run_id,
            app_id="app-20261116000000-0000",
            spark_version="4.3.0",
            checkpoint=f"s3a://streams/checkpoints/{query_id}",
            trigger="processing_time",
            trigger_seconds=TRIGGER,
            output_mode="append",
            sink="delta",
            state_provider="rocksdb",
        )

    def poll_query(self, query):
        return QueryStatus(
            query_id=query.query_id,
            run_id=query.run_id,
            at=time.time(),
            trigger_active=False,
            data_available=False,
            phase="waiting_for_trigger",
            listening=True,
        )

    def checkpoint_files(self):
        return self

    def read_backlog(self, query):
        return {}

    def read_names(self, query, *, with_state_size):
        last = query.committed.batch_id if query.committed else 0
        ids = tuple(range(max(0, last - 99), last + 1))
        return CheckpointNames(
            query_id=query.query_id,
            run_id=query.run_id,
            at=time.time(),
            offsets=ids,
            commits=ids,
            last_commit_at=time.time(),
        )

    def waiting(self, query):
        return {}


class Played:
    """A query that commits a recorded batch every trigger."""

    def __init__(self, agent: Agent, name: str, kind: str | None) -> None:
        self.agent = agent
        self.life = Life(name)
        self.batch = json.loads(recorded("4.3.0", kind))["progress"] if kind else {}
        for key in ("id", "runId", "name", "timestamp", "batchId"):
            self.batch.pop(key, None)
        self._put("started", self.life.started(at=_iso(STARTED)))

    def commit(self) -> None:
        now = time.time()
        changes = dict(self.batch)
        if changes.get("eventTime"):
            changes["eventTime"] = {
                key: _iso(now - (10 if key == "watermark" else 1)) for key in changes["eventTime"]
            }
        self._put("progress", self.life.progress(at=_iso(now - 0.6), **changes))

    def _put(self, kind: str, text: str) -> None:
        self.agent.inbox.put(Item(kind, text, time.time()))


def _iso(at: float) -> str:
    text = datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def main(first: int, end: int, queries: int, folder: Path) -> None:
    played = []
    for number in range(first, end):
        config = make_config({
            "app": f"app-{number:04d}", "team": f"team-{number % 7}", "env": "prod", "tier": "1",
            "metrics_address": "127.0.0.1:0", "sd_file": str(folder / f"{number:04d}.json"),
            "log_level": "off", "checkpoint_seconds": 30,
        })  # fmt: skip
        agent = Agent(config, driver=Driver())
        agent.start()
        played += [Played(agent, f"query-{n}", KINDS[n % len(KINDS)]) for n in range(queries)]
    pace = threading.Event()
    while True:
        for query in played:
            query.commit()
            pace.wait(TRIGGER / len(played))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), Path(sys.argv[4]))
