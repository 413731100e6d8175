"""Every event of every Spark version becomes the right record."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import EVENTS, Life, recorded

from streamgauge.model.decoder import UndecodableEvent, decode
from streamgauge.model.events import Idle, Progress, Started, Terminated

FILES = sorted(p for p in EVENTS.glob("*/*.json") if p.name != "sinks.json")
VERSIONS = sorted(p.name for p in EVENTS.iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_decodes_every_recorded_event(path):
    """The values of the record are those of the file, in base units."""
    text = path.read_text(encoding="utf-8")
    raw = json.loads(text)
    event = decode(text)
    if "progress" in raw or "batchId" in raw:
        _check_progress(event, raw.get("progress", raw))
    elif "exception" in raw:
        assert isinstance(event, Terminated)
        assert (event.exception is None) == (raw["exception"] is None)
        assert (event.error_class is None) == (raw["exception"] is None)
        if raw["errorClassOnException"]:
            assert event.error_class == raw["errorClassOnException"]
    elif "name" in raw:
        assert isinstance(event, Started)
        assert (event.name, event.run_id) == (raw["name"], raw["runId"])
    else:
        assert isinstance(event, Idle)
        assert event.run_id == raw["runId"]


def _check_progress(event, raw):
    assert isinstance(event, Progress)
    assert (event.query_id, event.run_id, event.name) == (raw["id"], raw["runId"], raw["name"])
    assert event.batch_id == raw["batchId"]
    assert event.seconds == raw["durationMs"]["triggerExecution"] / 1000
    assert sum(event.phases.values()) == pytest.approx(
        sum(v for k, v in raw["durationMs"].items() if k != "triggerExecution") / 1000
    )
    if "numInputRows" in raw:
        assert event.input_rows == raw["numInputRows"]
        assert event.input_rate == raw.get("inputRowsPerSecond")
    rows = raw["sink"]["numOutputRows"]
    assert event.sink.rows == (None if rows == -1 else rows)
    assert "@" not in event.sink.description
    for source, given_ in zip(event.sources, raw["sources"], strict=True):
        assert source.rows == given_["numInputRows"]
        assert source.kind in {"file", "kafka", "rate", "rate-micro-batch"}
    for operator, given_ in zip(event.operators, raw["stateOperators"], strict=True):
        assert operator.rows == given_["numRowsTotal"]
        assert operator.memory == given_["memoryUsedBytes"]
        assert operator.commit_seconds == given_["commitTimeMs"] / 1000
        named = len(operator.custom) + len(operator.snapshot_versions)
        assert named == len(given_["customMetrics"])
        assert not any(key.startswith("SnapshotLastUploaded") for key in operator.custom)
    assert event.has_data == any(s["startOffset"] != s["endOffset"] for s in raw["sources"])
    assert not event.replayed


@pytest.mark.parametrize("version", VERSIONS)
def test_session_window_has_one_name_on_every_spark(version):
    """`defaultName` of Spark 3.5 is what 4.x calls by its name."""
    event = decode(recorded(version, "progress-session-window-hdfs"))
    assert [o.label for o in event.operators] == ["0-sessionWindowStateStoreSaveExec"]


@pytest.mark.parametrize("version", VERSIONS)
def test_sinks_have_kinds_and_stable_descriptions(version):
    """Identity hashes don't reach a label, and every sink is called by its kind."""
    sinks = json.loads(recorded(version, "sinks"))
    kinds = {"parquet": "file", "toTable": "file"}
    for name, sink in sinks.items():
        event = decode(Life().progress(sink=sink))
        assert event.sink.kind == kinds.get(name, name)
        assert "@" not in event.sink.description
        assert "Lambda" not in event.sink.description


def test_two_operators_of_one_name_are_told_apart():
    """Spark gives no operator id, so the position is part of the label."""
    event = decode(recorded("4.3.0", "progress-two-stateful-hdfs"))
    assert len({o.label for o in event.operators}) == 2


def test_missing_rate_is_unknown():
    """Spark leaves a NaN rate out; that is not 0."""
    event = decode(recorded("4.3.0", "recentprogress-missing-rates"))
    assert event.input_rate is None
    assert event.sources[0].input_rate is None
    assert event.processed_rate == 0.0


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "null", "-1", '"NaN"'])
def test_words_for_unknown_are_unknown(word):
    """NaN, Infinity, null and -1 are no numbers, in whatever form they come."""
    text = Life().progress().replace('"inputRowsPerSecond": 10.0', f'"inputRowsPerSecond": {word}')
    event = decode(text)
    assert event.input_rate is None
    assert event.sources[0].input_rate is None


def test_replayed_batch_is_known_by_what_it_lacks():
    """No latestOffset and no walCommit: run again from the offset log."""
    durations = {"addBatch": 5, "getBatch": 1, "queryPlanning": 3, "commitOffsets": 1}
    event = decode(Life().progress(durationMs={**durations, "triggerExecution": 11}))
    assert event.replayed


def test_watermark_of_1970_is_no_watermark():
    """Spark says 1970-01-01 before there is any."""
    text = Life().progress(eventTime={"watermark": "1970-01-01T00:00:00.000Z"})
    assert decode(text).watermark is None


