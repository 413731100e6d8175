"""A recording: a real Spark with faults, scraped by a real Prometheus with the shipped rules.

    python recording.py FOLDER [SECONDS]

makes one; what it leaves in FOLDER is Prometheus' data and `recording.json`, which says when it was. The
rules run with every duration multiplied by `SCALE`, as in the fault lab. What a dashboard compares with, a day
and a week ago, is written into Prometheus' past.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "alerts"))

from alert_stack import Program, free_port, get_json, wait_until
from promtool import ROOT, program
from typing_extensions import Self

from streamgauge.grafana.alerts.knobs import Settings
from streamgauge.grafana.alerts.prometheus import Export, rule_file
from streamgauge.grafana.alerts.yamltext import dump

SCALE = 1 / 60
SCRAPE = 2  # seconds
SECONDS = 180.0
PLACE = ROOT / "artifacts" / "recording"
HISTORY = ("orders", "payments", "searches", "clicks", "sessions")
DAY = 86400.0


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

    def __init__(self, folder: Path, data: Path, config: dict[str, Any]) -> None:
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
        )

    def __enter__(self) -> Self:
        self._program.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._program.stop()

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


# ---- the past ------------------------------------------------------------------------------


def write_past(data: Path, now: float) -> None:
    """The last hours, a day ago and a week ago, as blocks of Prometheus."""
    lines: list[str] = []
    for name, value in _recorded().items():
        lines.append(f"# TYPE {name} gauge")
        for query in HISTORY:
            labels = f'{{job="spark",app="shop",query="{query}"}}'
            lines.extend(
                f"{name}{labels} {value(query, moment):.6f} {moment:.3f}"
                for moment in _moments(now)
            )
    for family, members in _counters().items():
        lines.append(f"# TYPE {family} counter")
        for labels, step in members.items():
            lines.extend(
                f"{family}_total{{{labels}}} {step * number:.3f} {moment:.3f}"
                for number, moment in enumerate(_span(now - 7 * DAY - 5400, 2 * 5400, 15))
            )
    lines.append("# TYPE ALERTS gauge")
    for alert, severity, minutes in (
        ("LateRowsDropped", "warning", 50),
        ("BatchOverrun", "warning", 20),
    ):
        labels = f'alertname="SparkStream{alert}",alertstate="firing",severity="{severity}"'
        lines.extend(
            f'ALERTS{{{labels},job="spark",app="shop",query="orders"}} 1 {moment:.3f}'
            for moment in _span(now - 2 * DAY, minutes * 60, 60)
        )
    create_blocks([*lines, "# EOF", ""], data)


def create_blocks(lines: list[str], data: Path) -> None:
    """Put OpenMetrics text into Prometheus' folder."""
    data.mkdir(parents=True, exist_ok=True)
    file = data.with_suffix(".om")
    file.write_text("\n".join(lines))
    command = [
        program("promtool"),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(file),
        str(data),
    ]
    subprocess.run(command, check=True, capture_output=True)
    file.unlink()


def _span(begin: float, seconds: float, step: float) -> list[float]:
    return [begin + n * step for n in range(int(seconds / step))]


def _moments(now: float) -> list[float]:
    """Around this hour a week ago and a day ago, and the hours that the scaled baseline reads."""
    week, day = (_span(now - ago * DAY - 600, 5400, 30) for ago in (7, 1))
    return [*week, *day, *_span(now - 3 * 3600, 3 * 3600 - 300, 10)]


def _recorded() -> dict[str, Callable[[str, float], float]]:
    usual = {"orders": 1.6, "payments": 1.2, "searches": 0.65, "clicks": 0.9, "sessions": 1.1}
    rows = {"orders": 60.0, "payments": 15.0, "searches": 80.0, "clicks": 60.0, "sessions": 20.0}

    now = time.time()

    def wobble(moment: float) -> float:
        older = 0.9 if now - moment > 5 * DAY else 1.0
        return older * (1 + 0.05 * (int(moment / 60) % 3 - 1))

    return {
        "query:streamgauge_batch_duration:mean15m": lambda q, t: usual[q] * wobble(t),
        "query:streamgauge_input_rows:rate1h": lambda q, t: rows[q] * wobble(t + 7),
        "query:streamgauge_row_cost:seconds_per_krow1h": lambda q, t: (
            300 * usual[q] / rows[q] * wobble(t)
        ),
    }


