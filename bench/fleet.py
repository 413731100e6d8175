"""A fleet without Spark: real agents, a real Prometheus with the shipped rules and a week behind it.

    python bench/fleet.py [QUERIES ...]      10, 100 and 1,000 unless named; ten a driver

Prometheus scrapes the agents until each rule has been evaluated; then it is stopped, every series that a rule
looks back at gets as much past as the rule looks back, and it is started again: a rule over a week costs what it
will cost in a week. Figures are taken from Prometheus itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
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
from fleet_drivers import STARTED
from past import Past
from stage import free_port

RULES = ROOT / "grafana" / "alerts" / "rules" / "streamgauge.rules.yml"
A_DRIVER, A_PROCESS = 10, 10  # queries, drivers
SCRAPE, EVALUATE = 15, 30
SHARE = 0.1  # of its interval that a rule may take
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


# ---- Prometheus -----------------------------------------------------------------------------


class Prometheus:
    """A real one in a folder; `seconds` is the rules' interval, the shipped one unless named."""

    def __init__(self, folder: Path, seconds: int = EVALUATE) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        rules = folder / "rules.yml"
        rules.write_text(RULES.read_text().replace('interval: "30s"', f'interval: "{seconds}s"'))
        config = folder / "prometheus.yml"
        config.write_text(f"""
global: {{scrape_interval: {min(SCRAPE, seconds)}s, scrape_timeout: {min(10, seconds)}s}}
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
        wait_until(self.ready, 60, "Prometheus")

    def ready(self) -> bool:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=2).close()
            return True
        return False

    def get(self, path: str, **arguments: str) -> Any:
        asked = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)["data"]

    def value(self, query: str) -> float:
        found = self.get("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else 0.0

    def rules(self) -> Iterator[dict]:
        for group in self.get("rules")["groups"]:
            yield from group["rules"]

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)


def wait_until(condition: Callable[[], Any], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.5)


# ---- a past ---------------------------------------------------------------------------------


def windows() -> dict[str, float]:
    """How far some rule looks back at each series, by name: range, offset or both."""
    found: dict[str, float] = {}
    back = r"(?:\{[^}]*\})?(?:\[(\d+[smhdw])(?::\w*)?\])?(?: offset (\d+[smhdw]))?"
    for name, window, offset in re.findall(
        rf"([a-z_:0-9]*streamgauge_\w[\w:]*){back}", RULES.read_text()
    ):
        length = sum(int(part[:-1]) * UNITS[part[-1]] for part in (window, offset) if part)
        found[name] = max(found.get(name, 0), length)
    return {name: length for name, length in found.items() if length}


def give_past(series: list[dict[str, Any]], folder: Path, until: float) -> Past:
    """A block with what rules look back at."""
    past, looked_at = Past(until), windows()
    named: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in series:
        if one["metric"]["__name__"] in looked_at:
            named[one["metric"]["__name__"]].append(one)
    for name, many in sorted(named.items()):
        step = EVALUATE if ":" in name else SCRAPE
        count = max(2, int(looked_at[name] / step))
        kinds: dict[float, list[dict[str, str]]] = defaultdict(list)
        for one in many:
            value = float(one["value"][1])
            kinds[value if value in {0, 1, STARTED} else 2.0].append(one["metric"])
        for value, labels in kinds.items():
            past.add(labels, shape(name, value, count), step)
    past.write(folder)
    return past


def shape(name: str, now: float, count: int) -> list[float]:
    """Values such as the series has: some stand, a counter climbs, a watermark moves, a duration wavers."""
    if now in {0, 1, STARTED}:
        return [now] * count
    if name.endswith(("_total", "_sum", "_count")):
        return [n / count for n in range(count)]
    if "watermark" in name or "event_time" in name:
        return [time.time() - SCRAPE * n for n in range(count, 0, -1)]
    chance = random.Random(name)
    return [now + chance.random() / 10 for _ in range(count)]


# ---- a fleet --------------------------------------------------------------------------------


@contextlib.contextmanager
def drivers(count: int, folder: Path) -> Iterator[None]:
    """So many drivers, ten a process: a hundred would wait for one lock of Python's."""
    targets = folder / "targets"
    targets.mkdir()
    program = str(ROOT / "bench" / "fleet_drivers.py")
    processes = []
    try:
        for first in range(0, count, A_PROCESS):
            numbers = (str(first), str(min(count, first + A_PROCESS)), str(A_DRIVER))
            processes.append(subprocess.Popen([sys.executable, program, *numbers, str(targets)]))
        wait_until(lambda: len(list(targets.glob("*.json"))) == count, 90, "the drivers")
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait(10)


def measure(queries: int) -> dict[str, Any]:
    """All figures of a fleet of so many queries."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        count = max(1, queries // A_DRIVER)
        with drivers(count, folder):
            began = time.time()
            first = Prometheus(folder, seconds=5)
            try:
                wait_until(lambda: everything(first, queries), 120, "the first evaluation")
                series = first.get("query", query='{__name__=~".*streamgauge_.+"}')["result"]
            finally:
                first.stop()
            past = give_past(series, folder / "data", began)
            second = Prometheus(folder)
            try:
                return {"queries": queries, "drivers": count, **watch(second, past)}
            finally:
                second.stop()


def everything(prometheus: Prometheus, queries: int) -> bool:
    """Whether every query is seen, and every rule was evaluated after that."""
    seen = prometheus.value("sum(query:streamgauge_active:max)") >= queries
    recorded = prometheus.value("count(query:streamgauge_batch_duration:mean15m)")
    return seen and recorded >= queries


def watch(prometheus: Prometheus, past: Past, seconds: float = 3.5 * EVALUATE) -> dict[str, Any]:
    """Let it work for some rounds; the longest time of each rule counts, the first after the start not."""
    times: dict[str, dict[str, float]] = defaultdict(dict)

    def own_series(name: str) -> str:
        return f'{name}{{instance="127.0.0.1:{prometheus.port}"}}'

    def own(name: str) -> float:
        return prometheus.value(own_series(name))

    wait_until(lambda: own("process_cpu_seconds_total"), 60, "its own figures")
    cpu = own("process_cpu_seconds_total")
    began, deadline = time.monotonic(), time.monotonic() + seconds
    bad: set[str] = set()
    while time.monotonic() < deadline:
        for number, rule in enumerate(prometheus.rules()):
            name = f"{rule['name']}/{number}"  # one alert may have many rules
            if not rule["lastEvaluation"].startswith("0001"):  # never
                times[name][rule["lastEvaluation"]] = rule["evaluationTime"]
            if rule["health"] == "err":
                bad.add(name)
        time.sleep(2)
    assert not bad, f"rules that fail: {sorted(bad)}"
    # ISO times sort as they follow each other. The first reads everything from disk, once.
    slowest = {
        name: max(took for _, took in sorted(found.items())[1:]) for name, found in times.items()
    }
    worst = max(slowest, key=slowest.__getitem__)

    of = prometheus.value
    alerts = prometheus.get("query", query='count by (alertname) (ALERTS{alertstate="firing"})')
    print(
        sorted(((took, name) for name, took in slowest.items()), reverse=True)[:12], file=sys.stderr
    )
    print([(a["metric"]["alertname"], a["value"][1]) for a in alerts["result"]], file=sys.stderr)
    return {
        "series": int(own("prometheus_tsdb_head_series")),
        "scraped": int(of('sum(scrape_samples_scraped{job="spark-streams"})')),
        "past_samples": past.samples,
        "memory_mib": own("process_resident_memory_bytes") / 2**20,
        "cores": (own("process_cpu_seconds_total") - cpu) / (time.monotonic() - began),
        "scrape_ms": of('avg(scrape_duration_seconds{job="spark-streams"})') * 1000,
        "scrape_worst_ms": of('max(scrape_duration_seconds{job="spark-streams"})') * 1000,
        "rule": worst.partition("/")[0],
        "rule_seconds": slowest[worst],
        "rules_seconds": sum(slowest.values()),
        "missed": int(of(f"sum({own_series('prometheus_rule_group_iterations_missed_total')})")),
        "firing": int(of('count(ALERTS{alertstate="firing",severity!="none"})')),
        "down": int(of('count(up{job="spark-streams"} == 0)')),
    }


ROWS = {  # figure, its form, and whether ten times the queries make ten times of it
    "drivers": ("drivers", "{:,.0f}", True),
    "scraped": ("series of the agents", "{:,.0f}", True),
    "series": ("series in Prometheus", "{:,.0f}", True),
    "memory_mib": ("Prometheus' memory, MiB", "{:,.0f}", True),
    "cores": ("Prometheus' use of a core", "{:.2f}", True),
    "scrape_ms": ("one scrape, mean, ms", "{:.0f}", False),
    "scrape_worst_ms": ("one scrape, longest, ms", "{:.0f}", False),
    "rules_seconds": ("all rules, one round, s", "{:.2f}", True),
    "rule_seconds": ("the slowest rule, s", "{:.2f}", True),
    "value": ("the slowest rule ÷ its interval", "{:.3f}", True),
    "missed": ("rounds that Prometheus missed", "{:.0f}", False),
}


def table(lines: list[dict]) -> str:
    """The figures as a table, a column a size, and the line drawn on to ten times as many."""
    *_, before, last = lines
    heads = [f"{line['queries']:,} queries" for line in lines]
    heads.append(f"*{10 * last['queries']:,}*")
    out = [f"| | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for key, (name, form, grows) in ROWS.items():
        slope = (last[key] - before[key]) / (last["queries"] - before["queries"])
        far = last[key] + slope * 9 * last["queries"]
        cells = [form.format(line[key]) for line in lines]
        cells.append(f"*{form.format(far)}*" if grows else "")
        out.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(
        [*out, "", f"The slowest rule at {last['queries']:,} queries: `{last['rule']}`."]
    )


def main(sizes: list[int]) -> None:
    for size in sizes:
        found = measure(size)
        report(
            f"{size:,} queries: the slowest rule ÷ its interval",
            found["rule_seconds"] / EVALUATE, SHARE, **found,
        )  # fmt: skip


if __name__ == "__main__":
    os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
    main([int(word) for word in sys.argv[1:]] or [10, 100, 1000])
