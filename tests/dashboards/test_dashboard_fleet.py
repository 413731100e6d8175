"""The fleet board with 200 queries against the same with 20, on a real Prometheus."""

from __future__ import annotations

import json
import time

import pytest
from promql_tree import fill
from recording import Prometheus
from recording_past import create_blocks
from stage import ROOT

from streamgauge.grafana.dashboards.promql import VERDICTS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

FILE = ROOT / "grafana" / "dashboards" / "files" / "dashboards" / "streamgauge-fleet.json"
FLEETS = {"twenty": 20, "two-hundred": 200}
IDLE = 1  # every tenth query is idle and pages all the same
STEP, SPAN = 30, 3600
BOUNDS = (
    "0.01",
    "0.05",
    "0.1",
    "0.25",
    "0.5",
    "1",
    "2",
    "5",
    "10",
    "30",
    "60",
    "300",
    "3600",
    "+Inf",
)
GAUGES = {
    "streamgauge_freshness_lag_seconds": 4.0,
    "streamgauge_watermark_timestamp_seconds": 1.7e9,
    "streamgauge_state_memory_bytes": 1e8,
    "query:streamgauge_active:max": 1.0,
    "query:streamgauge_alerting:info": 1.0,
    "query:streamgauge_backlog:rows": 500.0,
    "query:streamgauge_freshness_target:seconds": 900.0,
    "query:streamgauge_batch_duration:mean15m": 2.0,
    "query:streamgauge_batch_duration:avg1w": 1.5,
    "query:streamgauge_silence:seconds": 3.0,
    "query:streamgauge_silence_budget:seconds": 300.0,
    "query:streamgauge_started:timestamp_seconds": 1.7e9,
    "streamgauge_query_started_timestamp_seconds": 1.7e9,
}


def identities():
    """Labels of every query of both fleets."""
    for job, count in FLEETS.items():
        for number in range(count):
            yield number, f'job="{job}",app="app-{number % 7}",query="query-{number:03d}"'


def families(moments):
    """OpenMetrics text of the series that the board reads, of both fleets."""
    for name, value in GAUGES.items():
        yield f"# TYPE {name} gauge"
        for _, labels in identities():
            yield from (f"{name}{{{labels}}} {value} {at}" for at in moments)
    yield "# TYPE ALERTS gauge"
    for number, labels in identities():
        severity = "critical" if number % 10 == IDLE else "warning"
        head = (
            f'ALERTS{{alertname="SparkStreamX",alertstate="firing",severity="{severity}",{labels}}}'
        )
        yield from (f"{head} 1 {at}" for at in moments)
    yield "# TYPE streamgauge_query_state gauge"
    states = [state for state in VERDICTS if state != "vanished"]
    for number, labels in identities():
        for index, state in enumerate(states):
            value = int(index == number % len(states))
            head = f'streamgauge_query_state{{{labels},state="{state}"}} {value}'
            yield from (f"{head} {at}" for at in moments)
    yield "# TYPE streamgauge_input_rows counter"
    for _, labels in identities():
        head = f"streamgauge_input_rows_total{{{labels}}}"
        yield from (f"{head} {100 * n} {at}" for n, at in enumerate(moments))
    yield "# TYPE streamgauge_batch_duration_seconds histogram"
    for _, labels in identities():
        for index, bound in enumerate(BOUNDS):
            head = f'streamgauge_batch_duration_seconds_bucket{{{labels},le="{bound}"}}'
            yield from (f"{head} {n * (index + 1)} {at}" for n, at in enumerate(moments))
    yield "# EOF"
    yield ""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A Prometheus with an hour of both fleets, and when that hour ended."""
    folder = tmp_path_factory.mktemp("fleet")
    end = int(time.time()) // STEP * STEP - 3 * 3600
    create_blocks(list(families(range(end - SPAN, end + 1, STEP))), folder / "data")
    with Prometheus(folder, folder / "data", {"global": {"scrape_interval": "30s"}}) as running:
        yield running, end


def timed(fleet, target, job):
    """Seconds that a query takes, the best of seven, and the number of series it returns."""
    prometheus, end = fleet
    expr = fill(target["expr"], job=job, __rate_interval="2m")
    times = []
    for _ in range(7):
        began = time.perf_counter()
        if target["instant"]:
            found = prometheus.ask(expr, end)
        else:
            found = prometheus.ask_range(expr, end - SPAN, end, STEP)
        times.append(time.perf_counter() - began)
    return min(times), len(found)


def test_heaviest_query_grows_no_faster_than_the_fleet(fleet):
    """Less than twice the time for each series returned, with ten times the queries."""
    targets = [
        (panel["title"], target)
        for panel in json.loads(FILE.read_text())["panels"]
        for target in panel.get("targets", [])
    ]
    large = {}
    for index, (title, target) in enumerate(targets):
        seconds, count = timed(fleet, target, "two-hundred")
        large[index] = (seconds, count, title)
    heaviest = max(large, key=lambda index: large[index][0])
    seconds, count, title = large[heaviest]
    small, few = timed(fleet, targets[heaviest][1], "twenty")
    assert (few, count) == (20, 200), title
    assert seconds / count < 2 * small / few, (title, seconds, small)


def column(fleet, ref):
    """A column of the table by query."""
    prometheus, end = fleet
    (table,) = [
        p for p in json.loads(FILE.read_text())["panels"] if p["title"] == "Queries, worst first"
    ]
    (expr,) = [t["expr"] for t in table["targets"] if t["refId"] == ref]
    found = prometheus.ask(fill(expr, job="two-hundred"), end)
    return {one["metric"]["query"]: float(one["value"][1]) for one in found}


def test_table_names_every_query(fleet):
    """200 lines, each with a verdict; failed ones have the largest number, so they come first."""
    verdicts = sorted(column(fleet, "A").values(), reverse=True)
    assert len(verdicts) == 200
    assert verdicts[:20] == [9.0] * 20


def test_idle_query_that_pages_stands_above_a_failed_one_that_does_not(fleet):
    """The alert is sorted by before the verdict."""
    alerts, verdicts = column(fleet, "B"), column(fleet, "A")
    order = sorted(verdicts, key=lambda query: (alerts[query], verdicts[query]), reverse=True)
    assert {verdicts[query] for query in order[:20]} == {float(IDLE)}
    assert verdicts[order[20]] == 9.0
