"""What `show` shows, as a record, and the paths in it."""

from __future__ import annotations

import pytest
from recorded_checkpoints import kafka_checkpoint

from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.places import is_inside
from streamgauge.checkpoint.reader.report import make_report
from streamgauge.checkpoint.reader.store import MemoryStore


def test_first_offsets_are_shown():
    """Kafka's initial offsets are in the report, where the source keeps them."""
    checkpoint = kafka_checkpoint()
    assert make_report(checkpoint, 0).sources[0].first is None
    files = checkpoint.store.files | {"sources/0/0": b'\0v1\n{"orders":{"0":0}}'}
    assert make_report(read_checkpoint(MemoryStore(files)), 0).sources[0].first == {
        "orders": {"0": 0}
    }


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        ("file:/data/ck/state/0", "/data/ck", True),
        ("file:///data/ck/state/0", "file:/data/ck/", True),
        ("s3a://lake/ck/state/0", "s3://lake/ck", True),
        ("s3a://lake/ck2/state/0", "s3://lake/ck", False),
        ("file:/old/ck/state/0", "/data/ck", False),
    ],
)
def test_places_are_compared_without_their_schemes(path, root, inside):
    """What Spark wrote down and what a person typed is one place."""
    assert is_inside(path, root) is inside
