"""Every batch a trace: true start, phases in engine order, what it did, what it points to."""

import json
from itertools import pairwise

import pytest
from opentelemetry.trace import SpanKind, StatusCode
from stage import EVENTS, recorded
from theatre import T0, Stage, ids_of_batch

from streamgauge.exporters.traces import ids as span_ids
from streamgauge.exporters.traces.attributes import MOST_OFFSET_CHARACTERS, TABLE
from streamgauge.model.decoder import decode
from streamgauge.model.events import Progress
from streamgauge.model.phases import ENGINE_ORDER, FROM_SPARK, REAL_TIME_ORDER

P = "spark.streaming."


def _ms(seconds):
    return round(seconds * 1000) * 1_000_000


def test_root_covers_the_whole_trigger():
    """`batch <query>`, INTERNAL, from the progress timestamp, as long as triggerExecution."""
    stage = Stage()
    stage.start()
    stage.batch(after=2.0, seconds=0.5)
    root = stage.only("batch orders")
    assert root.parent is None
    assert root.kind is SpanKind.INTERNAL
    assert (root.start_time, root.end_time) == (_ms(T0 + 3.0), _ms(T0 + 3.5))
    assert root.status.status_code is StatusCode.UNSET


def test_unnamed_query_has_a_plain_name():
    """Without a name there is nothing to add; ids would make a name a batch."""
    stage = Stage(name=None)
    stage.start()
    stage.batch()
    assert {"start", "batch"} <= {span.name for span in stage.spans()}


