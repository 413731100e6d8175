"""A recording: a real Spark with every fault of the fault lab, scraped by a real Prometheus with the shipped rules.

    python recording.py [FOLDER]

makes one; what it leaves in FOLDER is Prometheus' data and `recording.json`, which says when it was. The
rules run with every duration multiplied by `SCALE`, as in the fault lab. What a dashboard compares with, a day
and a week ago, is written into Prometheus' past. `recorded_faults.py` says which query has which fault, and
`Play.story` when it comes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "alerts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "kafka"))

from alert_stack import Program, free_port, get_json, wait_until
from broker import Broker
from confluent_kafka import Producer
from feeder import Feeder
from promtool import ROOT, program
from recorded_faults import STEP, without_sign
from recording_past import write_past
from typing_extensions import Self

from streamgauge.grafana.alerts.prometheus import Export, rule_file
from streamgauge.grafana.alerts.settings import Settings
from streamgauge.grafana.alerts.yamltext import dump

SCALE = 1 / 60
SCRAPE = 2  # seconds
SECONDS = 420.0
PLACE = ROOT / "artifacts" / "recording"
APPS = {"shop": (), "bank": ("ledger",), "courier": ("parcels",)}  # with a query, it has that one


@dataclass(frozen=True)
class Recording:
    """Where the data is, and from when to when it was made."""

    folder: Path
    begin: float
    end: float

    @property
    def data(self) -> Path:
        """Prometheus' own folder."""
        return self.folder / "data"


def load(folder: Path = PLACE) -> Recording:
    """The recording that is there; raises with how to make one."""
    file = folder / "recording.json"
    if not file.exists():
        raise FileNotFoundError(f"there is no {file}; `make recording` makes it")
    times = json.loads(file.read_text())
    return Recording(folder, times["begin"], times["end"])


