"""Offsets of every kind of source: what is understood, and what stays unknown."""

from __future__ import annotations

import json

import pytest
from stage import EVENTS, Life

from streamgauge.model.decoder import decode
from streamgauge.model.sources import find_reader, parse, read_count

KAFKA = find_reader("KafkaV2[Subscribe[t]]")
DELTA = find_reader("DeltaSource[file:/data/t]")
HOSTILE = (
    None, 7, "7", [], {}, {"t": {}}, {"t": 7}, {"t": {"0": "7"}}, {"t": {"0": True}}, {"t": {"0": 1.5}},
    {"t": {"0": -1}}, {"t": {"0": 2**70}}, {"t": {"0": 1}, "u": None}, {"t": {"shard-1": 4}},
    {"t": {"0": {"0": 1}}},
)  # fmt: skip


def _source(**fields):
    source = {"description": "KafkaV2[Subscribe[t]]", "numInputRows": 1, **fields}
    return decode(Life().progress(sources=[source])).sources[0]


def test_kafka_counts_rows_by_partition():
    """Each partition has its own offset; text is read as JSON."""
    assert KAFKA.positions({"t": {"0": 5, "10": 7}, "u": {"0": 0}}) == {
        ("t", "0"): 5, ("t", "10"): 7, ("u", "0"): 0,
    }  # fmt: skip
    assert KAFKA.positions(parse('{"t":{"0":5}}')) == {("t", "0"): 5}


@pytest.mark.parametrize("offset", HOSTILE)
@pytest.mark.parametrize("reader", [KAFKA, DELTA, find_reader("RatePerMicroBatchStream[x]")])
def test_what_is_not_an_offset_is_unknown(reader, offset):
    """No shape of JSON becomes a number by accident."""
    assert reader.positions(offset) is None
    assert reader.version(offset) is None


@pytest.mark.parametrize(
    ("description", "offset"),
    [
        ("FileStreamSource[file:/in]", {"logOffset": 3}),
        ("RateStreamV2[rowsPerSecond=10]", 7),
        ("org.apache.spark.sql.eventhubs.EventHubsSource@1f2e", {"hub": {"0": 12, "1": 9}}),
        ("org.apache.spark.sql.connector.kinesis.KinesisV2MicroBatchStream@1f2e3d4c",
         {"metadata": {"streamName": "s", "batchId": "3"}, "shardId-000": {"iteratorType": "AT"}}),
        ("org.example.Mine", {"t": {"0": 5}}),
    ],
)  # fmt: skip
def test_sources_that_dont_count_rows_degrade_to_unknown(description, offset):
    """Not to 0, even where the offset looks like Kafka's."""
    source = _source(description=description, endOffset=offset, latestOffset=offset)
    assert source.reached is None
    assert source.backlog is None


def test_source_written_in_python_may_speak_as_kafka_does():
    """Its author decides what offsets are; in Kafka's form they count rows."""
    package = "org.apache.spark.sql.execution.datasources.v2.python"
    source = _source(
        description=f"{package}.PythonMicroBatchStreamWithAdmissionControl@4f0e94bd",
        endOffset={"clicks": {"0": 5}},
        latestOffset={"clicks": {"0": 9}},
    )
    assert (source.label, source.backlog) == ("0-python", 4)
    odd = _source(description=f"{package}.PythonMicroBatchStream@1", endOffset={"at": 5})
    assert (odd.label, odd.backlog) == ("0-python", None)


def test_delta_counts_versions():
    """An index below 0 says that nothing of that version was read yet."""
    begun = {"sourceVersion": 1, "reservoirId": "x", "reservoirVersion": 5, "index": 3}
    assert DELTA.version(begun) == 5
    assert DELTA.version({**begun, "index": -1}) == 4
    source = _source(
        description="DeltaSource[file:/data/t]",
        endOffset={**begun, "index": -1},
        latestOffset={**begun, "reservoirVersion": 9, "index": -1},
        metrics={"numBytesOutstanding": "2048", "numFilesOutstanding": "3"},
    )
    assert (source.versions, source.files, source.bytes) == (4, 3, 2048)
    assert source.backlog is None


def test_files_that_wait_are_reported_by_some():
    """Auto Loader tells; Spark's own file source does not, and a word is no number."""
    metrics = {"numFilesOutstanding": "1287", "numBytesOutstanding": "5388009472"}
    source = _source(description="CloudFilesSource[s3://x]", metrics=metrics)
    assert (source.label, source.files, source.bytes) == ("0-cloudfiles", 1287, 5388009472)
    assert _source(description="FileStreamSource[x]").files is None
    for odd in ("NaN", "-1", "Infinity", "many", None):
        assert read_count({"n": odd}, "n") is None


def test_partitions_of_a_source_may_be_named():
    """Assign reads these and no others; a pattern or a subscription reads what comes."""
    assert _source(description="KafkaV2[Assign[t-0]]").fixed
    assert not _source(description="KafkaV2[SubscribePattern[t.*]]").fixed


@pytest.mark.parametrize("path", sorted(EVENTS.glob("*/progress-*.json")), ids=str)
def test_real_events_have_no_false_zero(path):
    """Kafka's backlog is what its own metric says; the others don't tell what waits."""
    for event in _events(json.loads(path.read_text(encoding="utf-8"))):
        for source in decode(json.dumps(event)).sources:
            if source.kind == "kafka":
                behind = float(source.metrics["avgOffsetsBehindLatest"])
                assert source.backlog == behind * len(source.reached.values)
                continue
            assert source.backlog is None
            if source.kind == "rate-micro-batch":
                assert sum(source.reached.values) == parse(source.end)["offset"]


def _events(found):
    return found if isinstance(found, list) else [found]
