"""Every format of every file, on checkpoints that real Sparks wrote."""

from __future__ import annotations

import struct

import pytest
from recorded_checkpoints import PACKED, RECORDED, packed, recorded

from streamgauge.checkpoint.errors import BadFileError, Flaw
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.logs import (
    parse_commit,
    parse_metadata,
    parse_offsets,
)
from streamgauge.checkpoint.reader.sources import (
    measure_range,
    parse_file_log,
    parse_initial_offsets,
    read_paths,
    read_source_log,
    recognise,
)
from streamgauge.checkpoint.reader.state_files import parse_name
from streamgauge.checkpoint.reader.state_schema import parse_operator, parse_schema, type_name
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.model.checkpoint_names import batch_id


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_checkpoints_are_understood(name):
    """Identity, both logs and every text file of a recorded checkpoint, without a complaint."""
    checkpoint = read_checkpoint(recorded(name))
    unread = [each for each in checkpoint.problems if each.flaw is not Flaw.REFUSED]
    assert checkpoint.query_id
    assert checkpoint.latest is not None
    assert unread == []
    assert all("only its size" in each.what for each in checkpoint.problems)


@pytest.mark.parametrize("name", PACKED)
def test_packed_checkpoints_are_whole(name):
    """A whole checkpoint has no problem, binary schemas included."""
    checkpoint = read_checkpoint(MemoryStore(packed(name)))
    assert checkpoint.problems == ()
    assert (checkpoint.offsets.latest, checkpoint.commits.latest) == (3, 3)
    for operator in checkpoint.state.operators:
        assert operator.schema is not None
        assert operator.partitions == [0, 1]


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_modes_are_recognised(version):
    """Sparse logs are async progress tracking; a missing metadata line is continuous mode."""
    assert read_checkpoint(recorded(f"{version}/async-progress-tracking")).mode == "async"
    assert read_checkpoint(recorded(f"{version}/continuous")).mode == "continuous"
    assert read_checkpoint(recorded(f"{version}/agg-hdfs")).mode == "micro-batch"


def test_named_sources_of_offset_log_v2():
    """v2 names its sources; the first colon splits."""
    checkpoint = read_checkpoint(recorded("4.3.0/offsetlog-v2-named-sources"))
    assert checkpoint.latest.version == 2
    assert [each.source for each in checkpoint.latest.sources] == ["alpha", "gamma"]
    assert checkpoint.latest.of("gamma") == '{"offset":35,"timestamp":7000}'
    assert checkpoint.latest.of("beta") is None


def test_state_ids_of_commit_v2():
    """Format v2 says in the commit which state file is live."""
    commit = read_checkpoint(recorded("4.3.0/agg-rocksdb-ckptv2")).commit
    assert commit.version == 2
    assert [len(part) for part in commit.state_ids["0"]] == [1, 1]


def test_commit_v3_keeps_its_sinks():
    """v3 adds what the sinks committed."""
    commit = parse_commit(
        b'v3\n{"nextBatchWatermarkMs":5,"sinkMetadataMap":{"a":{"sinkName":"a"}}}'
    )
    assert (commit.version, commit.next_watermark_ms, commit.sinks["a"]["sinkName"]) == (3, 5, "a")


def test_named_stores_of_a_join():
    """A join has four stores a partition, by its metadata or, in 3.5, by its folders."""
    for version in ("3.5.9", "4.3.0"):
        (operator,) = read_checkpoint(
            recorded(f"{version}/stream-stream-join-hdfs")
        ).state.operators
        assert len(operator.store_names) == 4
        assert len(operator.stores) == 8


def test_operator_metadata_v2_names_its_schema_files():
    """The transformWithState operator describes itself in `_metadata/v2/`."""
    (operator,) = read_checkpoint(recorded("4.3.0/transform-with-state")).state.operators
    assert operator.name == "transformWithStateInPandasExec"
    assert operator.info.stores[0].schema_paths[0].startswith("file:/data/")
    assert operator.info.properties["timeMode"] == "ProcessingTime"


