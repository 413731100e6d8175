"""The fault lab: real Spark, agent, Prometheus and Alertmanager on loopback, and a pager.

The rules are the shipped ones with every duration multiplied by `time_scale`. A fault is put in with a
switch; what was paged, warned of and left alone is read from the pager and from Prometheus.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

# The alert tests' programs serve here too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "alerts"))

from alert_stack import Alertmanager, Pager, Program, free_port, get_json, wait_until
from driver_process import DriverProcess
from feeder import Feeder
from promtool import program
from typing_extensions import Self

from streamgauge.grafana.alerts.prometheus import Export, rule_file
from streamgauge.grafana.alerts.settings import Settings
from streamgauge.grafana.alerts.yamltext import dump

SCRAPE = 0.5  # seconds
SCALE = float(os.environ.get("FAULT_TIME_SCALE") or 1 / 60)  # larger on a machine that is busy
FRESH = 2.0  # seconds: how old the output of the query `behind` may be
PREFIX = "SparkStream"


class Lab(DriverProcess):
    """Everything of one fault. A context manager; what it started, it ends."""

    def __init__(
        self,
        folder: Path,
        *,
        scale: float = SCALE,
        scrape: float = SCRAPE,
        queries: dict[str, Any] | None = None,
        clock: bool = False,
        **parameters: float,
    ) -> None:
        """With `clock` the driver's wall clock can be stepped; `queries` are settings of queries."""
        super().__init__(folder, scale, clock=clock)
        self.scrape = scrape
        (folder / "switches").mkdir()
        (folder / "settings.json").write_text(json.dumps(_agent_settings(scale, queries or {})))
        self.pager = Pager()
        self.feeder = Feeder()
        webhooks = {name: f"{self.pager.url}/{path}" for name, path in _WEBHOOKS.items()}
        self.parameters = Settings({**webhooks, **parameters}, scale)
        self.alertmanager = Alertmanager(folder, self.parameters)
        self.prometheus = self._make_prometheus()
        self.query = ""
        self.number_of_plans = 0
        self.since = time.time()
        self.due: set[tuple[str, str]] = set()  # (query, alert) of all pages that had to come

    # ---- the programs ----------------------------------------------------------------------

    def _make_prometheus(self) -> Program:
        rules = self.folder / "rules.yml"
        rules.write_text(rule_file(Export(self.parameters)))
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
        interval = f"{int(self.scrape * 1000)}ms"
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
        self.feeder.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.feeder.closed = True
        self.kill()
        self.prometheus.stop()
        self.alertmanager.__exit__()
        self.pager.__exit__()

    # ---- breaking and fixing ---------------------------------------------------------------

    def begin(
        self, query: str, *, batches: int = 4, files: int = 0, both: bool = False, **plan: Any
    ) -> None:
        """Run another query and wait until it has committed some batches; what fires counts from here.

        So many files are there before it starts; more come when it runs, for `both` sources of a join.
        """
        self.feeder.reset()
        for switch in (self.folder / "switches").iterdir():
            switch.unlink()
        self.query = query
        self.feeder.folder = self.folder / f"in-{query}"
        self.feeder.folder.mkdir(exist_ok=True)
        if both:
            self.feeder.other = self.folder / f"in-{query}-other"
            self.feeder.other.mkdir()
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
        parameters = {"query": expr, "start": self.since, "end": time.time(), "step": self.scrape}
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

    def wait_started(self, since: float, deadline: float = 200) -> None:
        """Wait until Prometheus knows of a start of the query since then."""
        self.wait_number(self.of("query_started_timestamp_seconds"), since, deadline)

    def drain(self) -> None:
        """Let the query read what there is: a stop now interrupts no batch that would be run again."""
        self.feeder.paused = True
        wait_until(lambda: self.verdict() == "idle", lambda: f"idle; {self.tail()}", 90)

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

    def texts(self, alert: str) -> list[str]:
        """What each notification of an alert about this fault's queries says, page or ticket."""
        return [
            "\n".join(one["annotations"].values())
            for path in ("/page", "/ticket")
            for page in self.pager.received(path)
            for one in page["alerts"]
            if page["at"] >= self.since
            and one["labels"]["alertname"] == PREFIX + alert
            and self.is_ours(one["labels"])
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

    def wait_text(self, alert: str, deadline: float = 60) -> None:
        """Wait until the pager or the ticket system has got an alert."""
        wait_until(lambda: self.texts(alert), f"a notification of {alert}", deadline)

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

    def parameter(self, name: str) -> float:
        """A rule parameter in the lab's time."""
        return float(self.parameters.value(name))

    def verdict(self) -> str:
        """The agent's verdict now."""
        found = self.ask(f"{self.of('query_state')} == 1")
        return str(found[0]["metric"]["state"]) if found else "none"


_WEBHOOKS = {"pager_url": "page", "ticket_url": "ticket", "deadman_url": "deadman"}


def _agent_settings(scale: float, queries: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {"team": "payments", "env": "prod"}
    if scale < 1:
        settings |= {"watch_seconds": 0.25}
        settings |= {"silence_seconds": 300 * scale, "grace_seconds": 300 * scale}
        queries = {"behind": {"thresholds": {"freshness_seconds": FRESH}}, **queries}
    return {**settings, "queries": queries}
