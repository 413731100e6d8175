"""The thread from a metric to its trace to its log line."""

import structlog
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from stage import Life, feed
from theatre import ids_of_batch

from streamgauge.exporters.traces import ids as span_ids


def _exemplars(agent):
    text = generate_latest(agent.registry).decode()
    return [
        sample.exemplar
        for family in text_string_to_metric_families(text)
        if family.name == "streamgauge_batch_duration_seconds"
        for sample in family.samples
        if sample.exemplar
    ]


def test_exemplar_names_the_trace_of_its_batch(agent, tmp_path):
    """On `batch_duration_seconds`, in OpenMetrics form, with the value and the time of the batch."""
    made = agent(traces=str(tmp_path / "t.jsonl"))
    life = Life()
    feed(made, life.started(), life.progress())
    (exemplar,) = _exemplars(made)
    ids = ids_of_batch(life.run_id, 0)
    assert exemplar.labels == {"trace_id": ids.trace_id, "span_id": ids.span_id}
    assert exemplar.value == 0.5
    assert float(exemplar.timestamp) == 1_794_787_201.5


def test_no_traces_no_exemplars(agent):
    """Nothing to point to."""
    made = agent()
    life = Life()
    feed(made, life.started(), life.progress())
    assert _exemplars(made) == []


def test_unsampled_batch_has_no_exemplar(agent, tmp_path, monkeypatch):
    """An exemplar that leads nowhere is worse than none."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    made = agent(traces=str(tmp_path / "t.jsonl"))
    life = Life()
    feed(made, life.started(), life.progress())
    assert _exemplars(made) == []


def test_log_lines_carry_the_ids(agent, tmp_path):
    """Start, batch and failure, each of its own span."""
    made_lines = structlog.testing.CapturingLogger()
    logger = structlog.wrap_logger(made_lines, processors=[])
    made = agent(traces=str(tmp_path / "t.jsonl"), logger=logger)
    life = Life()
    feed(made, life.started(), life.progress(), life.terminated("x.Y: z"))
    lines = {call.kwargs.get("event"): call.kwargs for call in made_lines.calls}
    run = life.run_id
    started = span_ids.to_hex(
        span_ids.trace_id(run, "start"), span_ids.span_id(run, "start", "start")
    )
    told = {
        words: (lines[words]["trace_id"], lines[words]["span_id"])
        for words in ("query started", "batch", "query failed")
    }
    assert told == {
        "query started": started,
        "batch": ids_of_batch(run, 0),
        "query failed": ids_of_batch(run, 1),
    }