def test_phases_follow_one_another_in_engine_order():
    """Spark's durations to the millisecond; what they don't cover stays uncovered at the end."""
    stage = Stage()
    stage.start()
    stage.batch(seconds=0.5)
    spans = stage.spans()
    root = next(span for span in spans if span.name == "batch orders")
    phases = [span for span in spans if span.parent is not None]
    order = ["latest_offset", "wal_commit", "get_batch", "query_planning", "add_batch"]
    assert [span.name for span in phases] == [*order, "commit_offsets"]
    lengths = [(span.end_time - span.start_time) // 1_000_000 for span in phases]
    assert lengths == [2, 20, 1, 30, 400, 20]
    assert phases[0].start_time == root.start_time
    for before, after in pairwise(phases):
        assert after.start_time == before.end_time
    assert root.end_time - phases[-1].end_time == 27_000_000
    for span in phases:
        assert span.parent.span_id == root.context.span_id
        assert span.context.trace_id == root.context.trace_id
        assert span.attributes[f"{P}phase.start_estimated"] is True


def test_real_time_mode_writes_the_offset_log_last():
    """There the batch is planned in the log after its data was written."""
    stage = Stage()
    stage.start()
    stage.learn(trigger="real_time", trigger_seconds=300.0)
    stage.batch()
    names = [span.name for span in stage.spans() if span.parent is not None]
    assert names[-3:] == ["add_batch", "wal_commit", "commit_offsets"]


def test_unknown_phase_gets_no_span():
    """Its place is not known, so it is told as a figure alone."""
    stage = Stage()
    stage.start()
    stage.batch(phases={"addBatch": 400, "newPhase": 10, "latestOffset": 1})
    spans = stage.spans()
    assert [s.name for s in spans if s.parent is not None] == ["latest_offset", "add_batch"]
    root = next(span for span in spans if span.name == "batch orders")
    assert root.attributes[f"{P}phase.new_phase.duration"] == 0.01


def test_attributes_say_what_the_batch_did():
    """Query, run, batch, rows, rates, watermark and its gap, source, sink."""
    stage = Stage()
    stage.start()
    stage.learn(
        trigger="processing_time", trigger_seconds=1.0, checkpoint="/c", output_mode="Append"
    )
    stage.batch(
        eventTime={"watermark": "2026-11-15T23:59:50.000Z", "max": "2026-11-16T00:00:00.000Z"}
    )
    said = stage.only("batch orders").attributes
    expected = {
        "query.id": stage.life.query_id,
        "query.name": "orders",
        "query.label": "orders",
        "run.id": stage.life.run_id,
        "batch.id": 0,
        "batch.duration": 0.5,
        "batch.has_data": True,
        "batch.replayed": False,
        "rows.input": 10,
        "rate.input": 10.0,
        "rate.processed": 20.0,
        "event_time.watermark": "2026-11-15T23:59:50.000Z",
        "event_time.watermark_gap": 12.0,
        "event_time.max": "2026-11-16T00:00:00.000Z",
        "trigger.kind": "processing_time",
        "trigger.interval": 1.0,
        "output_mode": "Append",
        "checkpoint": "/c",
        "sink.kind": "foreachBatch",
        "source.count": 1,
        "source.0.kind": "kafka",
        "source.0.description": "KafkaV2[Subscribe[orders]]",
        "source.0.offset.start": '{"orders":{"0":0}}',
        "source.0.offset.end": '{"orders":{"0":10}}',
        "source.0.offset.latest": '{"orders":{"0":10}}',
        "source.0.rows": 10,
        "source.0.backlog": 0.0,
    }
    assert {name: said.get(P + name) for name in expected} == expected
    assert f"{P}rows.output" not in said  # -1 is unknown, and unknown is absent


def test_stateful_operator_is_described():
    """Rows, memory, updates, removals, late rows and commit time, as in the event."""
    text = recorded("4.3.0", "progress-agg-append-rocksdb")
    event = decode(text)
    assert isinstance(event, Progress)
    stage = Stage()
    stage.play(text)
    spans = stage.spans()
    said = next(span for span in spans if span.parent is None).attributes
    operator = event.operators[0]
    assert said[f"{P}state.0.operator"] == operator.name
    assert said[f"{P}state.0.rows"] == operator.rows
    assert said[f"{P}state.0.memory"] == operator.memory
    assert said[f"{P}state.0.updated"] == operator.updated
    assert said[f"{P}state.0.removed"] == operator.removed
    assert said[f"{P}state.0.dropped"] == operator.dropped
    assert said[f"{P}state.0.commit_time"] == operator.commit_seconds


def test_offsets_are_masked_and_bounded():
    """An offset may be as long as a topic has partitions, and may hold what nobody should see."""
    stage = Stage()
    stage.start()
    long = {"orders": {str(n): n for n in range(2000)}}
    source = {
        "description": "Custom[url=jdbc:x://u:hunter2@h/db]",
        "startOffset": {"token": "hunter2", "password": "hunter2"},
        "endOffset": long,
        "latestOffset": long,
    }
    stage.batch(sources=[source])
    said = stage.only("batch orders").attributes
    assert len(said[f"{P}source.0.offset.end"]) == MOST_OFFSET_CHARACTERS
    assert "hunter2" not in json.dumps(dict(said))


def test_many_sources_leave_what_people_search_for():
    """At the SDK's own limit of 128 attributes the oldest go; names and numbers of the batch stay."""
    stage = Stage(environ={"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "128"})
    stage.start()
    source = {"description": "KafkaV2[Subscribe[orders]]", "numInputRows": 1}
    source |= {
        "startOffset": {"o": {"0": 0}},
        "endOffset": {"o": {"0": 1}},
        "latestOffset": {"o": {"0": 1}},
    }
    stage.batch(sources=[source] * 40)
    said = stage.only("batch orders").attributes
    assert len(said) <= 128
    assert said[f"{P}batch.id"] == 0
    assert said[f"{P}source.count"] == 40
    assert said[f"{P}rows.input"] == 10


def test_links_point_to_the_batch_before_and_the_start():
    """The first batch of a run has none before it."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.batch()
    spans = stage.spans()
    start = next(span for span in spans if span.name == "start orders")
    first, second = (span for span in spans if span.name == "batch orders")
    assert _links(first) == {"start": start.context.span_id}
    assert _links(second) == {
        "start": start.context.span_id,
        "previous_batch": first.context.span_id,
    }


def _links(span):
    return {link.attributes[f"{P}link"]: link.context.span_id for link in span.links}


def test_replayed_batch_says_so():
    """Without latestOffset and walCommit it came from the offset log."""
    stage = Stage()
    stage.start()
    stage.batch(phases={"addBatch": 400, "getBatch": 1, "queryPlanning": 3, "commitOffsets": 2})
    assert stage.only("batch orders").attributes[f"{P}batch.replayed"] is True


def test_ids_are_those_of_the_contract():
    """Anybody can compute them from run, batch and part."""
    stage = Stage()
    stage.start()
    stage.batch()
    run = stage.life.run_id
    for span in stage.spans():
        batch, part = (0, "batch") if span.name == "batch orders" else (0, span.name)
        batch, part = ("start", "start") if span.name == "start orders" else (batch, part)
        assert span.context.trace_id == span_ids.trace_id(run, batch)
        assert span.context.span_id == span_ids.span_id(run, batch, part)


def test_ids_by_hand():
    """The hash of the contract, computed elsewhere with sha256sum."""
    run = "f87dfefb-55c2-4b1a-9b43-b59c5b5a3ff1"
    assert ids_of_batch(run, 7) == (
        "b2fac996ec041905fabb260f8251ef4f",
        "6ea51a83d6a71432",
    )


@pytest.mark.parametrize(
    "path", sorted(EVENTS.glob("*/progress-*.json")), ids=lambda p: f"{p.parent.name}-{p.stem}"
)
def test_every_recorded_batch_becomes_a_trace(path):
    """All Sparks, all operators: each phase is a child, every attribute is in the table."""
    text = path.read_text(encoding="utf-8")
    event = decode(text)
    stage = Stage()
    stage.play(text)
    spans = stage.spans()
    assert [s.name for s in spans if s.parent] == [p for p in ENGINE_ORDER if p in event.phases]
    known = {entry.name for entry in TABLE}
    for span in spans:
        for name in span.attributes:
            parts = ["<i>" if part.isdecimal() else part for part in name.split(".")]
            if parts[2] == "phase" and parts[-1] == "duration":
                parts[3] = "<name>"
            assert ".".join(parts) in known, name


def test_real_time_order_has_every_phase_once():
    """It is the engine's, with the offset log after the data."""
    assert sorted(REAL_TIME_ORDER) == sorted(ENGINE_ORDER) == sorted(FROM_SPARK.values())


def test_version_of_a_delta_table_is_that_of_this_very_batch():
    """What is known of another batch, or of another run, is not told of this one."""
    stage = Stage()
    stage.start()
    for batch_id, run_id in ((0, stage.life.run_id), (0, stage.life.run_id), (2, "another")):
        stage.tell_version(batch_id=batch_id, run_id=run_id, version=7)
        stage.batch()
    told = [span.attributes.get(f"{P}sink.delta.version") for span in stage.spans("batch orders")]
    assert told == [7, None, None]
