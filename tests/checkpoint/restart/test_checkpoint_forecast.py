"""The forecast from files alone; `test_forecast.py` sets it against a real Spark."""

from __future__ import annotations

import json

import pytest
from recorded_checkpoints import packed, recorded

from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.spark_lines import LINES, parse_line, writer_line
from streamgauge.checkpoint.reader.state_files import LiveFileUnknown, StoreFiles, trace_chain
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.render.forecast_text import render_forecast
from streamgauge.checkpoint.restart.circumstances import Restart
from streamgauge.checkpoint.restart.forecast import forecast
from streamgauge.model.sinks import SINKS, find_sink


def foresee(files, **circumstances):
    """Forecast for a dict of files."""
    return forecast(read_checkpoint(MemoryStore(files)), Restart(**circumstances))


def kafka(commits=3, offsets=3):
    """A stateless Kafka query by hand: ten rows a batch in each of two partitions."""
    files = {"metadata": '{"id":"a"}'}
    for batch in range(offsets + 1):
        end = json.dumps({"orders": {"0": batch * 10, "1": batch * 10}})
        files[f"offsets/{batch}"] = f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{end}'
    for batch in range(commits + 1):
        files[f"commits/{batch}"] = "v1\n{}"
    return files


def test_replayed_kafka_batch_has_its_exact_range():
    """Every partition's first and last offset of the batch that will run again."""
    seen = foresee(kafka(commits=2), sink="kafka")
    assert (seen.verdict, seen.batch, seen.replayed, seen.then) == (
        "safe with duplicates",
        3,
        True,
        4,
    )
    assert [(p.partition, p.start, p.end) for p in seen.ranges[0].partitions] == [
        ("orders-0", 20, 30),
        ("orders-1", 20, 30),
    ]
    assert seen.ranges[0].rows == 20
    assert any("retention" in text for text in seen.assumptions)


@pytest.mark.parametrize(
    ("sink", "verdict"),
    [
        ("delta", "safe"),
        ("file", "safe"),
        ("parquet", "safe"),
        ("noop", "safe"),
        ("kafka", "safe with duplicates"),
        ("jdbc", "safe with duplicates"),
        ("foreachBatch", "safe with duplicates"),
        ("FOREACH", "safe with duplicates"),
        ("console", "safe with duplicates"),
        (None, "unknown"),
        ("nosuch", "unknown"),
    ],
)
def test_each_sink_has_its_own_verdict_for_a_replay(sink, verdict):
    """An idempotent sink makes a replay safe; a sink that nobody named makes it unknown."""
    seen = foresee(kafka(commits=2), sink=sink)
    assert seen.verdict == verdict
    if verdict == "unknown":
        assert set(seen.sink_effects) == set(SINKS)


def test_memory_sink_recovers_in_complete_mode_only():
    """Append and update never start from a checkpoint; without the mode it can't be known."""
    assert foresee(kafka(), sink="memory", output_mode="complete").verdict == "safe"
    assert foresee(kafka(), sink="memory", output_mode="append").verdict == "will fail"
    assert foresee(kafka(), sink="memory").verdict == "unknown"


