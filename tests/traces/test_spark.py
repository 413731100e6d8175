"""Traces of a real Spark: a stateful query that fails and is started again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from theatre import ids_of_batch

from streamgauge.exporters.traces import ids as span_ids
from streamgauge.model.decoder import decode
from streamgauge.model.phases import ENGINE_ORDER

P = "spark.streaming."


def run_job(folder, **environ):
    """Run the job in a process of its own; what it printed."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spark_job.py")), str(folder)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={**os.environ, **environ},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def batches_of(job):
    """(run id, progress event) of every batch that ended well."""
    return [(run["run_id"], progress) for run in job["runs"] for progress in run["progress"]]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the job printed, and its spans by (trace id, name)."""
    folder = tmp_path_factory.mktemp("traced")
    file = folder / "traces.jsonl"
    job = run_job(folder / "job", STREAMGAUGE_TRACES=str(file))
    spans = {}
    for line in file.read_text().splitlines():
        for group in json.loads(line)["resourceSpans"]:
            for span in group["scopeSpans"][0]["spans"]:
                span["said"] = {
                    a["key"]: next(iter(a["value"].values())) for a in span["attributes"]
                }
                span["resource"] = {
                    a["key"]: next(iter(a["value"].values()))
                    for a in group["resource"]["attributes"]
                }
                spans[span["traceId"], span["name"]] = span
    return job, spans


def _length(span):
    return (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) // 1_000_000


@pytest.mark.spark
@pytest.mark.timeout(420)
def test_every_batch_is_a_trace_with_sparks_own_durations(told):
    """To the millisecond, and phases in engine order."""
    job, spans = told
    batches = batches_of(job)
    assert [progress["batchId"] for _, progress in batches][:3] == [0, 1, 2]
    for run_id, progress in batches:
        trace, span_id = ids_of_batch(run_id, progress["batchId"])
        root = spans[trace, "batch orders"]
        event = decode(json.dumps(progress))
        assert root["spanId"] == span_id
        assert int(root["startTimeUnixNano"]) == round(event.at * 1000) * 1_000_000
        assert _length(root) == progress["durationMs"]["triggerExecution"]
        phases = [spans[trace, phase] for phase in ENGINE_ORDER if phase in event.phases]
        assert [_length(span) for span in phases] == [
            round(event.phases[phase] * 1000) for phase in ENGINE_ORDER if phase in event.phases
        ]
        assert phases == sorted(phases, key=lambda span: int(span["startTimeUnixNano"]))
        assert all(span["parentSpanId"] == span_id for span in phases)


@pytest.mark.spark
@pytest.mark.timeout(420)
def test_failure_is_on_the_batch_that_failed(told):
    """Batch 1 of the first run, found in Spark's own offset log; masked."""
    job, spans = told
    trace, _ = ids_of_batch(job["runs"][0]["run_id"], 1)
    root = spans[trace, "batch orders"]
    assert root["status"]["code"] == 2
    assert root["status"]["message"] == "ValueError: the warehouse said no, password=***"
    assert root["said"]["error.type"]
    (event,) = root["events"]
    assert event["name"] == "exception"
    assert "hunter2" not in json.dumps(root)


@pytest.mark.spark
@pytest.mark.timeout(420)
def test_recovery_is_a_story(told):
    """The second start says what came before, and that batch 1 ran again."""
    job, spans = told
    first, second = (run["run_id"] for run in job["runs"])
    said = spans[f"{span_ids.trace_id(second, 'start'):032x}", "start orders"]["said"]
    assert said[f"{P}start.kind"] == "restart"
    assert said[f"{P}start.last_outcome"] == "failed"
    assert said[f"{P}start.batch.id"] == "1"
    assert said[f"{P}start.replayed"] is True
    trace, _ = ids_of_batch(second, 1)
    assert spans[trace, "batch orders"]["said"][f"{P}batch.replayed"] is True
    earlier = spans[f"{span_ids.trace_id(first, 'start'):032x}", "start orders"]["said"]
    assert earlier[f"{P}start.kind"] == "first"


@pytest.mark.spark
@pytest.mark.timeout(420)
def test_users_spans_are_below_their_batches(told):
    """Also below the batch that failed; the global provider is still nobody's."""
    job, _ = told
    runs = [run["run_id"] for run in job["runs"]]
    ended = [progress["batchId"] for _, progress in batches_of(job)]
    expected = [(runs[0], 0), (runs[0], 1), *((runs[1], number) for number in ended[1:])]
    parents = [(span["batch"], span["parent"]) for span in job["user_spans"]]
    assert parents == [(n, ids_of_batch(run, n).span_id) for run, n in expected]
    assert job["provider_is_users"] is False


@pytest.mark.spark
@pytest.mark.timeout(420)
def test_resource_says_who_speaks(told):
    """Application, its id, Spark's version, host."""
    job, spans = told
    resource = next(iter(spans.values()))["resource"]
    assert resource["service.name"] == "traced-shop"
    assert resource["service.instance.id"] == resource["spark.app.id"] == job["app_id"]
    assert resource["spark.version"] == job["spark_version"]
    assert resource["host.name"]


@pytest.mark.spark
@pytest.mark.timeout(420)
def test_every_span_is_counted(told):
    """As many exported as there are in the file, and no errors."""
    job, spans = told
    assert job["spans"] == {"exported": len(spans)}
    assert job["errors"] == {}
