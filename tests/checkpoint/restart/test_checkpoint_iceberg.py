"""Iceberg as a sink and as a source: what its source code says that a restart does."""

from __future__ import annotations

import json

import pytest
from recorded_checkpoints import kafka_checkpoint

from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.sources import SourceKind, recognise
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.restart.causes import LostIdentity
from streamgauge.checkpoint.restart.circumstances import Restart
from streamgauge.checkpoint.restart.forecast import forecast
from streamgauge.checkpoint.restart.verdict import Verdict
from streamgauge.model.decoder import decode


def _offset(snapshot, position=2):
    return json.dumps(
        {"version": 1, "snapshot_id": snapshot, "position": position, "scan_all_files": False}
    )


def _checkpoint(commits):
    """Two batches planned; the ids of snapshots have no order."""
    files = {"metadata": '{"id":"a"}'}
    for batch, snapshot in enumerate((8_270_633_197_658_268_308, 3_051_729_675_574_597_004)):
        head = '{"batchWatermarkMs":0,"conf":{}}'
        files[f"offsets/{batch}"] = f"v1\n{head}\n{_offset(snapshot)}"
    for batch in range(commits):
        files[f"commits/{batch}"] = "v1\n{}"
    return read_checkpoint(MemoryStore(files, root="s3://lake/orders"))


def test_replayed_batch_is_skipped():
    """The snapshot's summary has query id and epoch id; a commit up to the newest of them is left out."""
    seen = forecast(kafka_checkpoint(commits=2), Restart(sink="iceberg"))
    assert (seen.verdict, seen.replayed) == (Verdict.SAFE, True)
    assert "the sink skips it" in seen.reason
    assert "expiring the query's last snapshot" in seen.sink_effect


def test_lost_identity_defeats_its_memory():
    """Another query id: Iceberg finds no snapshot of it and appends everything again."""
    files = {"offsets/0": 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"t":{"0":1}}'}
    checkpoint = read_checkpoint(MemoryStore(files, root="s3://lake/orders"))
    seen = forecast(checkpoint, Restart(sink="iceberg", spark="3.5"))
    assert (seen.verdict, seen.cause) == (Verdict.DUPLICATES, LostIdentity("iceberg"))
    assert seen.reason == "the new query id defeats Iceberg's memory of its batches"
    delta = forecast(checkpoint, Restart(sink="delta", spark="3.5"))
    assert delta.reason == "the new query id defeats Delta's memory of its batches"


@pytest.mark.parametrize(("commits", "replayed"), [(1, True), (2, False)])
def test_source_needs_its_snapshots_with_and_without_a_replay(commits, replayed):
    """It looks up the snapshot that it read last at every start; an expired one fails the query."""
    seen = forecast(_checkpoint(commits), Restart(sink="noop"))
    assert seen.replayed is replayed
    assert {each.kind for each in seen.ranges} <= {SourceKind.ICEBERG}
    (told,) = [text for text in seen.assumptions if "snapshot" in text]
    assert told.startswith("source 0: the table still has these snapshots")


def test_offsets_are_recognised_by_their_shape():
    """Four keys, as `StreamingOffset.json` writes them."""
    assert recognise(_offset(1)) is SourceKind.ICEBERG
    assert recognise('{"version": 1}') is SourceKind.UNKNOWN


def test_agent_names_the_source():
    """Spark describes it by class and identity alone."""
    source = {
        "description": "org.apache.iceberg.spark.source.SparkMicroBatchStream@1f2e3d4c",
        "startOffset": json.loads(_offset(1)),
        "endOffset": json.loads(_offset(2)),
        "numInputRows": 5,
    }
    batch = {"id": "q", "runId": "r", "batchId": 1, "timestamp": "2026-11-16T00:00:00.000Z"}
    event = decode(json.dumps({"progress": {**batch, "sources": [source]}}))
    assert (event.sources[0].label, event.has_data, event.backlog) == ("0-iceberg", True, None)