def test_reading_costs_listings_and_a_few_small_files():
    """Ten thousand batches are names; two offsets, one commit and the metadata are opened."""
    line = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}\n{"logOffset":1}'
    files = {"metadata": b'{"id":"x"}'}
    for number in range(10_000):
        files[f"offsets/{number}"] = line
        files[f"commits/{number}"] = b"v1\n{}"
    opened = []

    class Counting(MemoryStore):
        def read(self, path, limit=10**6):
            opened.append(path)
            return super().read(path, limit)

    read_checkpoint(Counting(files))
    assert sorted(opened) == ["commits/9999", "metadata", "offsets/9998", "offsets/9999"]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("7", 7),
        ("007", 7),
        ("-3", -3),
        ("+4", 4),
        ("7.tmp", None),
        (".7.crc", None),
        ("٣", None),
        ("9" * 30, None),
    ],
)
def test_batch_names_are_javas_longs(name, number):
    """Spark takes every name that parses as a long for a batch, and no other."""
    assert batch_id(name) == number


@pytest.mark.parametrize(
    ("data", "flaw"),
    [
        (b"", Flaw.EMPTY),
        (b"v1", Flaw.NO_METADATA),
        (b"one\n{}", Flaw.BAD_VERSION),
        (b"v0\n{}", Flaw.BAD_VERSION),
        (b"v7\n{}", Flaw.NEWER_VERSION),
        (b"v1\n{nope\n1", Flaw.BAD_JSON),
        (b"v1\n[]\n1", Flaw.BAD_JSON),
        (b'v1\n{"conf":7}\n1', Flaw.BAD_JSON),
        (b"v2\n{}\nnameless", Flaw.BAD_LINE),
        (b"\xff\xfe\x00", Flaw.BAD_LINE),
        (b"v1\n{}\n" + b"9" * 5_000_000, Flaw.REFUSED),
    ],
)
def test_flaws_of_offset_files_are_told_apart(data, flaw):
    """Each way in which Spark's reader stumbles has its own name."""
    with pytest.raises(BadFileError) as caught:
        parse_offsets(data)
    assert caught.value.flaw is flaw


def test_offsets_of_continuous_mode_and_void_sources():
    """An empty metadata line has no settings, `-` is no offset yet, CRLF does no harm."""
    entry = parse_offsets(b"v1\n\n-\n42")
    assert (entry.conf, entry.of("0"), entry.of("1")) == (None, None, "42")
    assert parse_offsets(b"v1\r\n{}\r\n42").of("0") == "42"


def test_commit_without_json_is_accepted():
    """Only the version line is needed."""
    assert parse_commit(b"v1").next_watermark_ms == 0
    with pytest.raises(BadFileError):
        parse_commit(b'v2\n{"stateUniqueIds":[1]}')


def test_metadata_needs_an_id():
    """Empty, no JSON, and JSON without an id are three flaws."""
    assert parse_metadata(b'{"id":"a"}') == "a"
    for data, flaw in ((b" ", Flaw.EMPTY), (b"nope", Flaw.BAD_JSON), (b"{}", Flaw.BAD_JSON)):
        with pytest.raises(BadFileError) as caught:
            parse_metadata(data)
        assert caught.value.flaw is flaw


def test_file_source_log_and_its_compact_files():
    """Plain and compact entries are told apart, and the needed ones begin at the newest compact."""
    log = read_source_log(recorded("4.3.0/hdfs-snapshot-and-compact"), "0")
    assert log.latest == 13
    assert log.needed(13) == [11, 12, 13]
    assert log.first_missing(10, 13) is None
    assert log.first_missing(10, 15) == 14
    paths, wrong = read_paths(recorded("4.3.0/hdfs-snapshot-and-compact"), log, 3, 12)
    assert [path.rsplit("/", 1)[-1] for path in paths] == [f"f{n}.json" for n in range(3, 13)]
    assert wrong == []
    assert log.name(11) == "sources/0/11.compact"
    entries = parse_file_log(
        recorded("4.3.0/hdfs-snapshot-and-compact").read("sources/0/11.compact")
    )
    assert [each.batch for each in entries] == list(range(12))