def _counters() -> dict[str, dict[str, float]]:
    """Counters of a week ago: family, labels, and what each quarter of a minute adds."""
    phases = {"add_batch": 0.5, "query_planning": 0.1, "wal_commit": 0.12, "latest_offset": 0.02}
    base = 'job="spark",app="shop",query="orders",instance="last-week"'
    return {
        "streamgauge_phase_duration_seconds": {
            f'{base},phase="{phase}"': 4 * each for phase, each in phases.items()
        },
        "streamgauge_batches": {f'{base},data="true"': 4.0},
    }


# ---- the run -------------------------------------------------------------------------------


class Driver:
    """A Spark driver in a process group of its own."""

    def __init__(self, folder: Path, app: str, port: int, seconds: float) -> None:
        script = Path(__file__).with_name("recording_driver.py")
        words = (str(folder), str(port), app, repr(SCALE), repr(seconds))
        self.log = folder / f"{app}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(script), *words],
                stdout=log,
                stderr=log,
                cwd=folder,
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


def record(folder: Path = PLACE, seconds: float = SECONDS) -> Recording:
    """Make a recording; what was in the folder goes."""
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    work.mkdir(parents=True)
    settings = {"team": "payments", "env": "prod", "tier": "1", "code_version": "1.4.2"}
    settings |= {"watch_seconds": 1, "checkpoint_seconds": 3, "checkpoint_state_size": True}
    settings |= {"log_level": "warning"}
    settings |= {"silence_seconds": 300 * SCALE, "grace_seconds": 3600}
    (work / "settings.json").write_text(json.dumps(settings))
    write_past(folder / "data", time.time() + 90)
    ports = {app: free_port() for app in ("shop", "bank")}
    with Prometheus(work, folder / "data", _config(work, list(ports.values()))) as prometheus:
        drivers = {app: Driver(work, app, port, seconds) for app, port in ports.items()}
        try:
            begin = _play(prometheus, drivers, work, seconds)
            end = time.time() - 1
            _expect(prometheus)
            # Spans are written every few seconds; those of the last dots come with the next writing.
            spans = work / "traces.jsonl"
            wait_until(lambda: spans.stat().st_mtime > end + 2, "the last spans")
        finally:
            for driver in drivers.values():
                driver.kill()
    (folder / "recording.json").write_text(json.dumps({"begin": begin, "end": end}))
    return Recording(folder, begin, end)


def _play(prometheus: Prometheus, drivers: dict[str, Driver], work: Path, seconds: float) -> float:
    def words() -> str:
        return "\n".join(driver.log.read_text()[-1500:] for driver in drivers.values())

    def committed(app: str, count: int) -> bool:
        if not drivers[app].alive():
            raise AssertionError(words())
        expr = f'count(sum by (query) (streamgauge_batches_total{{app="{app}"}}) > 1)'
        found = prometheus.ask(expr)
        return bool(found) and float(found[0]["value"][1]) >= count

    wait_until(lambda: committed("bank", 1), words, 150)
    wait_until(lambda: committed("shop", 6), words, 240)
    begin = time.time()
    time.sleep(seconds / 4)
    drivers["bank"].kill()
    wait_until((work / "played").exists, words, seconds + 60)
    return begin


def _expect(prometheus: Prometheus) -> None:
    """The faults were there in the last minute: else the recording is none."""
    states = {
        (one["metric"]["query"], one["metric"]["state"])
        for one in prometheus.ask("max_over_time(streamgauge_query_state[1m]) == 1")
    }
    for wanted in (("clicks", "stalled"), ("exports", "failed"), ("returns", "idle")):
        assert wanted in states, states


def _config(work: Path, ports: list[int]) -> dict[str, Any]:
    rules = work / "rules.yml"
    # A commit takes as long as the disk needs, however fast the rules run: a second, as shipped.
    rules.write_text(rule_file(Export(Settings({"commit_seconds": 1 / SCALE}, SCALE))))
    targets = [f"127.0.0.1:{port}" for port in ports]
    return {
        "global": {"scrape_interval": f"{SCRAPE}s", "scrape_timeout": f"{SCRAPE}s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "spark", "static_configs": [{"targets": targets}]}],
    }


if __name__ == "__main__":
    made = record(
        Path(sys.argv[1]) if len(sys.argv) > 1 else PLACE,
        float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS,
    )
    sys.stdout.write(f"{made.folder}: {made.end - made.begin:.0f} s\n")
