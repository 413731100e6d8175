"""A driver process on a real broker, and what page, checkpoint and broker say of it at one moment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from broker import Broker
from stage import ROOT, free_port, page, value, wait_for

from streamgauge.checkpoint import make_report, read_checkpoint
from streamgauge.listener.kafka.broker import KafkaBroker


@dataclass
class Sample:
    """One moment. Positions by (topic, partition)."""

    at: float
    samples: dict
    committed: dict[tuple[str, str], int]
    latest: dict[tuple[str, str], int]

    def exported(self) -> dict[tuple[str, str], float]:
        """The backlog of each partition, as the page has it."""
        found = {}
        for (name, labels), number in self.samples.items():
            if name == "streamgauge_source_partition_backlog_rows":
                pairs = dict(labels)
                found[pairs["topic"], pairs["partition"]] = number
        return found

    def true(self) -> dict[tuple[str, str], int]:
        """The broker's end less the checkpoint's committed offset."""
        return {key: end - self.committed[key] for key, end in self.latest.items()}

    def source(self, name: str) -> float | None:
        """One series of the source."""
        return value(self.samples, name, source="0-kafka")


class Job:
    """Starts, hangs and kills a driver; samples it."""

    def __init__(self, broker: Broker, folder: Path, topics: tuple[str, ...]) -> None:
        self.folder = folder
        self.topics = topics
        self._broker = broker
        self._asked = KafkaBroker(broker.address, None)
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""

    def start(self, limit: int) -> None:
        """Start the driver with so many rows a batch; wait for its first commit and the look after it."""
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/metrics"
        settings = {"folder": str(self.folder), "port": port, "limit": limit}
        settings |= {"address": self._broker.address, "topics": self.topics}
        (self.folder / "settings.json").write_text(json.dumps(settings))
        places = [str(ROOT / "tests" / name) for name in ("", "spark", "kafka")]
        with (self.folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name("kafka_driver.py")),
                    str(self.folder / "settings.json"),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
                start_new_session=True,
            )
        asked = "source_retention_headroom_seconds"  # the broker's word alone
        wait_for(lambda: self.page(asked) is not None, 120, "the first commit")

    def kill(self) -> None:
        """Kill the driver and its JVM at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def hang(self, hangs: bool) -> None:
        """Have the batch hang, or go on."""
        switch = self.folder / "hang"
        switch.touch() if hangs else switch.unlink(missing_ok=True)

    @property
    def checkpoint(self) -> str:
        """Where the checkpoint lies."""
        return str(self.folder / "checkpoint")

    def scrape(self) -> dict:
        """The page now; empty when nobody serves it."""
        assert self._process is None or self._process.poll() is None, self.log()
        with contextlib.suppress(OSError), urllib.request.urlopen(self._url, timeout=5) as answer:
            return page(answer.read().decode())
        return {}

    def page(self, name: str) -> float | None:
        """One series of the query."""
        return value(self.scrape(), name)

    def log(self) -> str:
        """The driver's last words."""
        return (self.folder / "driver.log").read_text()[-3000:]

    def sample(self) -> Sample:
        """Page, checkpoint and broker at a moment when no commit is on its way to the page."""
        return wait_for(self._sample, 30, "a moment between two commits")

    def _sample(self) -> Sample | None:
        before = self._last_commit()
        samples = self.scrape()
        at = time.time()
        latest = self._asked.read_offsets(self.topics).latest
        report = make_report(read_checkpoint(self.checkpoint))
        known = value(samples, "last_committed_batch_id")
        if not (before == report.last_committed == known and report.sources):
            return None
        offsets = report.sources[0].committed
        committed = {(t, p): n for t, parts in offsets.items() for p, n in parts.items()}
        return Sample(at, samples, committed, latest)

    def _last_commit(self) -> int:
        names = (self.folder / "checkpoint" / "commits").iterdir()
        return max(int(each.name) for each in names if each.name.isdigit())