def test_unreadable_event_time_costs_only_itself():
    """A timestamp past year 9999 must not cost the whole event."""
    text = Life().progress(eventTime={"max": "+292278994-08-17T07:12:55.807Z"})
    event = decode(text)
    assert event.event_max is None
    assert event.input_rows == 10


def test_backlog_from_kafka_offsets():
    """Rows behind are the sum over partitions of latest less end."""
    source = {
        "description": "KafkaV2[Subscribe[t]]",
        "startOffset": {"t": {"0": 0, "1": 0}},
        "endOffset": {"t": {"0": 5, "1": 7}},
        "latestOffset": {"t": {"0": 15, "1": 7}},
        "numInputRows": 12,
    }
    assert decode(Life().progress(sources=[source])).backlog == 10
    source["latestOffset"] = {"t": {"0": 3, "1": 7}}  # the topic was recreated
    assert decode(Life().progress(sources=[source])).backlog is None
    source["latestOffset"] = None
    assert decode(Life().progress(sources=[source])).backlog is None


def test_kafka_metrics_in_scientific_notation_pass():
    """Source metrics are strings, and before 4.1 may read 1.2E7."""
    text = Life().progress()
    event = json.loads(text)
    event["progress"]["sources"][0]["metrics"] = {"avgOffsetsBehindLatest": "1.2E7"}
    assert decode(json.dumps(event)).sources[0].metrics == {"avgOffsetsBehindLatest": "1.2E7"}


def test_error_class_from_the_first_line():
    """Where Spark gives no class, the exception's own class is it."""
    event = decode(recorded("3.5.9", "query-terminated-task-error"))
    assert event.error_class == "SparkRuntimeException" or event.error_class.isidentifier()
    assert decode(Life().terminated("java.lang.IllegalStateException: x")).error_class == (
        "IllegalStateException"
    )
    assert decode(Life().terminated("something odd")).error_class == "unknown"


def test_secrets_are_masked_at_the_edge():
    """No record holds a secret, so nothing that is made from one can."""
    source = {"description": "JdbcSource[jdbc:x://u:hunter2@h/]", "numInputRows": 0}
    event = decode(Life().progress(sources=[source]))
    assert "hunter2" not in repr(event)
    event = decode(Life().terminated("java.sql.SQLException: password=hunter2 rejected"))
    assert "hunter2" not in repr(event)


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        (
            "mongodb://root:hunter2@3f2a9c1b4d5e:27017/db",
            "mongodb://root:***@3f2a9c1b4d5e:27017/db",
        ),
        ("Jdbc[jdbc:x://u:hunter2@deadbeef/t]", "Jdbc[jdbc:x://u:***@deadbeef/t]"),
        ("Sink@3f2a9c1b[redis://:hunter2@cafe12:6379]", "Sink[redis://:***@cafe12:6379]"),
        ("ForeachWriter$$Lambda$42/0x00ff@1a2b3c4d", "ForeachWriter"),
    ],
)
def test_host_that_looks_like_a_hash_hides_no_password(given_, shown):
    """Container ids are hexadecimal too: a secret is masked before identity hashes go."""
    source = {"description": given_, "numInputRows": 0}
    event = decode(Life().progress(sources=[source], sink={"description": given_}))
    assert (event.sources[0].description, event.sink.description) == (shown, shown)


def test_undecodable_shows_its_beginning_masked():
    """The complaint helps, is short, and leaks nothing."""
    with pytest.raises(UndecodableEvent) as caught:
        decode('{"progress": {"password": "hunter2", ' + "x" * 5000)
    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value)) < 600


_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_fields = st.sampled_from(sorted(json.loads(Life().progress())["progress"]))


@given(st.dictionaries(_fields, _json, max_size=6))
def test_any_field_may_hold_anything(changes):
    """A hostile or broken event is decoded or refused; nothing else happens."""
    try:
        event = decode(Life().progress(**changes))
    except UndecodableEvent:
        return
    numbers = (event.seconds, event.input_rows, event.input_rate, *event.phases.values())
    assert all(n is None or (math.isfinite(n) and n >= 0) for n in numbers)
    repr(event).encode("utf-8")


@given(st.text() | st.binary(), st.integers(min_value=0, max_value=3000))
def test_garbage_and_truncation_are_refused(garbage, cut):
    """Text that is no event, or half of one, raises the one exception."""
    for text in (garbage, recorded("4.3.0", "progress-agg-rocksdb")[:cut]):
        with pytest.raises(UndecodableEvent):
            decode(text)


def test_deep_nesting_is_refused():
    """No event can exhaust the stack."""
    with pytest.raises(UndecodableEvent):
        decode('{"progress":' + "[" * 100_000)


@pytest.mark.parametrize("length", [1_900, 16_300])
def test_long_description_leaks_no_front_of_a_secret(length):
    """Where a text is cut may be in the middle of what makes a password known as one."""
    text = f"Source[token={'t' * length}, pg://etl:{'hunter2' * 20}@db/]"
    event = decode(Life().progress(sources=[{"description": text, "numInputRows": 1}]))
    assert "hunter2" not in event.sources[0].description
