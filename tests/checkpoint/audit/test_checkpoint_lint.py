"""Faults of one checkpoint and of many, from files alone."""

from __future__ import annotations

import struct
import zlib

import pytest
from recorded_checkpoints import kafka_checkpoint, packed, recorded

from streamgauge.checkpoint.audit.lint import RULES, lint, lint_location
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.checksums import matches
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.render.audit_text import render_findings
from streamgauge.model.checkpoint_names import look_at_names


@pytest.mark.parametrize(
    ("root", "rules"),
    [
        ("s3://lake/checkpoints/orders", []),
        ("s3://lake/checkpoints/orders/2026-11-16", ["date-in-path"]),
        ("s3://lake/date=today/orders", ["date-in-path"]),
        ("hdfs://nn/ck/20261116/orders", ["date-in-path"]),
        ("s3://lake/ck/7b9d8fe9-b4f9-4c70-804e-eabd28b8567b", ["random-in-path"]),
        ("s3://lake/ck/run-1794797243", ["random-in-path"]),
        ("/tmp/orders", ["temp-directory"]),
        ("/mnt/data/orders", ["local-disk"]),
    ],
)
def test_locations_are_judged(root, rules):
    """Fixed, durable, one per query: a date, a random part or a temp directory is a defect."""
    assert [rule for rule, _ in lint_location(root)] == rules


def test_lint_of_many_finds_what_is_between_them():
    """A copy has the same query id; a path twice is shared; one may lie inside another."""
    every = [kafka_checkpoint(), kafka_checkpoint(root="s3://lake/orders/copy"), kafka_checkpoint()]
    rules = {each.rule for each in lint(every)}
    assert rules == {"copied", "inside-another", "shared-path"}
    assert "copied" in render_findings(lint(every))
    assert render_findings([]) == "nothing found"


def test_lint_of_one_names_what_is_wrong():
    """Gaps, lost identity, broken and leftover files, state that is incomplete."""
    files = dict(packed("4.3.0/agg-hdfs"))
    for name in ("metadata", "offsets/1", "commits/0", "state/0/1/4.delta"):
        del files[name]
    files |= {"offsets/.4.x.tmp": b"", "commits/3": b"nope", "state/0/_metadata/metadata": b"?"}
    rules = {each.rule for each in lint([read_checkpoint(MemoryStore(files, root="s3://a/b"))])}
    assert rules == {
        "missing-metadata",
        "offset-gap",
        "leftovers",
        "unreadable-file",
        "incomplete-state",
    }
    assert rules <= set(RULES)


def test_whole_checkpoints_have_no_fault():
    """What Spark left in order is in order; sparse async logs are too."""
    for name in ("plain", "agg-hdfs", "agg-rocksdb", "agg-v2", "join-hdfs"):
        assert lint([read_checkpoint(MemoryStore(packed(f"4.3.0/{name}"), root="s3://a/b"))]) == []
    assert lint([read_checkpoint(recorded("4.3.0/async-progress-tracking"))]) == []


def test_lint_sees_growth_and_late_snapshots():
    """Thousands of batches and hundreds of changes since a snapshot."""
    files = {"metadata": '{"id":"a"}'}
    line = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n1'
    files |= {f"offsets/{n}": line for n in range(1200)} | {
        f"commits/{n}": "v1" for n in range(1200)
    }
    sizes = {f"state/0/0/{n}.delta": 9 for n in range(1, 1201)}
    found = lint([read_checkpoint(MemoryStore(files, sizes, root="s3://a/b"))])
    assert {each.rule for each in found} == {"growth", "no-snapshot"}


@pytest.mark.parametrize(
    ("offsets", "commits", "summary"),
    [
        ([], [], (None, None, 0, set())),
        (["0", "1", ".1.x.tmp"], ["0", ".0.crc"], (1, 0, 1, set())),
        (["0", "1", "2", "3"], ["0"], (3, 0, 3, {"uncommitted"})),
        (["0", "1"], ["0", "1", "2"], (1, 2, 0, {"commit-ahead"})),
        (["0", "2", "3"], ["0", "1", "2", "3"], (3, 3, 0, {"offset-gap"})),
        (["0", "36", "71"], ["0", "36", "71"], (71, 71, 0, set())),
        ([], ["4"], (None, 4, 0, {"no-offsets"})),
    ],
)
def test_names_alone_tell_most(offsets, commits, summary):
    """The agent's timer needs two listings and no file."""
    found = look_at_names(offsets, commits)
    assert (found.last_offset, found.last_commit, found.uncommitted, set(found.findings)) == summary


def test_file_that_was_changed_by_hand_is_seen():
    """Hadoop's checksum files on local disks betray an edit; Spark itself does not look."""
    files = dict(packed("4.3.0/plain"))
    data = files["offsets/3"]
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    files["offsets/.3.crc"] = b"crc\0" + struct.pack(f">{len(sums) + 1}I", 512, *sums)
    assert lint([read_checkpoint(MemoryStore(files, root="s3://a/b"))]) == []
    files["offsets/3"] = data.replace(b'"logOffset":3', b'"logOffset":2')
    (found,) = lint([read_checkpoint(MemoryStore(files, root="s3://a/b"))])
    assert (found.rule, found.harmless) == ("edited", False)
    assert "offsets/3" in found.what
    for strange in (b"", b"crc\0", b"crc\0\0\0\0\0", b"nonsense"):
        assert matches(data, strange)
