"""Every panel against a real Prometheus that was filled by a real Spark run with every fault of the lab.

The run takes nine minutes, once for the module; `artifacts/recording` keeps it for `make screenshots`.
"""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "grafana" / "preview"))

import itertools

from grafana_code import faults, report
from preview import Preview, panels_of
from promql_tree import fill
from recorded_faults import NOT_RECORDED, RECORDED, STEP, faults_of_lab
from recording import load, record, replay
from stage import ROOT

from streamgauge.grafana.dashboards.catalogue import BOARDS

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

FILES = ROOT / "grafana" / "dashboards" / "files" / "dashboards"
CONDITIONS = {panel.title: panel.condition for board in BOARDS for panel in board.panels}
TARGETS = [
    pytest.param(panel, target, id=f"{path.stem}: {panel['title']} {target['refId']}")
    for path in sorted(FILES.glob("*.json"))
    for panel in panels_of(json.loads(path.read_text()))
    for target in panel.get("targets", [])
    if "expr" in target
]
# Which queries of the run produce each condition; the panel is asked about these alone.
PRODUCED = {
    "": ".+",
    "an alert is firing": ".+",
    "there is a day of history": "orders|payments|searches|clicks|sessions|labels",
    "there is a week of history": "labels",
    "the query is running and the rules are loaded": "orders",
    "a batch is running, on classic Spark": "clicks",
    "the verdict is a bad one": "clicks|exports",
    "the agents report their clock": ".+",
    "the source tells how far it is: Kafka, or another that reports its latest offset": "clicks",
    "the source tells how far it is, and less comes in than is read": "clicks",
    "the probe looks at the source itself": "clicks",
    "the query uses df.observe()": "clicks",
    "the query failed in the chosen time": "exports",
    "the sink tells how many rows it wrote": "nightly",
    "the query is stateful": "orders",
    "the query has a watermark": "orders",
    "the query is stateful and reads rows": "orders",
    "the state store is RocksDB": "orders",
    "the state store is RocksDB and reads blocks": "orders",
    "the query is stateful, on Spark 4.1 or newer": "orders",
    "the state store is the HDFS-backed one, Spark's default": "sessions",
    "the sink is one whose manners are known: files, Delta, Kafka, memory, console": "payments",
    "the agent can read the checkpoint": "orders",
    "a rule is broken": "orders",
    "an alert fired for five minutes in the last week": ".+",
    "a part of the agent failed": ".+",
    "batches are traced, and Grafana knows the trace store": "orders",
}


@pytest.fixture(scope="module")
def recording():
    """A fresh run; with RECORDING=kept, for a second look, the one that the last left."""
    return load() if os.environ.get("RECORDING") == "kept" else record()


@pytest.fixture(scope="module")
def prometheus(recording, tmp_path_factory):
    """A Prometheus on what the run left."""
    with replay(recording, tmp_path_factory.mktemp("replay")) as running:
        yield running


def test_every_fault_of_the_lab_has_a_sign():
    """Each test of the lab names its fault, and each name is in the recording's table or left out by name."""
    named = faults_of_lab()
    recorded = {one.fault for one in RECORDED}
    assert all(named.values()), named
    assert {name for names in named.values() for name in names} == recorded | NOT_RECORDED
    assert not recorded & NOT_RECORDED


@pytest.mark.parametrize("one", RECORDED, ids=lambda one: one.fault)
def test_fault_of_the_lab_is_in_the_recording(one, recording, prometheus):
    """Its sign is there at some moment of the run."""
    assert prometheus.ask_range(one.expr, recording.begin, recording.end, STEP), one.expr


def test_every_condition_is_produced():
    """A panel with a condition that the run does not produce would never be tested."""
    assert {panel.condition for board in BOARDS for panel in board.panels} == set(PRODUCED)


@pytest.mark.parametrize(("panel", "target"), TARGETS)
def test_panel_has_data(panel, target, recording, prometheus):
    """At least one number, asked for as Grafana asks."""
    query = PRODUCED[CONDITIONS[panel["title"]]]
    span = f"{recording.end - recording.begin:.0f}s"
    expr = fill(target["expr"], query=query, __rate_interval="20s", __range=span)
    if target["instant"]:
        found = prometheus.ask(expr, recording.end)
        values = [float(one["value"][1]) for one in found]
    else:
        found = prometheus.ask_range(expr, recording.begin, recording.end, 5)
        values = [float(value) for one in found for _, value in one["values"]]
    assert any(math.isfinite(value) for value in values), expr


