"""A fleet without Spark: pages of real agents, a real Prometheus with the shipped rules and a week behind it.

    python bench/fleet.py [QUERIES ...]      1,000 and 10,000 unless named; ten per driver

Ten real agents are played recorded events; their pages are copied to as many drivers as are wanted. A first Prometheus
scrapes ten of them, to learn which series there are. Then every series that a rule looks back at gets as much past
as the rule looks back, and a second one scrapes all of them: a rule over a week costs what it will cost in a week.
Figures are taken from Prometheus itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from figures import ROOT, report
from fleet_copies import AGENTS
from fleet_past import SCRAPE, give_past, intervals
from past import Past
from stage import free_port

from streamgauge.grafana.alerts.settings import duration_text

RULES = ROOT / "grafana" / "alerts" / "rules" / "streamgauge.rules.yml"
MEAN = "query:streamgauge_batch_duration:mean15m"
SLICES = tuple(f"query:streamgauge_batch_duration:{part}1h" for part in ("count", "sum", "sumsq"))
A_DRIVER = 10  # queries
# Of its interval, what a rule may take, and what all rules of a group may take.
RULE_SHARE, GROUP_SHARE = 0.3, 0.6
# Seconds. What is newer comes from memory, as in a Prometheus that has run for long.
LOOKBACK = 300
# Seconds. A group of a longer interval is evaluated as often as this while it is measured.
LONGEST = 60


# ---- Prometheus -----------------------------------------------------------------------------


class Prometheus:
    """A real one in a folder; no rule's interval is longer than `longest` seconds."""

    def __init__(self, folder: Path, longest: int = LONGEST) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        rules = folder / "rules.yml"
        text = RULES.read_text()
        for every in set(intervals().values()):
            if every > longest:
                text = re.sub(
                    f'interval: "{duration_text(every)}"', f'interval: "{longest}s"', text
                )
        rules.write_text(text)
        config = folder / "prometheus.yml"
        config.write_text(f"""
global: {{scrape_interval: {min(SCRAPE, longest)}s, scrape_timeout: {min(10, longest)}s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: spark-streams
    file_sd_configs: [{{files: ["{folder}/targets/*.json"], refresh_interval: 5s}}]
  - job_name: prometheus
    static_configs: [{{targets: ["127.0.0.1:{self.port}"]}}]
""")
        with (folder / "prometheus.log").open("a") as log:
            self._process = subprocess.Popen(
                [
                    str(ROOT / ".programs" / "bin" / "prometheus"),
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        wait_until(self.ready, 120, "Prometheus")

    def ready(self) -> bool:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=2).close()
            return True
        return False

    def get(self, path: str, **arguments: str) -> Any:
        asked = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return json.load(answer)["data"]

    def value(self, query: str) -> float:
        found = self.get("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else 0.0

    def groups(self) -> list[dict[str, Any]]:
        return self.get("rules")["groups"]

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)


def wait_until(condition: Callable[[], Any], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.5)


# ---- a fleet --------------------------------------------------------------------------------


@contextlib.contextmanager
def agents(folder: Path) -> Iterator[None]:
    """The real agents, in one process."""
    place = folder / "agents"
    place.mkdir()
    numbers = ("0", str(AGENTS), str(A_DRIVER), str(place))
    with program("fleet_drivers.py", *numbers):
        wait_until(lambda: len(list(place.glob("*.json"))) == AGENTS, 90, "the agents")
        time.sleep(20)  # every query has committed
        yield


@contextlib.contextmanager
def copied(drivers: int, folder: Path) -> Iterator[None]:
    """So many drivers' pages, served."""
    targets = folder / "targets" / "copies.json"
    targets.unlink(missing_ok=True)
    with program("fleet_copies.py", str(drivers), str(folder)):
        wait_until(targets.exists, 60, "the copies")
        yield


@contextlib.contextmanager
def program(name: str, *arguments: str) -> Iterator[None]:
    """A program of this folder; what it started, it ends."""
    process = subprocess.Popen([sys.executable, str(ROOT / "bench" / name), *arguments])
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def learn(folder: Path) -> list[dict[str, Any]]:
    """Every series of ten drivers, recorded ones included."""
    with copied(AGENTS, folder):
        prometheus = Prometheus(folder, longest=5)
        try:
            wait_until(lambda: everything(prometheus), 180, "the first evaluation")
            series = prometheus.get("query", query='{__name__=~".*streamgauge_.+"}')["result"]
            return [*(one for one in series if not is_slice(one)), *slices(series)]
        finally:
            prometheus.stop()
            shutil.rmtree(folder / "data")


def everything(prometheus: Prometheus) -> bool:
    """Whether every query is seen, and every rule was evaluated after that."""
    return prometheus.value(f"count({MEAN})") >= AGENTS * A_DRIVER


def is_slice(one: dict[str, Any]) -> bool:
    return one["metric"]["__name__"] in SLICES


def slices(series: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """An hour's sums, which no Prometheus has after a minute."""
    for one in series:
        if one["metric"]["__name__"] == MEAN:
            for name in SLICES:
                yield {**one, "metric": {**one["metric"], "__name__": name}}


def measure(queries: int, series: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """All figures of a fleet of so many queries."""
    count = max(1, queries // A_DRIVER)
    past = give_past(series, count, folder / "data", time.time() - LOOKBACK)
    with copied(count, folder):
        prometheus = Prometheus(folder)
        try:
            wait_until(lambda: all_scraped(prometheus, queries), 180, "every driver")
            found = {"queries": queries, "drivers": count, **watch(prometheus, past)}
        finally:
            prometheus.stop()
            shutil.rmtree(folder / "data")
    took = json.loads((folder / "fetched.json").read_text())
    return {**found, "scrape_ms": 1000 * sum(took) / len(took)}


def all_scraped(prometheus: Prometheus, queries: int) -> bool:
    return prometheus.value("sum(streamgauge_query_active)") >= queries


class Times:
    """The longest time of each rule and of each group, but for the first round, which reads from disk."""

    def __init__(self) -> None:
        self._took: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self.failed: set[str] = set()

    def note(self, groups: list[dict[str, Any]]) -> None:
        """Take down what Prometheus says of its last round."""
        for group in groups:
            self._note((group["name"], ""), group)
            for number, rule in enumerate(group["rules"]):  # one alert may have many rules
                self._note((group["name"], f"{rule['name']}/{number}"), rule)
                if rule["health"] == "err":
                    self.failed.add(rule["name"])

    def _note(self, key: tuple[str, str], of: dict[str, Any]) -> None:
        if not of["lastEvaluation"].startswith("0001"):  # never
            self._took[key][of["lastEvaluation"]] = of["evaluationTime"]

    def rounds(self) -> int:
        """How many rounds there were of the group that had the fewest."""
        every = intervals()
        return min(len(self._took.get((name, ""), ())) for name in every)

    def longest(self) -> dict[tuple[str, str], float]:
        """By group and rule; the rule is empty for a whole group."""
        return {
            # ISO times sort as they follow each other.
            key: max(took for _, took in sorted(found.items())[1:])
            for key, found in self._took.items()
        }


def watch(prometheus: Prometheus, past: Past, rounds: int = 3) -> dict[str, Any]:
    """Let it work for some rounds of every group."""

    def own_series(name: str) -> str:
        return f'{name}{{instance="127.0.0.1:{prometheus.port}"}}'

    def own(name: str) -> float:
        return prometheus.value(own_series(name))

    wait_until(lambda: own("process_cpu_seconds_total"), 60, "its own figures")
    cpu, began = own("process_cpu_seconds_total"), time.monotonic()
    times = Times()

    def noted() -> bool:
        times.note(prometheus.groups())
        time.sleep(1.5)
        return times.rounds() >= rounds

    wait_until(noted, 6 * LONGEST, f"{rounds} rounds")
    assert not times.failed, f"rules that fail: {sorted(times.failed)}"
    of = prometheus.value
    return {
        **shares(times.longest()),
        "series": int(own("prometheus_tsdb_head_series")),
        "scraped": int(of('sum(scrape_samples_scraped{job="spark-streams"})')),
        "past_samples": past.samples,
        "memory_mib": own("process_resident_memory_bytes") / 2**20,
        "cores": (own("process_cpu_seconds_total") - cpu) / (time.monotonic() - began),
        "missed": int(of(f"sum({own_series('prometheus_rule_group_iterations_missed_total')})")),
        "firing": int(of('count(ALERTS{alertstate="firing",severity!="none"})')),
        "down": int(of('count(up{job="spark-streams"} == 0)')),
    }


def shares(took: dict[tuple[str, str], float]) -> dict[str, Any]:
    """The slowest rule and the slowest group, each against its interval."""
    every = intervals()
    share = {key: seconds / every[key[0]] for key, seconds in took.items()}
    for key in sorted(took, key=share.__getitem__, reverse=True)[:40]:
        print(f"{share[key]:.4f} {took[key]:.3f} s {' '.join(key)}", file=sys.stderr)
    rule = max((key for key in share if key[1]), key=share.__getitem__)
    group = max((key for key in share if not key[1]), key=share.__getitem__)
    return {
        "rule": rule[1].partition("/")[0],
        "rule_seconds": took[rule],
        "rule_share": share[rule],
        "group": group[0],
        "group_seconds": took[group],
        "group_share": share[group],
        "load": sum(share[key] for key in share if not key[1]),
    }


ROWS = {  # figure and its form
    "drivers": ("drivers", "{:,.0f}"),
    "scraped": ("series of the agents", "{:,.0f}"),
    "series": ("series in Prometheus", "{:,.0f}"),
    "memory_mib": ("Prometheus' memory, MiB", "{:,.0f}"),
    "cores": ("processors that Prometheus uses", "{:.2f}"),
    "scrape_ms": ("one scrape of a real agent, mean, ms", "{:.0f}"),
    "rule_seconds": ("the slowest rule, s", "{:.2f}"),
    "rule_share": ("the slowest rule ÷ its interval", "{:.3f}"),
    "group_seconds": ("all rules of the slowest group, s", "{:.2f}"),
    "group_share": ("all rules of the slowest group ÷ its interval", "{:.3f}"),
    "missed": ("rounds that Prometheus missed", "{:.0f}"),
}


def table(lines: list[dict]) -> str:
    """The figures as a table, one column per size."""
    sizes = [line for line in lines if "drivers" in line]
    heads = " | ".join(f"{size['queries']:,} queries" for size in sizes)
    out = [f"| | {heads} |", "|---|" + "---:|" * len(sizes)]
    for key, (name, form) in ROWS.items():
        out.append(f"| {name} | {' | '.join(form.format(size[key]) for size in sizes)} |")
    last = sizes[-1]
    return "\n".join([
        *out, "",
        f"At {last['queries']:,} queries the slowest rule is `{last['rule']}`, the slowest group `{last['group']}`.",
    ])  # fmt: skip


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with agents(folder):
            series = learn(folder)
            for size in sizes:
                found = measure(size, series, folder)
                name = f"{size:,} queries: the slowest"
                report(f"{name} rule ÷ its interval", found["rule_share"], RULE_SHARE, **found)
                report(
                    f"{name} group ÷ its interval", found["group_share"], GROUP_SHARE,
                    group=found["group"],
                )  # fmt: skip


if __name__ == "__main__":
    os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
    main([int(word) for word in sys.argv[1:]] or [1000, 10_000])
