"""The evidence bundle, from its parts alone."""

from __future__ import annotations

import json

import pytest
from recorded_checkpoints import unpack

from streamgauge.checkpoint.evidence.bundle import build_evidence
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.report import make_report
from streamgauge.checkpoint.render.evidence_text import dump_evidence, render_evidence
from streamgauge.checkpoint.restart.forecast import forecast

METRICS = """# HELP streamgauge_query_info the evidence
streamgauge_query_info{app="shop",query="orders",query_id="%s",sink="delta",checkpoint="s3://k:verysecret@b/c"} 1
streamgauge_query_state{app="shop",query="orders",state="running"} 1
streamgauge_query_state{app="shop",query="orders",state="failed"} 0
streamgauge_query_starts_total{app="shop",query="orders"} 4
streamgauge_query_terminations_total{app="shop",query="orders",outcome="failed",error_class="A\\"B"} 2
streamgauge_query_state{app="shop",query="other",state="failed"} 1
process_cpu_seconds_total 3
"""


@pytest.fixture
def checkpoint(tmp_path):
    """A whole checkpoint of an aggregation, as a directory."""
    return unpack("4.3.0/agg-rocksdb", tmp_path / "orders")


def test_evidence_masks_before_it_cuts():
    """A password whose end is cut off can't be told from a host's port."""
    url = f"http://{'u' * 120}:{'hunter2' * 30}@h/"
    source = {"description": f"{'x' * 100} {url}", "endOffset": url}
    events = [json.dumps({"progress": {"sources": [source]}, "x": "y" * 7500, "z": url})]
    assert "hunter2" not in render_evidence(build_evidence(events=events))


def test_evidence_of_a_page_that_is_none_of_ours():
    """A value that is no number says nothing of the state."""
    page = (METRICS % "x").replace('state="running"} 1', 'state="running"} abc')
    assert build_evidence(metrics=page).state is None


def test_evidence_has_all_parts_and_no_secret(checkpoint):
    """Metrics, checkpoint, forecast and events of one query, in one JSON and one page."""
    read = read_checkpoint(checkpoint)
    report = make_report(read)
    progress = {
        "id": report.query_id,
        "sources": [{"description": "KafkaV2", "endOffset": {"a": 1}}],
    }
    progress["stateOperators"] = [{"operatorName": "stateStoreSave", "numRowsTotal": 3}]
    events = [
        json.dumps({"progress": progress}),
        "broken",
        "[]",
        json.dumps({"id": "another", "name": "x"}),
    ]
    evidence = build_evidence(
        metrics=METRICS % report.query_id, checkpoint=report, forecast=forecast(read), events=events
    )
    assert (evidence.query, evidence.state, evidence.missing) == ("orders", "running", [])
    assert evidence.restarts['query_terminations_total (failed, A"B)'] == "2"
    assert len(evidence.events) == 1
    text, page = dump_evidence(evidence), render_evidence(evidence)
    assert json.loads(text)["identity"]["sink"] == "delta"
    assert "verysecret" not in text + page
    for words in (
        "# Evidence: orders",
        "If it is restarted",
        "KafkaV2",
        "stateStoreSave",
        "## Checkpoint",
    ):
        assert words in page


def test_evidence_of_a_dead_query_says_what_is_missing(checkpoint):
    """A checkpoint alone, an endpoint alone, or nothing: what was not there is named."""
    alone = build_evidence(checkpoint=make_report(read_checkpoint(checkpoint)))
    assert alone.missing == ["no metrics were given", "no recorded events were given"]
    other = build_evidence(metrics=METRICS % "x", query="nosuch")
    assert "the endpoint does not know this query" in other.missing
    assert build_evidence(metrics=METRICS % "x").query == "orders"
    assert "a query" in render_evidence(build_evidence())


def test_series_of_runs_are_in_the_table():
    """What the evidence calls a query's runs are series that the agent has."""
    from streamgauge.checkpoint.evidence.bundle import _RUN_SERIES
    from streamgauge.exporters.metrics.table import METRICS

    assert {each.full_name for each in METRICS.values()} >= _RUN_SERIES
