"""Over the wire to a real OpenTelemetry collector, by HTTP and by gRPC, and as lines in a file."""

import json
import urllib.request

import pytest
from collectors import rotel
from stage import Life, feed, wait_for
from theatre import ids_of_batch

from streamgauge.exporters.traces.otlp_file import OtlpFileExporter

BOOM = "org.apache.spark.SparkException: Job aborted\n\tat a.b.C"


def _play(made):
    life = Life()
    feed(made, life.started(), life.progress(), life.progress("2026-11-16T00:00:02.000Z"))
    feed(made, life.terminated(BOOM, "JOB_ABORTED"))
    return life


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_real_collector_gets_every_span(agent, monkeypatch, tmp_path, protocol):
    """Names, ids, times, parents, links, status and the exception arrive as they were written."""
    with rotel(tmp_path) as (collector, behind):
        port = collector.grpc if protocol == "grpc" else collector.http
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        made = agent(env="prod", code_version="1.2.3")
        life = _play(made)
        wait_for(lambda: len(behind.spans) >= 16, what="all spans")
        # They arrive before the collector's answer does, with which they count.
        wait_for(lambda: made.stats.of("spans") == {"exported": 16}, what="all to be counted")
    assert len(behind.spans) == 16
    start, batches = behind.named("start orders")[0], behind.named("batch orders")
    assert [batch["attributes"]["spark.streaming.batch.id"] for batch in batches] == [0, 1, 2]
    for number, batch in enumerate(batches):
        assert (batch["trace_id"], batch["span_id"]) == ids_of_batch(life.run_id, number)
        assert ("start", start["trace_id"], start["span_id"]) in batch["links"]
    assert ("previous_batch", batches[0]["trace_id"], batches[0]["span_id"]) in batches[1]["links"]
    (phase,) = [s for s in behind.named("add_batch") if s["trace_id"] == batches[0]["trace_id"]]
    assert phase["parent_id"] == batches[0]["span_id"]
    assert phase["end"] - phase["start"] == 400_000_000
    assert batches[0]["end"] - batches[0]["start"] == 500_000_000
    assert batches[2]["status"] == 2  # ERROR
    assert batches[2]["events"][0][1]["exception.stacktrace"] == BOOM
    (resource, *_) = behind.resources
    assert resource["service.name"] == "shop"
    assert resource["deployment.environment.name"] == "prod"
    assert resource["service.version"] == "1.2.3"
    assert resource["host.name"]


def test_users_variables_name_the_service(agent, monkeypatch, tmp_path):
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over what we know."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "checkout")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=mine,cloud.region=eu")
    file = tmp_path / "traces.jsonl"
    made = agent(traces=str(file))
    _play(made)
    made.close()
    (line,) = file.read_text().splitlines()
    pairs = json.loads(line)["resourceSpans"][0]["resource"]["attributes"]
    said = {pair["key"]: pair["value"]["stringValue"] for pair in pairs}
    assert said["service.name"] == "checkout"
    assert said["host.name"] == "mine"
    assert said["cloud.region"] == "eu"


def test_lines_of_the_file_are_otlp(agent, tmp_path):
    """A real collector takes each line as it is, and finds the same spans as over the wire."""
    file = tmp_path / "traces.jsonl"
    made = agent(traces=str(file))
    life = _play(made)
    made.close()
    assert made.stats.of("spans") == {"exported": 16}
    with rotel(tmp_path) as (collector, behind):
        for line in file.read_text().splitlines():
            request = urllib.request.Request(
                f"http://127.0.0.1:{collector.http}/v1/traces",
                line.encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=10) as answer:
                assert answer.status == 200
        wait_for(lambda: len(behind.spans) >= 16, what="all spans")
    batches = behind.named("batch orders")
    assert (batches[0]["trace_id"], batches[0]["span_id"]) == ids_of_batch(life.run_id, 0)
    assert batches[0]["attributes"]["spark.streaming.rows.input"] == 10
    assert batches[0]["attributes"]["spark.streaming.batch.has_data"] is True
    assert batches[0]["attributes"]["spark.streaming.batch.duration"] == 0.5
    assert batches[2]["status"] == 2
    assert batches[2]["words"] == "org.apache.spark.SparkException: Job aborted"
    assert batches[1]["links"][0][0] == "previous_batch"


def test_file_is_bounded(agent, tmp_path, monkeypatch):
    """At its limit it becomes `<name>.1`, which takes the place of the one before."""
    monkeypatch.setattr("streamgauge.exporters.traces.otlp_file.MOST_FILE_BYTES", 20_000)
    monkeypatch.setattr(OtlpFileExporter.__init__, "__defaults__", (20_000,))
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10000")
    file = tmp_path / "traces.jsonl"
    made = agent(traces=str(file))
    life = Life()
    feed(made, life.started(), *(life.progress() for _ in range(30)))
    made.close()
    old = tmp_path / "traces.jsonl.1"
    assert 0 < file.stat().st_size <= 20_000
    assert 0 < old.stat().st_size <= 20_000
    assert all(json.loads(line) for path in (old, file) for line in path.read_text().splitlines())


def test_file_that_can_not_be_written_is_counted(agent, tmp_path):
    """The query never notices."""
    made = agent(traces=str(tmp_path / "no" / "such" / "folder.jsonl"))
    life = Life()
    feed(made, life.started(), life.progress())
    made.close()
    assert made.stats.of("spans") == {"failed": 8}
    assert made.stats.of("errors")["traces"] == 8
