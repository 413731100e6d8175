"""End to end: a real Spark job, a real trace store, and what the store's API says of it."""

import json

import pytest
from collectors import jaeger
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from test_spark import batches_of, run_job
from theatre import ids_of_batch

from streamgauge.exporters.traces import ids as span_ids
from streamgauge.model.decoder import decode
from streamgauge.model.phases import ENGINE_ORDER

P = "spark.streaming."
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["http/protobuf", "grpc"])
def seen(request, tmp_path_factory):
    """The store, after the job has sent it its traces."""
    folder = tmp_path_factory.mktemp("jaeger")
    with jaeger(folder) as store:
        port = store.grpc if request.param == "grpc" else store.http
        job = run_job(
            folder / "job",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_EXPORTER_OTLP_PROTOCOL=request.param,
        )
        yield store, job


def test_every_batch_is_there_with_its_phases_in_order(seen):
    """Durations of the progress event to the millisecond; Jaeger counts in microseconds."""
    store, job = seen
    batches = batches_of(job)
    assert len(batches) >= 3
    for run_id, progress in batches:
        event = decode(json.dumps(progress))
        spans = store.trace(ids_of_batch(run_id, event.batch_id).trace_id)
        (root,) = [span for span in spans if span["operationName"] == "batch orders"]
        assert root["duration"] == progress["durationMs"]["triggerExecution"] * 1000
        assert root["startTime"] == round(event.at * 1000) * 1000
        phases = sorted(
            (s for s in spans if s is not root),
            key=lambda s: ENGINE_ORDER.index(s["operationName"]),
        )
        assert [s["operationName"] for s in phases] == [
            p for p in ENGINE_ORDER if p in event.phases
        ]
        at = root["startTime"]
        for span in phases:
            assert span["startTime"] == at
            assert span["duration"] == round(event.phases[span["operationName"]] * 1000) * 1000
            at += span["duration"]
            assert span["references"][0]["spanID"] == root["spanID"]


def test_failed_batch_is_an_error(seen):
    """With its type and the exception event."""
    store, job = seen
    ids = ids_of_batch(job["runs"][0]["run_id"], 1)
    (root,) = store.trace(ids.trace_id)
    assert root["tags"]["error"] is True
    assert root["tags"]["otel.status_code"] == "ERROR"
    assert root["tags"]["error.type"]
    (event,) = root["logs"]
    fields = {field["key"]: field["value"] for field in event["fields"]}
    assert fields["event"] == "exception"
    assert fields["exception.message"] == "ValueError: the warehouse said no, password=***"


def test_recovery_is_there_with_the_replayed_batch(seen):
    """The start's trace, and the batch that ran again, which points to it."""
    store, job = seen
    run_id = job["runs"][1]["run_id"]
    (start,) = store.trace(f"{span_ids.trace_id(run_id, 'start'):032x}")
    assert start["operationName"] == "start orders"
    assert start["tags"][f"{P}start.replayed"] is True
    assert start["tags"][f"{P}start.batch.id"] == 1
    assert start["tags"][f"{P}start.last_outcome"] == "failed"
    failed = ids_of_batch(job["runs"][0]["run_id"], 1)
    assert failed.span_id in {reference["spanID"] for reference in start["references"]}
    spans = store.trace(ids_of_batch(run_id, 1).trace_id)
    (root,) = [span for span in spans if span["operationName"] == "batch orders"]
    assert root["tags"][f"{P}batch.replayed"] is True
    assert start["spanID"] in {reference["spanID"] for reference in root["references"]}


def test_exemplar_of_the_page_leads_to_its_trace(seen):
    """From `/metrics` in OpenMetrics form to the store: each exemplar is found there."""
    store, job = seen
    exemplars = [
        sample.exemplar
        for family in text_string_to_metric_families(job["page"])
        for sample in family.samples
        if sample.exemplar
    ]
    assert exemplars
    for exemplar in exemplars:
        spans = store.trace(exemplar.labels["trace_id"])
        (root,) = [s for s in spans if s["spanID"] == exemplar.labels["span_id"]]
        assert root["duration"] == round(exemplar.value * 1e6)


def test_store_knows_who_speaks(seen):
    """The service is the application."""
    store, job = seen
    (start,) = store.trace(f"{span_ids.trace_id(job['runs'][0]['run_id'], 'start'):032x}")
    tags = {tag["key"]: tag["value"] for tag in start["process"]["tags"]}
    assert start["process"]["serviceName"] == "traced-shop"
    assert tags["spark.app.id"] == tags["service.instance.id"] == job["app_id"]