def test_lost_identity_defeats_delta():
    """Before 4.2 a lost `metadata` gives a new query id, which Delta has never seen."""
    files = kafka(commits=2)
    del files["metadata"]
    assert foresee(files, sink="delta", spark="4.1").verdict == "safe with duplicates"
    assert (
        foresee(files, sink="delta", spark="4.3").failure.error
        == "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    )


def test_file_sink_ahead_of_its_checkpoint_loses_data():
    """Batches that the sink's log already has are skipped without a word."""
    seen = foresee(kafka(), sink="file", sink_batches=9)
    assert seen.verdict == "loses data"
    assert "4 to 9" in seen.reason
    assert foresee(kafka(), sink="file", sink_batches=3).verdict == "safe"


def test_format_v2_must_be_asked_for_before_4_3():
    """4.3 adopts what is there; older lines need the setting, 3.5 can't read it at all."""
    checkpoint = read_checkpoint(MemoryStore(packed("4.3.0/agg-v2")))
    key = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    errors = {
        line: getattr(forecast(checkpoint, Restart(spark=line)).failure, "error", None)
        for line in LINES
    }
    assert errors["4.3"] is None
    assert errors["4.0"] == errors["4.1"] == "INVALID_LOG_VERSION.EXACT_MATCH_VERSION"
    assert errors["4.2"].startswith("CANNOT_LOAD_STATE_STORE")
    assert errors["3.5"] == "IllegalStateException"
    assert forecast(checkpoint, Restart(spark="4.2", conf={key: "2"})).verdict == "safe"


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_async_checkpoint_needs_async_again(version):
    """Sparse logs resume with async progress tracking and fail without it."""
    checkpoint = read_checkpoint(recorded(f"{version}/async-progress-tracking"))
    with_async = forecast(checkpoint, Restart(spark=version[:3]))
    assert (with_async.verdict, with_async.batch) == ("safe", checkpoint.commits.latest + 1)
    assert any("async" in text for text in with_async.assumptions)
    without = forecast(checkpoint, Restart(spark=version[:3], async_progress=False))
    assert without.failure.message == f"batch {checkpoint.offsets.latest - 1} doesn't exist"


def test_continuous_checkpoint_goes_on_at_the_next_epoch():
    """Epochs are batches; the trigger is assumed to be the same."""
    seen = forecast(read_checkpoint(recorded("4.3.0/continuous")))
    assert (seen.verdict, seen.batch) == ("safe", 11)
    assert any("continuous" in text for text in seen.assumptions)


def test_stop_in_the_middle_of_a_batch_is_a_replay():
    """A normal stop() often leaves a batch planned but not committed."""
    seen = forecast(
        read_checkpoint(recorded("4.3.0/stopped-mid-batch")), Restart(sink="foreachBatch")
    )
    assert (seen.verdict, seen.batch, seen.ranges[0].rows) == ("safe with duplicates", 1, 20)


def test_trigger_once_runs_the_replayed_batch_alone():
    """P36: it succeeds and has read nothing new."""
    assert foresee(kafka(commits=2), sink="file", trigger="once").then is None


def test_session_settings_that_lose_are_listed():
    """The checkpoint's pinned settings win over the session's, silently."""
    checkpoint = read_checkpoint(MemoryStore(packed("4.3.0/agg-rocksdb")))
    seen = forecast(checkpoint, Restart(conf={"spark.sql.shuffle.partitions": "5"}))
    found = {
        each.key.rsplit(".", 1)[-1]: (each.session, each.checkpoint) for each in seen.overridden
    }
    assert found["partitions"] == ("5", "2")
    assert found["providerClass"][1].endswith("RocksDBStateStoreProvider")


def test_settings_that_an_old_checkpoint_lacks_become_legacy_ones():
    """A checkpoint of 3.5 under 4.3 keeps the old meanings."""
    checkpoint = read_checkpoint(MemoryStore(packed("3.5.9/agg-hdfs")))
    found = {each.key: each.checkpoint for each in forecast(checkpoint).overridden}
    assert found["spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled"] == "false"


def test_watermark_of_the_next_batch():
    """A new batch takes the greater of offset and commit; a replay keeps its own."""
    files = kafka()
    files["offsets/3"] = (
        files["offsets/3"]
        .replace('MarkMs":0', "")
        .replace('"batchWatermarkMs":0', '"batchWatermarkMs":5')
    )
    files["commits/3"] = 'v1\n{"nextBatchWatermarkMs":9}'
    assert foresee(files).watermark_ms == 9
    del files["commits/3"]
    assert foresee(files, sink="file").watermark_ms == 5


def test_commits_that_are_missing_are_taken_for_done():
    """Only the last planned batch runs again; what is before it is never looked at."""
    files = kafka(commits=0)
    seen = foresee(files, sink="file")
    assert (seen.batch, seen.replayed) == (3, True)
    assert "1 to 2" in seen.notes[0]


def test_moved_transform_with_state_is_not_known():
    """Its schema files are named by absolute paths, and nothing outside the root is looked at."""
    seen = forecast(read_checkpoint(recorded("4.2.1/transform-with-state")))
    assert seen.verdict == "unknown"
    assert "file:/data/" in seen.reason


def test_links_make_the_verdict_unknown(tmp_path):
    """A log file that is a link out of the checkpoint is not opened, and that is said."""
    for name, text in kafka().items():
        path = tmp_path / "ck" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "elsewhere").write_text("v1\n{}\n1")
    (tmp_path / "ck/offsets/3").unlink()
    (tmp_path / "ck/offsets/3").symlink_to(tmp_path / "elsewhere")
    seen = forecast(read_checkpoint(tmp_path / "ck"))
    assert seen.verdict == "unknown"
    assert "offsets/3" in seen.reason


def test_chain_of_a_state_version():
    """The newest snapshot up to the version and every change since, or what is missing."""
    store = StoreFiles(
        0,
        "default",
        "state/0/0",
        {(2, ""): "2.snapshot"},
        {(n, ""): f"{n}.delta" for n in (1, 2, 3, 5)},
        {},
        0,
        0,
    )
    assert trace_chain(store, 3).files == ("3.delta", "2.snapshot")
    assert trace_chain(store, 5).missing == ("state/0/0/4.delta",)
    assert trace_chain(store, 0).files == ()
    assert trace_chain(store, 3, {}).unproved == LiveFileUnknown("state/0/0", 3)


def test_rendered_forecast_starts_with_the_verdict():
    """The first line is the answer; the error, the file and the moment follow."""
    files = kafka()
    files["offsets/3"] = ""
    text = render_forecast(foresee(files))
    assert text.startswith("on Spark 4.3: will fail: IllegalStateException")
    assert "offsets/3" in text
    assert "before anything is written" in text
    assert "console" in render_forecast(foresee(kafka(commits=2)))


def test_spark_lines_are_parsed_or_refused():
    """A full version is its line; an unknown one is told the known ones."""
    assert parse_line("4.3.0") == "4.3"
    for text in ("2.4", "four", ""):
        with pytest.raises(ValueError, match="known"):
            parse_line(text)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("3.5.9/agg-hdfs", "3.5 or older"),
        ("4.0.5/agg-hdfs", "4.0 or 4.1"),
        ("4.2.1/agg-hdfs", "4.2"),
        ("4.3.0/agg-hdfs", "4.3"),
    ],
)
def test_writing_spark_is_known_by_its_settings(name, line):
    """The keys of the pinned settings are a fingerprint."""
    assert writer_line(read_checkpoint(recorded(name)).conf) == line
    assert writer_line(None) is None


def test_unknown_sinks_are_none():
    """A sink is found in any case of letters, by its format too; another is not guessed."""
    assert find_sink("ForeachBatch").name == "foreachBatch"
    assert find_sink("orc").name == "file"
    assert find_sink("hudi") is None
