"""Causes are values: what decides a verdict is typed, and every value has its words."""

from __future__ import annotations

import json

import pytest
from recorded_checkpoints import packed

from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.restart.causes import (
    BatchAgain,
    BatchesSkipped,
    BatchesTakenForDone,
    Doubt,
    FileNotRead,
    Note,
    Premise,
    SinkUnknown,
    SourceGoesBack,
)
from streamgauge.checkpoint.restart.circumstances import Restart
from streamgauge.checkpoint.restart.failures import Failure, Moment, concurrent_update
from streamgauge.checkpoint.restart.forecast import forecast
from streamgauge.checkpoint.restart.state_flaws import BrokenFile, StateFlaw
from streamgauge.checkpoint.restart.verdict import Verdict
from streamgauge.checkpoint.restart.wording import (
    say_assumption,
    say_broken,
    say_moment,
    say_note,
    say_unknown,
)


def foresee(files, sizes=None, **circumstances):
    """Forecast for a dict of files."""
    return forecast(read_checkpoint(MemoryStore(files, sizes)), Restart(**circumstances))


def numbers(commits=3, ends=(0, 10, 20, 30)):
    """A query over one source with bare numbers, by hand; None is a source without an offset."""
    files = {"metadata": '{"id":"a"}'}
    for batch, end in enumerate(ends):
        offset = "-" if end is None else json.dumps(end)
        files[f"offsets/{batch}"] = f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{offset}'
    return files | {f"commits/{batch}": "v1\n{}" for batch in range(commits + 1)}


def test_source_without_an_offset_reads_again():
    """It goes on from the batch before: duplicates, known by the note's type and not by its words."""
    seen = foresee(numbers(ends=(0, 10, 20, None)), sink="kafka")
    assert (seen.verdict, seen.cause) == (Verdict.DUPLICATES, SourceGoesBack("0", 3))
    assert seen.reason == "source 0 has no offset in batch 3: it goes on from batch 2"


def test_replay_names_its_sink():
    """Skipped where the sink knows the batch, repeated where not, unknown without a sink."""
    files = numbers(commits=2)
    assert foresee(files, sink="delta").cause == BatchAgain(3, "delta", skipped=True)
    assert foresee(files, sink="kafka").cause == BatchAgain(3, "kafka", skipped=False)
    assert foresee(files).cause == SinkUnknown(3)
    assert foresee(numbers(), sink="file", sink_batches=9).cause == BatchesSkipped(4, 9)
    assert foresee(numbers(commits=0), sink="file").remarks == (BatchesTakenForDone(1, 2),)


def test_file_that_was_not_read_is_the_cause():
    """The file and what the store said of it, apart."""
    files = numbers()
    del files["offsets/3"]
    seen = foresee(files, {"offsets/3": 10})
    assert seen.cause == FileNotRead("offsets/3", "only its size is known")


@pytest.mark.parametrize(
    ("name", "change", "flaw", "error"),
    [
        ("3.5.9/agg-hdfs", lambda _: b"", StateFlaw.EMPTY, "EOFException"),
        ("3.5.9/agg-hdfs", lambda data: data[:30], StateFlaw.CUT_OFF, "EOFException"),
        ("3.5.9/agg-hdfs", lambda _: b"nonsense", StateFlaw.NOT_ITS_CODEC, "EOFException"),
        ("3.5.9/agg-rocksdb", lambda _: b"PK", StateFlaw.NO_SNAPSHOT, "NoSuchFileException"),
    ],
)
def test_broken_state_file_has_a_flaw(name, change, flaw, error):
    """Which error Spark gives follows from the flaw of the first broken file."""
    files = packed(name)
    chosen = max(file for file in files if file.endswith((".delta", ".zip")))
    seen = foresee(files | {chosen: change(files[chosen])}, spark="3.5")
    assert seen.state[0].broken == (BrokenFile(file=chosen, flaw=flaw),)
    assert (seen.failure.error, seen.failure.moment.in_tasks) == (error, True)


def test_snapshot_without_its_sst_and_file_of_another_size():
    """A lost SST is FileNotFoundException before 4.0; a wrong size fails its checksum from 4.1 on."""
    files = packed("3.5.9/agg-rocksdb")
    kept = {name: data for name, data in files.items() if "/SSTs/" not in name}
    seen = foresee(kept, spark="3.5")
    assert seen.state[0].broken[0].flaw is StateFlaw.MISSING_SST
    assert seen.failure.error == "FileNotFoundException"
    files = packed("4.3.0/agg-hdfs")
    chosen = max(name for name in files if name.endswith(".delta"))
    seen = foresee(files | {f"{chosen}.crc": b'{"mainFileSize": 7}'}, spark="4.1")
    (broken,) = seen.state[0].broken
    assert (broken.flaw, broken.recorded_bytes) == (StateFlaw.WRONG_SIZE, 7)
    assert seen.failure.error == "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"


def test_every_value_has_its_words():
    """No member of an enum is left without a sentence."""
    failures = [
        Failure(error="x", moment=each) for each in Moment if each is not Moment.AFTER_BATCH
    ]
    texts = [say_moment(each) for each in (*failures, concurrent_update(3))]
    texts += [say_broken(BrokenFile(file="f", flaw=each)) for each in StateFlaw]
    texts += [say_unknown(each) for each in Doubt]
    texts += [say_note(each) for each in Note]
    texts += [say_assumption(each) for each in Premise]
    assert all(texts)
    assert len(set(texts)) == len(texts)