def test_kafkas_initial_offsets_are_not_plain_text():
    """Kafka puts a zero byte before the version."""
    assert parse_initial_offsets(b'\0v1\n{"a":{"0":1}}') == '{"a":{"0":1}}'
    assert parse_initial_offsets(b"v1\n1794797243851") == "1794797243851"
    assert parse_initial_offsets(b'\0v1{"a":{"0":1}}') == '{"a":{"0":1}}'
    with pytest.raises(BadFileError):
        parse_initial_offsets(b"\xff\xff")


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        ('{"logOffset":3}', "file"),
        ('{"offset":60,"timestamp":3000}', "rate-micro-batch"),
        ("17", "counter"),
        ('{"orders":{"0":5,"1":7}}', "kafka"),
        ('{"0":{"value":48,"runTimeMs":1}}', "rate (continuous)"),
        (
            '{"sourceVersion":1,"reservoirId":"x","reservoirVersion":3,"index":-1,"isStartingVersion":true}',
            "delta",
        ),
        ("true", "unknown"),
        ("{}", "unknown"),
        ("nope", "unknown"),
        (None, "unknown"),
    ],
)
def test_sources_are_known_by_their_offsets(offset, kind):
    """The shape of an offset tells its source, and what is not known is unknown."""
    assert recognise(offset) == kind


def test_ranges_of_kafka_are_exact_by_partition():
    """Start, end and rows of each partition; a new partition's rows are not known."""
    found = measure_range("0", '{"a":{"0":5,"1":7}}', '{"a":{"0":9,"1":7,"2":3}}')
    assert [(each.partition, each.start, each.end, each.rows) for each in found.partitions] == [
        ("a-0", 5, 9, 4),
        ("a-1", 7, 7, 0),
        ("a-2", None, 3, None),
    ]
    assert found.rows is None
    assert measure_range("0", '{"a":{"0":5}}', '{"a":{"0":9}}').rows == 4


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("12.delta", (12, "", "delta")),
        ("4_82ae.changelog", (4, "82ae", "changelog")),
        ("4_82ae.zip.crc", None),
        (".4.delta.crc", None),
        ("x.delta", None),
        ("temp-4.zip", None),
    ],
)
def test_names_of_state_files(name, parsed):
    """Version, id and kind; checksum and temp files are none."""
    assert parse_name(name) == parsed


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def test_state_schemas_of_both_formats():
    """Chunked or not, key and value come out; what is cut off is said so."""
    key, value = '{"type":"struct","fields":[{"type":"string"}]}', '{"type":"struct","fields":[]}'
    whole = _utf("v2") + struct.pack(">i", 1) + _utf(key) + struct.pack(">i", 1) + _utf(value)
    assert parse_schema(whole).types("key") == ["string"]
    assert parse_schema(_utf("v1") + _utf(key) + _utf(value)).types("value") == []
    for broken in (whole[:-3], b"", _utf("v9"), _utf("v2") + struct.pack(">i", -1)):
        with pytest.raises(BadFileError):
            parse_schema(broken)


def test_types_are_compared_without_names():
    """Nested types keep their shape and lose their names."""
    nested = {"type": "struct", "fields": [{"type": {"type": "array", "elementType": "long"}}]}
    assert type_name(nested) == "struct<array<long>>"
    assert (
        type_name({"type": "map", "keyType": "string", "valueType": "long"}) == "map<string,long>"
    )
    assert type_name("decimal(10,2)") == "decimal(10,2)"


@pytest.mark.parametrize("data", [b"", b"v1\n{}", b"v9\n{}", b"\xff", b"v1\n[]"])
def test_broken_operator_metadata_is_a_bad_file(data):
    """Whatever is wrong with it, it is one error."""
    with pytest.raises(BadFileError):
        parse_operator(data)
