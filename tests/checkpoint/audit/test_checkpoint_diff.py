"""What moved between two checkpoints, or one at two times."""

from __future__ import annotations

from recorded_checkpoints import kafka_checkpoint, packed

from streamgauge.checkpoint.audit.diff import Change, Difference, diff
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.report import make_report
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.render.audit_text import render_difference


def test_difference_of_one_checkpoint_at_two_times():
    """What moved: batches, offsets, and nothing else."""
    before, after = kafka_checkpoint(commits=2), kafka_checkpoint()
    found = diff(before, after, (make_report(before, 0), make_report(after, 0)))
    assert found.same_query
    assert {each.what for each in found.changes} == {
        "last committed",
        "uncommitted",
        "committed batches",
        "next watermark ms",
    } - {"next watermark ms"}
    assert "last committed: 2 → 3" in render_difference(found)
    same = diff(after, after, (make_report(after, 0), make_report(after, 0)))
    assert render_difference(same) == "nothing moved"


def test_difference_of_two_queries():
    """Another query id, other settings, other state, and offsets measured where both have them."""
    stores = [MemoryStore(packed(f"4.3.0/{name}")) for name in ("agg-hdfs", "agg-rocksdb")]
    before, after = (read_checkpoint(store) for store in stores)
    found = diff(before, after, (make_report(before, 0), make_report(after, 0)))
    what = {each.what for each in found.changes}
    assert not found.same_query
    assert {
        "query id",
        "operator 0 provider",
        "spark.sql.streaming.stateStore.providerClass",
    } <= what
    moved = diff(
        kafka_checkpoint(), before, (make_report(kafka_checkpoint(), 0), make_report(before, 0))
    )
    assert moved.ranges
    assert "NOT the same query id" in render_difference(moved)


def test_times_and_values_are_as_people_write_them():
    """Dates, sizes, spans of versions and words for nothing; JSON keeps the numbers."""
    changes = (
        Change("watermark ms", 0, 1_763_251_200_000),
        Change("next watermark ms", None, 1_763_251_200_000),
        Change("state bytes", 0, 3_400_000),
        Change("operator 0 bytes", None, 1200),
        Change("operator 0 versions", (1, 3), (1, 12)),
        Change("uncommitted", [4], []),
        Change("last planned", None, 4),
        Change("spark.sql.shuffle.partitions", "2", None),
    )
    text = render_difference(Difference(same_query=True, changes=changes, ranges=()))
    assert text.split("\n")[2:] == [
        "watermark: none yet → 2025-11-16 00:00:00 UTC",
        "next watermark: unknown → 2025-11-16 00:00:00 UTC",
        "state size: 0 B → 3.4 MB",
        "operator 0 size: none → 1.2 kB",
        "operator 0 versions: 1-3 → 1-12",
        "uncommitted: 4 → none",
        "last planned: none → 4",
        "spark.sql.shuffle.partitions: 2 → none",
    ]
