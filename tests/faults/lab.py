"""The fault lab: real Spark, agent, Prometheus and Alertmanager on loopback, and a pager.

The rules are the shipped ones with every duration multiplied by `time_scale`. A fault is put in with a
switch; what was paged, warned of and left alone is read from the pager and from Prometheus.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# The alert tests' programs serve here too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "alerts"))

from alert_stack import Alertmanager, Pager, Program, free_port, get_json, wait_until
from feeder import Feeder
from promtool import ROOT, program, time_of
from typing_extensions import Self

from streamgauge.grafana.alerts.prometheus import Export, rule_file
from streamgauge.grafana.alerts.settings import Settings
from streamgauge.grafana.alerts.yamltext import dump

SCRAPE = 0.5  # seconds
SCALE = float(os.environ.get("FAULT_TIME_SCALE") or 1 / 60)  # larger on a machine that is busy
FRESH = 2.0  # seconds: how old the output of the query `behind` may be
RESULTS = ROOT / "artifacts" / "faults.jsonl"
PREFIX = "SparkStream"


@dataclass
class Result:
    """One row of the table: what must page, must warn and may warn, and what did."""

    fault: str
    pages: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    may_warn: list[str] = field(default_factory=list)
    paged: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    seconds: float | None = None
    allowed: float | None = None
    false_pages: int = 0


class Lab:
    """Everything of one fault. A context manager; what it started, it ends."""

    def __init__(self, folder: Path, *, scale: float = SCALE, **knobs: float) -> None:
        self.folder = folder
        self.scale = scale
        (folder / "switches").mkdir()
        settings = {"team": "payments", "env": "prod", "watch_seconds": 0.25}
        settings |= {"silence_seconds": 300 * scale, "grace_seconds": 300 * scale}
        settings |= {"queries": {"behind": {"thresholds": {"freshness_seconds": FRESH}}}}
        (folder / "settings.json").write_text(json.dumps(settings))
        self.port = free_port()
        self.pager = Pager()
        self.feeder = Feeder()
        webhooks = {name: f"{self.pager.url}/{path}" for name, path in _WEBHOOKS.items()}
        self.knobs = Settings({**webhooks, **knobs}, scale)
        self.alertmanager = Alertmanager(folder, self.knobs)
        self.prometheus = self._make_prometheus()
        self.driver: subprocess.Popen[bytes] | None = None
        self.query = ""
        self.number_of_plans = 0
        self.since = time.time()
        self.broken_at = 0.0
        self.due: set[tuple[str, str]] = set()  # (query, alert) of all pages that had to come

    # ---- the programs ----------------------------------------------------------------------

    def _make_prometheus(self) -> Program:
        rules = self.folder / "rules.yml"
        rules.write_text(rule_file(Export(self.knobs)))
        config = self.folder / "prometheus.yml"
        config.write_text(dump(self._prometheus_config(rules)))
        port = free_port()
        self.prometheus_url = f"http://127.0.0.1:{port}"
        self.data = self.folder / "prometheus-data"
        return Program(
            self.folder,
            program("prometheus"),
            f"{self.prometheus_url}/-/ready",
            f"--config.file={config}",
            f"--storage.tsdb.path={self.data}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--rules.alert.resend-delay=1s",
        )

    def _prometheus_config(self, rules: Path) -> dict[str, Any]:
        interval = f"{int(SCRAPE * 1000)}ms"
        return {
            "global": {"scrape_interval": interval, "scrape_timeout": interval},
            "rule_files": [str(rules)],
            "alerting": {
                "alertmanagers": [
                    {"static_configs": [{"targets": [f"127.0.0.1:{self.alertmanager.port}"]}]}
                ]
            },
            "scrape_configs": [
                {
                    "job_name": "spark",
                    "static_configs": [{"targets": [f"127.0.0.1:{self.port}"]}],
                }
            ],
        }

    def __enter__(self) -> Self:
        self.pager.__enter__()
        self.alertmanager.__enter__()
        self.prometheus.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.feeder.closed = True
        self.kill()
        self.prometheus.stop()
        self.alertmanager.__exit__()
        self.pager.__exit__()

    def start_driver(self) -> None:
        """Start the Spark driver; a second call starts another one after the first is gone."""
        arguments = (str(self.folder), str(self.port), repr(self.scale))
        with (self.folder / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent / "fault_driver.py"), *arguments],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        if not self.feeder.is_alive():
            self.feeder.start()

    def kill(self) -> None:
        """Kill the driver and its JVM at once, as the kernel does when memory runs out."""
        if self.driver is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.driver = None

    # ---- breaking and mending --------------------------------------------------------------

    def begin(self, query: str, *, batches: int = 4, files: int = 0, **plan: Any) -> None:
        """Run another query and wait until it has committed some batches; what fires counts from here.

        So many files are there before it starts; more come when it runs.
        """
        self.feeder.reset()
        for switch in (self.folder / "switches").iterdir():
            switch.unlink()
        self.query = query
        self.feeder.folder = self.folder / f"in-{query}"
        self.feeder.folder.mkdir(exist_ok=True)
        for _ in range(files):
            self.feeder.write()
        self.number_of_plans += 1
        base = {"kind": "plain", "trigger": {"processingTime": "0 seconds"}}
        text = json.dumps({**base, **plan, "query": query, "number": self.number_of_plans})
        hidden = self.folder / "plan.tmp"
        hidden.write_text(text)
        hidden.rename(self.folder / "plan.json")
        if self.driver is None:
            self.start_driver()
        self.since = time.time()
        self.wait_number(f"{self.of('query_active')} >= bool 0", 1, deadline=400)
        self.feeder.paused = False
        if batches:
            self.wait_batches(batches)

    def of(self, series: str, more: str = "") -> str:
        """A series of the query that runs now."""
        return f'streamgauge_{series}{{query="{self.query}"{more}}}'

    def on(self, switch: str, value: object = "") -> None:
        """Turn a switch on; the fault begins now."""
        (self.folder / "switches" / switch).write_text(str(value))
        self.broken_at = time.time()

    def off(self, switch: str) -> None:
        """Turn a switch off."""
        (self.folder / "switches" / switch).unlink(missing_ok=True)

    # ---- looking ---------------------------------------------------------------------------

    def ask(self, expr: str, at: float | None = None) -> list[dict[str, Any]]:
        """The result of an instant query."""
        parameters = {"query": expr} | ({"time": f"{at:.3f}"} if at else {})
        url = f"{self.prometheus_url}/api/v1/query?{urllib.parse.urlencode(parameters)}"
        found: list[dict[str, Any]] = get_json(url)["data"]["result"]
        return found

    def number(self, expr: str) -> float | None:
        """The one value of an instant query, or None."""
        found = self.ask(expr)
        return float(found[0]["value"][1]) if found else None

    def history(self, expr: str) -> list[tuple[float, float]]:
        """Time and value of the one series of an expression, each scrape since the fault's query began."""
        parameters = {"query": expr, "start": self.since, "end": time.time(), "step": SCRAPE}
        url = f"{self.prometheus_url}/api/v1/query_range?{urllib.parse.urlencode(parameters)}"
        found = get_json(url)["data"]["result"]
        return [(at, float(text)) for at, text in found[0]["values"]] if found else []

    def last_change(self, expr: str) -> float:
        """When the value of an expression last changed."""
        past = self.history(expr)
        return max(now[0] for before, now in itertools.pairwise(past) if before[1] != now[1])

    def wait_number(self, expr: str, least: float, deadline: float = 90) -> None:
        """Wait until the expression is at least so much."""
        wait_until(
            lambda: (self.number(expr) or 0) >= least,
            lambda: f"{expr} >= {least}; {self.tail()}",
            deadline,
        )

    def wait_batches(self, count: int, deadline: float = 90) -> None:
        """Wait until the query has committed so many batches in this run."""
        self.wait_number(f"sum({self.of('batches_total')})", count, deadline)

    def settle(self, minutes: float) -> None:
        """Let so many minutes of the rules' time pass."""
        time.sleep(minutes * 60 * self.scale)

    def restart_prometheus(self, *, away: float = 0.0, history: str = "") -> None:
        """Stop Prometheus for a while; start it again, with a past that is written into its blocks."""
        self.prometheus.stop()
        if history:
            file = self.folder / "history.txt"
            file.write_text(history)
            command = [program("promtool"), "tsdb", "create-blocks-from", "openmetrics"]
            subprocess.run([*command, str(file), str(self.data)], check=True, capture_output=True)
        time.sleep(away)
        self.prometheus.start()

    def firing(self) -> set[str]:
        """Names of the alerts that fire now, less the watchdog."""
        return {
            one["metric"]["alertname"].removeprefix(PREFIX)
            for one in self.ask('ALERTS{alertstate="firing",alertname!="SparkStreamWatchdog"}')
            if self.is_ours(one["metric"])
        }

    def fired(self) -> dict[str, set[str]]:
        """Names of the alerts that fired at any time, by severity."""
        found: dict[str, set[str]] = {"critical": set(), "warning": set()}
        seconds = max(1, int(time.time() - self.since))
        window = f'ALERTS{{alertstate="firing",alertname!="SparkStreamWatchdog"}}[{seconds}s]'
        for one in self.ask(f"count by (alertname, severity, query) (count_over_time({window}))"):
            if self.is_ours(one["metric"]):
                name = one["metric"]["alertname"].removeprefix(PREFIX)
                found[one["metric"]["severity"]].add(name)
        return found

    def received(self) -> list[dict[str, Any]]:
        """What the pager received about this fault's queries, or the application, since it began."""
        return [
            page
            for page in self.pager.received("/page")
            if page["at"] >= self.since
            and any(self.is_ours(one["labels"]) for one in page["alerts"])
        ]

    def is_ours(self, labels: dict[str, str]) -> bool:
        """Whether an alert is of this fault's queries; `strays` looks after those of earlier ones."""
        name = labels.get("query", self.query)
        return name == self.query or name.startswith(f"{self.query}-")

    def strays(self) -> set[tuple[str, str]]:
        """Pages about any query, at any time, that no fault called for."""
        alerts = [one for page in self.pager.received("/page") for one in page["alerts"]]
        paged = {
            (one["labels"].get("query", ""), one["labels"]["alertname"].removeprefix(PREFIX))
            for one in alerts
        }
        return paged - self.due

    def wait_page(self, alert: str, deadline: float = 120) -> dict[str, Any]:
        """The page of an alert."""
        page: dict[str, Any] = wait_until(
            lambda: [p for p in self.received() if p["groupLabels"]["alertname"] == PREFIX + alert],
            lambda: f"a page of {alert}; firing: {self.firing()}; {self.tail()}",
            deadline,
        )[0]
        return page

    def wait_firing(self, alert: str, deadline: float = 120) -> None:
        """Wait until an alert fires, whether or not it pages."""
        wait_until(
            lambda: alert in self.firing(), lambda: f"{alert} to fire; {self.tail()}", deadline
        )

    def wait_quiet(self, deadline: float = 90) -> None:
        """Wait until nothing fires any more."""
        wait_until(lambda: not self.firing(), lambda: f"silence; firing: {self.firing()}", deadline)

    def pages(self) -> list[str]:
        """Names of the alerts that reached the pager, each once, in order."""
        names = [page["groupLabels"]["alertname"] for page in self.received()]
        return list(dict.fromkeys(name.removeprefix(PREFIX) for name in names))

    def number_of_pages(self) -> int:
        """How often the pager rang since the fault began; a repetition is not a page."""
        return len({page["groupKey"] for page in self.received()})

    def knob(self, name: str) -> float:
        """A knob in the lab's time."""
        return float(self.knobs.value(name))

    def verdict(self) -> str:
        """The agent's verdict now."""
        found = self.ask(f"{self.of('query_state')} == 1")
        return str(found[0]["metric"]["state"]) if found else "none"

    def said(self, what: str) -> list[float]:
        """The times at which the driver said something in its log."""
        lines = (self.folder / "log").read_text().splitlines()
        found = [line.split(" ", 1) for line in lines]
        return [float(at) for at, words in found if words == what]

    def tail(self) -> str:
        """The driver's last words."""
        log = self.folder / "driver.log"
        return log.read_text()[-1500:] if log.exists() else "no driver"

    def kept(self, result: Result) -> None:
        """Fill a result in, keep it for the table, and check it: recall and false pages."""
        fired = self.fired()
        result.paged = self.pages()
        result.warned = sorted(fired["warning"])
        result.false_pages = len(set(result.paged) - set(result.pages))
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        for page in self.received():
            names = {one["labels"].get("query", "") for one in page["alerts"]}
            self.due |= {(name, alert) for name in names for alert in result.pages}
            for one in page["alerts"]:
                assert time_of(one["annotations"]["since"]) < page["at"], one
        assert set(result.paged) == set(result.pages), f"{self.tail()}\n{result}"
        assert set(result.warns) <= set(result.warned), result
        assert set(result.warned) <= {*result.warns, *result.may_warn}, result
        if result.pages:
            assert result.seconds is not None, result
            assert result.allowed is not None, result
            assert result.seconds <= result.allowed, result


_WEBHOOKS = {"pager_url": "page", "ticket_url": "ticket", "deadman_url": "deadman"}


def allowed_seconds(lab: Lab, window: float) -> float:
    """Time from fault to page: the alert's own window, two evaluations, a scrape, and the wait."""
    return window + 2 * lab.knob("evaluation_interval") + SCRAPE + lab.knob("group_wait")


def paged(
    lab: Lab,
    result: Result,
    window: float,
    begun: Callable[[], float] | None = None,
    deadline: float = 120,
) -> Result:
    """Wait for the page of a fault that is in, and note how long it took and might have taken.

    `begun` tells, once the page is there, when what the alert is about began: some time after the
    fault, since a stop, a start or a batch takes its time. The alert's window counts from there.
    """
    page = lab.wait_page(result.pages[0], deadline)
    result.seconds = page["at"] - lab.broken_at
    later = begun() - lab.broken_at if begun else 0.0
    result.allowed = later + allowed_seconds(lab, window)
    return result