class Prometheus:
    """A Prometheus on loopback, with exemplars. A context manager."""

    def __init__(self, folder: Path, data: Path, config: dict[str, Any], *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "prometheus.yml"
        file.write_text(dump(config))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._program = Program(
            folder,
            program("prometheus"),
            f"{self.url}/-/ready",
            f"--config.file={file}",
            f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=10y",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
            *options,
        )

    def __enter__(self) -> Self:
        self._program.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._program.stop()

    def stay_away(self, seconds: float) -> None:
        """Be down for so long."""
        self._program.stop()
        time.sleep(seconds)
        self._program.start()

    def get(self, path: str, **parameters: object) -> Any:
        """The data of an answer of its API."""
        text = urllib.parse.urlencode({k: str(v) for k, v in parameters.items()})
        return get_json(f"{self.url}/api/v1/{path}?{text}")["data"]

    def ask(self, expr: str, at: float | None = None) -> list[dict[str, Any]]:
        """The result of an instant query."""
        when = {"time": at} if at else {}
        found: list[dict[str, Any]] = self.get("query", query=expr, **when)["result"]
        return found

    def ask_range(self, expr: str, begin: float, end: float, step: float) -> list[dict[str, Any]]:
        """The result of a range query."""
        found: list[dict[str, Any]] = self.get(
            "query_range", query=expr, start=begin, end=end, step=step
        )["result"]
        return found


@contextlib.contextmanager
def replay(recording: Recording, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus on a copy of the recording's data; it scrapes nothing."""
    data = folder / "data"
    shutil.copytree(recording.data, data)
    (data / "lock").unlink(missing_ok=True)
    with Prometheus(folder, data, {"global": {"scrape_interval": "15s"}}) as running:
        yield running


# ---- the run -------------------------------------------------------------------------------


class Clicks(threading.Thread):
    """What is written into the topic: 90 rows a second, most of them into one partition."""

    shares = (60, 20, 10)  # rows a second and partition

    def __init__(self, broker: Broker) -> None:
        super().__init__(daemon=True)
        broker.create("clicks", partitions=len(self.shares), retention_ms=3600 * 1000)
        self._producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
        self.pace = 1.0
        self.closed = False

    def run(self) -> None:
        """Write every half second until closed."""
        while not self.closed:
            for partition, share in enumerate(self.shares):
                for _ in range(round(share * self.pace / 2)):
                    self._producer.produce("clicks", b"x" * 20, partition=partition)
            self._producer.flush(10)
            time.sleep(0.5)


class Driver:
    """A Spark driver in a process group of its own; a second start is another one after the first."""

    def __init__(self, folder: Path, app: str, port: int) -> None:
        script = Path(__file__).with_name("recording_driver.py")
        words = (str(folder), str(port), app, repr(SCALE), *APPS[app])
        self._command = [sys.executable, str(script), *words]
        self._folder = folder
        self.log = folder / f"{app}.log"
        self.start()

    def start(self) -> None:
        """Start it; its words go on in its log."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it and its JVM, as the kernel does when memory runs out."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None


class Play:
    """The programs of a recording, and what is done to them."""

    def __init__(self, work: Path, prometheus: Prometheus, broker: Broker) -> None:
        self.work = work
        self.prometheus = prometheus
        self.clicks = Clicks(broker)
        self.feeders = {name: Feeder() for name in ("labels", "visits")}
        self.drivers: dict[str, Driver] = {}

    def open(self, ports: dict[str, int]) -> None:
        """Start the drivers, and what feeds them once their queries are there: nothing waits for these."""
        self.drivers |= {app: Driver(self.work, app, port) for app, port in ports.items()}
        wait_until(lambda: self.has_started("audit-second"), self.words, 240)
        for name, feeder in self.feeders.items():
            feeder.folder = self.work / f"in-{name}"
            feeder.every, feeder.paused = 1.0, False
            feeder.start()
        self.clicks.start()

    def close(self) -> None:
        """End what was started."""
        for thread in (self.clicks, *self.feeders.values()):
            thread.closed = True
        for driver in self.drivers.values():
            driver.kill()

    # ---- breaking and mending --------------------------------------------------------------

    def story(self) -> list[tuple[float, Callable[[], None]]]:
        """What happens when, in seconds."""
        labels, visits = self.feeders["labels"], self.feeders["visits"]
        return [
            (10, lambda: self.prometheus.stay_away(20)),
            (40, lambda: self.turn("scans", "slow", "2")),
            (45, lambda: self.turn("clicks", "stop")),
            (50, lambda: self.turn("ledger", "deaf")),
            (70, lambda: self.turn("clicks", "stop", on=False)),
            (70, lambda: setattr(self.clicks, "pace", 0.2)),
            (75, lambda: setattr(visits, "frozen_at", time.time())),
            (80, lambda: self.turn("labels", "slow", "2")),
            (85, lambda: self.turn("ledger", "deaf", on=False)),
            (90, lambda: self.turn("refunds", "fail")),
            (100, lambda: self.turn("payments", "stop")),
            (110, lambda: self.turn("ledger", "block")),
            (120, lambda: self.turn("payments", "stop", on=False)),
            (130, threading.Thread(target=self.crash, daemon=True).start),
            (145, lambda: self.turn("ledger", "block", on=False)),
            (165, lambda: setattr(visits, "frozen_at", None)),
            (180, lambda: self.turn("labels", "slow", on=False)),
            (185, lambda: self.turn("searches", "tasks", "160")),
            (200, lambda: self.turn("searches", "tasks", on=False)),
            (200, self.drivers["bank"].kill),
            (210, lambda: setattr(self.clicks, "pace", 1.0)),
            (230, lambda: self.turn("clicks", "hang")),
            (235, lambda: self.turn("invoices", "hang")),
            (240, lambda: self.turn("profiles", "reset")),
            (260, lambda: setattr(labels, "rows", 40)),
            (270, lambda: self.turn("exports", "stay")),
            (270, lambda: self.turn("exports", "fail", "1")),
            (280, lambda: visits.write(at=time.time() + 3600, rows=1)),
            (300, self.spoil),
            (SECONDS, lambda: None),
        ]

    def turn(self, query: str, switch: str, value: str = "", *, on: bool = True) -> None:
        """Turn a switch of a query on or off."""
        file = self.work / "switches" / query / switch
        file.parent.mkdir(parents=True, exist_ok=True)
        if on:
            file.write_text(value)
        else:
            file.unlink()

    def crash(self) -> None:
        """Kill a driver and start it again, and once more when its query runs."""
        for _ in range(2):
            self.drivers["courier"].kill()
            self.drivers["courier"].start()
            expr = f'streamgauge_query_started_timestamp_seconds{{query="parcels"}} > {time.time()}'
            wait_until(lambda asked=expr: self.prometheus.ask(asked), self.words, 120)

    def spoil(self) -> None:
        """Take a commit out of the middle of a log."""
        commits = self.work / "checkpoint-orders" / "commits"
        ids = sorted(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(ids[-2])).unlink()
        (commits / f".{ids[-2]}.crc").unlink(missing_ok=True)

    # ---- waiting ---------------------------------------------------------------------------

    def words(self) -> str:
        """The drivers' last."""
        return "\n".join(driver.log.read_text()[-1500:] for driver in self.drivers.values())

    def has_started(self, query: str) -> bool:
        """Whether a query runs; raises when a driver died."""
        if not all(driver.alive() for driver in self.drivers.values()):
            raise AssertionError(self.words())
        return bool(self.prometheus.ask(f'streamgauge_query_active{{query="{query}"}} == 1'))

    def committed(self, app: str, count: int) -> bool:
        """Whether so many queries of the application have committed two batches."""
        expr = f'count(sum by (query) (streamgauge_batches_total{{app="{app}"}}) > 1)'
        found = self.prometheus.ask(expr)
        return bool(found) and float(found[0]["value"][1]) >= count

    def run(self) -> tuple[float, float]:
        """Play the story from the moment at which all goes well; when it began and ended."""
        for app, count in (("bank", 1), ("courier", 1), ("shop", 12)):
            wait_until(lambda app=app, count=count: self.committed(app, count), self.words, 300)
        begin = time.time()
        for at, act in self.story():
            time.sleep(max(0.0, begin + at - time.time()))
            if not self.drivers["shop"].alive():
                raise AssertionError(self.words())
            act()
        end = time.time() - 1
        # Spans are written every few seconds; those of the last dots come with the next writing.
        spans = self.work / "traces.jsonl"
        wait_until(lambda: spans.stat().st_mtime > end + 2, "the last spans")
        return begin, end


def record(folder: Path = PLACE) -> Recording:
    """Make a recording; what was in the folder goes."""
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    for name, files in {"returns": 1, "nightly": 3, "audit": 0, "labels": 0, "visits": 0}.items():
        (work / f"in-{name}").mkdir(parents=True)
        for number in range(files):
            (work / f"in-{name}" / f"{number}.json").write_text('{"id": 1}')
    (work / "kafka").mkdir()
    write_past(folder / "data", time.time() + 90)
    ports = {app: free_port() for app in APPS}
    broker = Broker(work / "kafka")
    try:
        (work / "settings.json").write_text(json.dumps(_settings(broker.address)))
        with (
            Prometheus(work, folder / "data", _config(work, list(ports.values()))) as prometheus,
            contextlib.closing(Play(work, prometheus, broker)) as play,
        ):
            play.open(ports)
            begin, end = play.run()
    finally:
        broker.stop()
    (folder / "recording.json").write_text(json.dumps({"begin": begin, "end": end}))
    return Recording(folder, begin, end)


def _settings(kafka: str) -> dict[str, Any]:
    """What the agents of all drivers are told."""
    owner = {"team": "payments", "env": "prod", "tier": "1", "code_version": "1.4.2"}
    looks = {"watch_seconds": 1, "checkpoint_seconds": 3, "checkpoint_state_size": True}
    times = {"silence_seconds": 300 * SCALE, "grace_seconds": 3600}
    return {**owner, **looks, **times, "kafka": kafka, "log_level": "warning"}


def _config(work: Path, ports: list[int]) -> dict[str, Any]:
    rules = work / "rules.yml"
    # A commit takes as long as the disk needs, and a start as long as Spark needs, however fast the rules run;
    # and they need not run more often than Prometheus scrapes.
    slow = {"commit_seconds": 1, "restart_window": 180, "evaluation_interval": SCRAPE}
    slow = {name: seconds / SCALE for name, seconds in slow.items()}
    rules.write_text(rule_file(Export(Settings(slow, SCALE))))
    targets = [f"127.0.0.1:{port}" for port in ports]
    return {
        "global": {"scrape_interval": f"{SCRAPE}s", "scrape_timeout": f"{SCRAPE}s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "spark", "static_configs": [{"targets": targets}]}],
    }


def faults_missing(recording: Recording, folder: Path) -> list[str]:
    """Faults of the lab of which the recording has no sign."""
    times = (recording.begin, recording.end, STEP)
    with replay(recording, folder) as prometheus:
        return without_sign(lambda expr: prometheus.ask_range(expr, *times))


def main(folder: Path = PLACE) -> int:
    """Make a recording; 1 if a fault is not in it."""
    made = record(folder)
    sys.stdout.write(f"{made.folder}: {made.end - made.begin:.0f} s\n")
    with tempfile.TemporaryDirectory() as place:
        missing = faults_missing(made, Path(place))
    sys.stdout.writelines(f"there is no sign of {fault}\n" for fault in missing)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
