"""What `streamgauge lag` makes of a checkpoint's and a broker's word, and how it tells it."""

from streamgauge.lag import Lag, measure, render
from streamgauge.model.sources.broker_offsets import BrokerOffsets

LOOK = BrokerOffsets(
    kind="kafka",
    topics=frozenset({"a", "gone"}),
    earliest={("a", "0"): 0, ("a", "1"): 40, ("a", "2"): 0, ("a", "10"): 2},
    latest={("a", "0"): 100, ("a", "1"): 50, ("a", "2"): 7, ("a", "10"): 9},
    retention={"a": 60.0},
    at=1000.0,
)
READ = {("a", "0"): 90, ("a", "1"): 30, ("a", "2"): 8, ("gone", "0"): 5, ("hidden", "0"): 1}


def by_partition():
    """What is measured, by topic and partition."""
    return {(part.topic, part.partition): part for part in measure("0", READ, LOOK)}


def test_rows_behind_and_rows_lost():
    """Lost rows are part of those behind: from the committed offset to the end."""
    parts = by_partition()
    assert (parts["a", "0"].behind, parts["a", "0"].lost) == (10, 0)
    assert (parts["a", "1"].behind, parts["a", "1"].lost) == (20, 10)
    assert parts["a", "1"].finding == "10 rows were deleted before they were read"


def test_a_new_partition_is_read_from_its_beginning():
    """All that it holds is behind, and none of it lost."""
    new = by_partition()["a", "10"]
    assert (new.committed, new.behind, new.lost, new.finding) == (None, 7, 0, None)


def test_what_can_not_be_compared_is_unknown():
    """A topic recreated, one that is gone, and one of which the broker told nothing."""
    parts = by_partition()
    assert (parts["a", "2"].behind, "recreated" in parts["a", "2"].finding) == (None, True)
    assert (parts["gone", "0"].behind, "not on the" in parts["gone", "0"].finding) == (None, True)
    assert (parts["hidden", "0"].behind, parts["hidden", "0"].finding) == (None, None)


def test_partitions_in_their_order():
    """Ten comes after two."""
    assert [p.partition for p in measure("0", READ, LOOK) if p.topic == "a"] == [
        "0",
        "1",
        "2",
        "10",
    ]


def test_the_table():
    """The answer first, then what is wrong, then a row a partition; unknown is a question mark."""
    parts = measure("0", READ, LOOK)
    found = Lag(
        checkpoint="/c",
        batch=None,
        at=1000.0,
        behind=None,
        lost=None,
        headroom=None,
        findings=["a 1: 10 rows were deleted before they were read"],
        partitions=parts,
    )
    lines = render(found).splitlines()
    assert lines[0] == "an unknown number of rows behind, as of no committed batch"
    assert lines[1] == "! a 1: 10 rows were deleted before they were read"
    assert lines[3].split() == [
        *("topic", "partition", "committed", "earliest", "latest"),
        *("behind", "headroom", "lost"),
    ]
    assert lines[4].split() == ["a", "0", "90", "0", "100", "10", "?", "0"]
    assert lines[6].split() == ["a", "2", "8", "0", "7", "?", "-", "?"]
