"""The inbox is bounded, loses the least, and never makes Spark wait."""

import threading

from stage import Life

from streamgauge.listener.inbox import GONE, MARK, OBSERVATION, Inbox, Item


def _put(inbox, kind, text):
    inbox.put(Item(kind, text, 0.0))


def test_gives_back_in_order():
    """First in, first out."""
    inbox = Inbox(10)
    for n in range(5):
        _put(inbox, "progress", str(n))
    assert [i.content for i in inbox.take(0)] == ["0", "1", "2", "3", "4"]


def test_full_box_loses_the_oldest_progress_of_the_same_query():
    """Another query's batch, and what a life hangs on, stay."""
    inbox = Inbox(4)
    a, b = Life("a"), Life("b")
    _put(inbox, "started", a.started())
    _put(inbox, "progress", b.progress())
    oldest, newer = a.progress(), a.progress()
    _put(inbox, "progress", oldest.replace(": ", ":"))
    _put(inbox, "progress", newer.replace(": ", ":"))
    _put(inbox, "progress", a.progress().replace(": ", ":"))
    kept = [i.content for i in inbox.take(0)]
    assert len(kept) == 4
    assert oldest.replace(": ", ":") not in kept
    assert inbox.dropped == {"progress": 1}


def test_looks_make_room_and_never_take_it_from_events():
    """An old look is worth nothing, a batch is in the counters; neither a mark nor an end that was seen goes."""
    inbox, life = Inbox(4), Life()
    _put(inbox, OBSERVATION, "old")
    for _ in range(4):
        _put(inbox, "progress", life.progress())
    for kind in (OBSERVATION, GONE, MARK):
        _put(inbox, kind, "new")
    kinds = [item.kind for item in inbox.take(0)]
    assert kinds == ["progress", "progress", GONE, MARK]
    assert inbox.dropped == {"progress": 2}


def test_started_and_terminated_are_never_dropped():
    """They may even pass the limit."""
    inbox = Inbox(2)
    life = Life()
    for _ in range(3):
        _put(inbox, "started", life.started())
        _put(inbox, "terminated", life.terminated())
    _put(inbox, "progress", life.progress())
    assert [i.kind for i in inbox.take(0)] == ["started", "terminated"] * 3
    assert inbox.dropped == {"progress": 1}


def test_memory_has_a_ceiling_all_the_same():
    """A query that dies a thousand times under a blocked worker does not eat the driver."""
    inbox = Inbox(10)
    for _ in range(1000):
        _put(inbox, "terminated", Life().terminated("x"))
    assert len(inbox) == 40
    assert inbox.dropped == {"terminated": 960}


def test_memory_has_a_ceiling_for_long_events_too():
    """A few thousand events of a thousand partitions each are too much, whatever their number."""
    inbox = Inbox(10_000, most_bytes=100_000)
    life = Life()
    _put(inbox, "started", life.started())
    for _ in range(100):
        _put(inbox, "progress", "x" * 9_000)
    _put(inbox, "progress", "x" * 200_000)
    items = inbox.take(0)
    assert sum(len(item.content) for item in items) <= 100_000
    assert [item.kind for item in items] == ["started", *["progress"] * 11]
    assert inbox.dropped == {"progress": 90}


def test_ends_with_long_exceptions_are_bounded_too():
    """The oldest goes when there is nothing else to give up."""
    inbox = Inbox(10_000, most_bytes=100_000)
    for _ in range(100):
        _put(inbox, "terminated", "x" * 9_000)
    assert len(inbox) == 11
    assert inbox.dropped == {"terminated": 89}


def test_room_comes_back_when_the_box_is_emptied():
    """What was taken does not count any more."""
    inbox = Inbox(10, most_bytes=10_000)
    for _ in range(5):
        _put(inbox, "progress", "x" * 9_000)
        assert len(inbox.take(0)) == 1
    assert inbox.dropped == {}


def test_closed_box_keeps_nothing():
    """A listener that is still on Spark's bus does not fill a box that nobody reads."""
    inbox = Inbox(10)
    _put(inbox, "progress", "before")
    inbox.close()
    _put(inbox, "progress", "after")
    assert [item.content for item in inbox.take(0)] == ["before"]


def test_put_never_waits_for_a_reader():
    """A blocked worker costs the oldest progress, not Spark's time."""
    inbox = Inbox(100)
    writer = threading.Thread(target=lambda: [_put(inbox, "progress", "x") for _ in range(10_000)])
    writer.start()
    writer.join(20)
    assert not writer.is_alive()
    assert len(inbox) == 100
    assert inbox.dropped == {"progress": 9900}


def test_take_wakes_up_for_an_item():
    """The reader sleeps until there is something."""
    inbox = Inbox(10)
    threading.Timer(0.05, _put, (inbox, "idle", "x")).start()
    assert [i.content for i in inbox.take(10)] == ["x"]