def test_conditional_panel_is_empty_without_its_condition(recording, prometheus):
    """A query without state, watermark or backlog has no such lines: the condition is a real one."""
    for board in BOARDS:
        for panel in board.panels:
            if panel.condition.startswith(
                ("the state store is RocksDB", "the query has a watermark")
            ):
                expr = fill(panel.targets[0].expr, query="searches", __rate_interval="20s")
                assert not prometheus.ask(expr, recording.end), panel.title


def test_grafana_s_own_code_finds_nothing_wrong(recording, prometheus, tmp_path):
    """As test_dashboard_grafana, on the fresh run: overrides, absent values, rows, texts and names."""
    assert faults(report(Preview(prometheus.url, recording.begin, recording.end), tmp_path)) == []


@pytest.mark.parametrize("mark", ["Starts", "Failures", "Replays", "Alerts"])
def test_marks_are_found(mark, recording, prometheus):
    """Each kind of mark is in the run: starts, failures by class, replays and alerts."""
    board = json.loads((FILES / "streamgauge-query.json").read_text())
    (expr,) = [one["expr"] for one in board["annotations"]["list"] if one["name"] == mark]
    asked = fill(expr, __rate_interval="20s", __interval="5s")
    found = prometheus.ask_range(asked, recording.begin, recording.end, 5)
    assert found
    if mark in {"Failures", "Replays"}:  # at one step each: two neighbours would be a region
        for one in found:
            times = [at for at, _ in one["values"]]
            assert all(later - at > 5 for at, later in itertools.pairwise(times)), times
    if mark == "Failures":
        assert {one["metric"]["error_class"] for one in found} - {"", "other"}
    if mark == "Starts":
        times = [float(v) / 1000 for one in found for _, v in one["values"]]
        assert all(recording.begin - 600 < at < recording.end for at in times)


def test_exemplars_lead_to_traces(recording, prometheus):
    """The heatmap's dots carry the id of a trace that was exported."""
    board = json.loads((FILES / "streamgauge-query.json").read_text())
    (panel,) = [one for one in board["panels"] if one["type"] == "heatmap"]
    expr = fill(panel["targets"][0]["expr"], query="orders", __rate_interval="20s")
    found = prometheus.get("query_exemplars", query=expr, start=recording.begin, end=recording.end)
    ids = {one["labels"]["trace_id"] for series in found for one in series["exemplars"]}
    assert ids
    traces = (recording.folder / "work" / "traces.jsonl").read_text()
    assert all(one in traces for one in ids)


def test_traces_panel_asks_for_spans_that_are_exported(recording):
    """There is no Tempo here: what it is asked for is looked up in the spans that were sent."""
    board = json.loads((FILES / "streamgauge-query.json").read_text())
    (panel,) = [one for one in panels_of(board) if one["title"].startswith("Traces of")]
    spans = recording.folder / "work" / "traces.jsonl"
    preview = Preview("", recording.begin, recording.end, spans=spans)
    found = preview.traces(panel, {"app": "shop", "query": "orders"})
    assert {one["name"] for one in found} == {"batch orders"}
    assert not preview.traces(panel, {"app": "shop", "query": "order"})


def test_table_of_the_fleet_has_the_worst_first(recording, prometheus):
    """The columns that it is sorted by are largest for what is in most trouble."""
    board = json.loads((FILES / "streamgauge-fleet.json").read_text())
    (table,) = [p for p in board["panels"] if p["title"] == "Queries, worst first"]
    organize = table["transformations"][1]["options"]["renameByName"]
    fields = {title: field for field, title in organize.items()}
    rows: dict[str, list[float]] = {}
    for index, sort in enumerate(table["options"]["sortBy"]):
        (target,) = [
            t for t in table["targets"] if fields[sort["displayName"]].endswith(t["refId"])
        ]
        for one in prometheus.ask(fill(target["expr"]), recording.end):
            row = rows.setdefault(one["metric"]["query"], [0.0, 0.0])
            row[index] = float(one["value"][1])
    names = sorted(rows, key=rows.__getitem__, reverse=True)
    assert names[0] == "ledger"  # vanished
    assert names.index("exports") < names.index("clicks") < names.index("returns")
    assert names.index("exports") < names.index("invoices") < names.index("returns")
    quiet = {"visits", "audit", "audit-second"}  # idle by their verdict, and yet they page
    assert max(map(names.index, quiet)) < names.index("payments")
