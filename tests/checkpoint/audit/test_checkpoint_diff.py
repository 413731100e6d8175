"""What moved between two checkpoints, or one at two times."""

from __future__ import annotations

from recorded_checkpoints import kafka_checkpoint, packed

from streamgauge.checkpoint.audit.diff import diff
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
