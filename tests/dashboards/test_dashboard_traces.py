"""The Query board's table of traces, asked of a real Jaeger as Grafana's data source asks it."""

from __future__ import annotations

import json
import shlex
import urllib.parse
import urllib.request

import pytest
from collectors import jaeger
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from stage import wait_for
from theatre import T0, Stage

from streamgauge.cli import main
from streamgauge.grafana.dashboards.commands import panels_of

pytestmark = pytest.mark.integration

UNNAMED = "0a1b2c3d-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A Jaeger with the spans of three queries of one application: a start and two batches of each."""
    with jaeger(tmp_path_factory.mktemp("jaeger")) as running:
        sender = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{running.http}/v1/traces")
        for name in ("orders", "orders by day", None):
            stage = Stage(name=name)
            if name is None:
                stage.life.query_id = UNNAMED
            stage.start()
            stage.batch()
            stage.batch()
            sender.export(stage.spans())
        yield running
        sender.shutdown()


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """What the panel asks in the form for Jaeger."""
    folder = tmp_path_factory.mktemp("boards")
    assert main(["dashboards", "export", str(folder), "--trace-store", "jaeger"]) == 0
    board = json.loads((folder / "streamgauge-query.json").read_text())
    (panel,) = [one for one in panels_of(board) if one["title"].startswith("Traces of")]
    (found,) = panel["targets"]
    return found


def ask(store, search, query):
    """The names of the traces' first spans; the tags are logfmt, which the data source sends as JSON."""
    words = shlex.split(search["tags"].replace("$query", query))
    parameters = {
        "service": search["service"].replace("$app", "shop"),
        "tags": json.dumps(dict(word.split("=", 1) for word in words)),
        "limit": search["limit"],
        "start": int((T0 - 60) * 1e6),
        "end": int((T0 + 600) * 1e6),
        "lookback": "custom",
    }
    text = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"http://127.0.0.1:{store.query}/api/traces?{text}") as answer:
        traces = json.load(answer)["data"]
    return sorted(
        span["operationName"]
        for trace in traces
        for span in trace["spans"]
        if not any(one["refType"] == "CHILD_OF" for one in span["references"])
    )


@pytest.mark.parametrize("query", ["orders", "orders by day"])
def test_panel_finds_batches_and_starts_of_its_query(store, search, query):
    """And none of another query, even if the one's name is the beginning of the other's."""
    wanted = [f"batch {query}", f"batch {query}", f"start {query}"]
    wait_for(lambda: ask(store, search, query) == wanted, 10, "the traces")
    assert set(search) == {"datasource", "limit", "queryType", "refId", "service", "tags"}


def test_panel_finds_a_query_that_has_no_name(store, search):
    """By its label: its spans are named `batch` and `start` alone."""
    label = f"unnamed-{UNNAMED[:8]}"
    wait_for(lambda: ask(store, search, label) == ["batch", "batch", "start"], 10, "the traces")


def test_panel_finds_nothing_of_a_query_that_sent_nothing(store, search):
    """The search is one: without a match there is no trace."""
    assert ask(store, search, "order") == []
