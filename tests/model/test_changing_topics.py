"""A topic that is recreated, grows, shrinks, stands still or loses rows: what is told of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_broker import T0, Broker, Reader, check, steady, two_partitions


def test_topic_made_anew_is_no_zero():
    """Offsets that went backwards: the backlog is unknown, the reset is counted, and it recovers."""
    reader = two_partitions()
    reader.broker.rows = {key: steady(1, 600, begin=40) for key in reader.broker.rows}
    reader.probe(T0 + 50)
    assert reader.lag.backlog is None
    assert reader.lag.seconds(T0 + 50) is None
    assert reader.lag.resets == 1
    reader.read = {}
    reader.batch(T0 + 60, 1.0)
    assert reader.lag.backlog == 0
    assert reader.lag.resets == 1


def test_order_of_partitions_means_nothing():
    """Spark 3.5 writes them as its maps have them; another order is no other topic."""
    reader = Reader(Broker({("t0", str(p)): steady(10 + p, 600) for p in range(4)}))
    for n in range(8):
        reader.batch(T0 + 10 + 5 * n, 1.0, limit=100)
        reader.probe(T0 + 12 + 5 * n)
        reader.broker.rows = dict(reversed(reader.broker.rows.items()))
        reader.read = dict(sorted(reader.read.items(), reverse=n % 3 == 0))
        latest = reader.broker.latest(T0 + 12 + 5 * n)
        waits = {key: latest[key] - rows for key, rows in reader.read.items()}
        assert reader.lag.backlogs.by_key() == waits
        check(reader, T0 + 13 + 5 * n)
    assert (reader.lag.added, reader.lag.removed, reader.lag.resets) == (0, 0, 0)


def test_answers_that_overtake_each_other_are_no_reset():
    """A look within a second of Spark's own may show less."""
    reader = two_partitions()
    end = dict(reader.read)
    reader.probe(T0 + 30.5, latest={key: n - 3 for key, n in end.items()})
    assert reader.lag.resets == 0
    assert reader.lag.backlog == 0


def test_added_partition_counts_from_its_beginning():
    """It was empty before it was there; its rows are as old as they are."""
    reader = two_partitions()
    reader.broker.rows["t0", "2"] = steady(10, 600, begin=40)
    reader.probe(T0 + 39)
    reader.probe(T0 + 45)
    lag = reader.lag
    assert (lag.added, lag.removed, lag.resets) == (1, 0, 0)
    assert lag.backlogs.by_key()["t0", "2"] == 50
    check(reader, T0 + 45)
    reader.batch(T0 + 50, 1.0)
    assert reader.lag.backlog == 0
    assert len(reader.lag.end.values) == 3


def test_vanished_topic_goes_and_the_other_stays():
    """What is not there can't be read; what is there still waits."""
    reader = Reader(Broker({("t0", "0"): steady(10, 600), ("t1", "0"): steady(10, 600)}))
    reader.batch(T0 + 10, 1.0)
    reader.batch(T0 + 20, 1.0)
    del reader.broker.rows["t1", "0"]
    reader.probe(T0 + 30, topics=frozenset({"t0", "t1"}))
    assert reader.lag.removed == 1
    assert reader.lag.backlog == 100
    reader.broker.rows.clear()
    reader.probe(T0 + 40, topics=frozenset({"t0", "t1"}))
    assert reader.lag.backlog is None


def test_empty_partition_is_no_trouble():
    """A partition that never had a row waits for nothing, and hides nothing."""
    reader = Reader(Broker({("t0", "0"): [], ("t0", "1"): steady(10, 600)}))
    for n in range(10):
        reader.batch(T0 + 10 + 5 * n, 1.0, limit=40)
        reader.probe(T0 + 12 + 5 * n)
    assert reader.lag.backlogs.by_key()["t0", "0"] == 0
    assert check(reader, T0 + 58) > 5


def test_assigned_partitions_are_all_there_is():
    """A query that names its partitions is not behind on the others."""
    reader = Reader(Broker({("t0", "0"): steady(10, 600)}), description="KafkaV2[Assign[t0-0]]")
    reader.batch(T0 + 10, 1.0)
    reader.broker.rows["t0", "1"] = steady(10, 600)
    reader.probe(T0 + 20)
    assert reader.lag.backlogs.by_key() == {("t0", "0"): 100}


def test_look_at_other_topics_or_of_the_past_changes_nothing():
    """A sum with a missing part is withheld; an old answer is no news."""
    reader = two_partitions()
    before = reader.lag
    reader.probe(T0 + 90, topics=frozenset({"other"}))
    reader.probe(T0 + 15.01)
    reader.probe(T0 + 90, kind="pulsar")
    assert reader.lag is before


def test_stalled_partition():
    """One that has rows and gives none, while others move."""
    reader = two_partitions()
    start, latest = dict(reader.read), {key: n + 100 for key, n in reader.read.items()}
    reader.read["t0", "0"] += 50
    reader.told(T0 + 40, 1.0, start, latest)
    assert reader.lag.stalled == 1
    assert reader.lag.limited is True
    assert reader.lag.backlog == 150


def test_replayed_batch_says_nothing_of_the_source():
    """No latest offset: rate limit and drain are unknown, and its end is beyond what was seen."""
    reader = two_partitions()
    start = dict(reader.read)
    reader.read = {key: n + 10 for key, n in start.items()}
    reader.told(T0 + 500, 1.0, start, None)
    assert reader.lag.limited is None
    assert reader.lag.backlog is None
    assert reader.lag.seconds(T0 + 501) is None
    assert reader.lag.drain(T0 + 501) is None


def test_clock_set_back_begins_anew():
    """A driver whose clock was put right an hour does not go blind for an hour."""
    reader = two_partitions()
    reader.broker.rows = {key: [t - 3600 for t in v] for key, v in reader.broker.rows.items()}
    for n in range(3):
        reader.batch(T0 - 3560 + 5 * n, 1.0)
    assert reader.lag.backlog == 0
    assert reader.lag.resets == 0


OPERATIONS = ("batch", "throttled", "probe", "add", "renew", "drop", "stop")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(OPERATIONS), max_size=25))
def test_whatever_happens_to_a_topic(operations):
    """Right after a look the backlog is the broker's, partition by partition, or absent."""
    reader = Reader(Broker({("t0", "0"): steady(10, 2000), ("t1", "0"): steady(3, 2000)}))
    reader.batch(T0 + 1, 0.2)
    now, resets = T0 + 1, 0
    for number, operation in enumerate(operations):
        now += 7
        rows = reader.broker.rows
        if operation == "add":
            rows["t0", str(number + 1)] = steady(5, 2000, begin=now - T0)
        elif operation == "renew":
            begin = now - T0
            reader.broker.rows = {
                key: steady(2, 2000, begin=begin) if key[0] == "t0" else times
                for key, times in rows.items()
            }
            resets += 1
        elif operation == "drop":
            rows.pop(("t1", "0"), None)
            reader.read.pop(("t1", "0"), None)
        elif operation == "stop":
            reader.broker.rows = {k: [t for t in v if t <= now] for k, v in rows.items()}
        elif operation == "probe":
            reader.probe(now, topics=frozenset({"t0", "t1"}))
            _agree(reader, now)
        else:
            latest = reader.broker.latest(now)
            reader.read = {k: min(n, latest[k]) for k, n in reader.read.items() if k in latest}
            reader.batch(now, 0.2, limit=20 if operation == "throttled" else None)
    assert reader.lag.resets <= resets


def _agree(reader: Reader, now: float) -> None:
    latest = reader.broker.latest(now)
    waits = {key: rows - reader.read.get(key, 0) for key, rows in latest.items()}
    if reader.lag.backlogs is not None:
        assert reader.lag.backlogs.by_key() == waits
    else:
        assert min(waits.values(), default=-1) < 0  # recreated: what was read is not there
    if any(waits.values()):
        assert reader.lag.seconds(now) != 0.0


# ---- retention --------------------------------------------------------------------------------


def test_headroom_is_retention_less_the_age_of_the_first_unread_row():
    """And the whole retention while nothing waits."""
    reader = two_partitions()
    keep = {"t0": 100.0}
    reader.probe(T0 + 31, retention=keep)
    assert reader.lag.headroom(T0 + 31) == pytest.approx(99, abs=1)
    reader.probe(T0 + 91, retention=keep)
    assert reader.lag.headroom(T0 + 91) == pytest.approx(100 - 61, abs=1)
    assert reader.lag.headroom(T0 + 95) == pytest.approx(100 - 65, abs=1)
    assert reader.lag.lost == 0
    assert Reader.lag.fget(two_partitions()).headroom(T0 + 50) is None


def test_rows_that_retention_took_are_counted_once():
    """Earliest past the committed: lost, now and after the query went on behind the gap."""
    reader = two_partitions()
    keep = {"t0": 60.0}
    gone = {key: n + 20 for key, n in reader.read.items()}
    reader.probe(T0 + 100, earliest=gone, retention=keep)
    assert reader.lag.headroom(T0 + 100) == 0.0
    assert reader.lag.lost == 40
    assert reader.lag.seconds(T0 + 100) == pytest.approx(68, abs=3)
    reader.probe(T0 + 105, earliest=gone, retention=keep)
    assert reader.lag.lost == 40
    reader.batch(T0 + 110, 1.0)
    assert reader.lag.lost == 40
    assert reader.lag.gone == 0


def test_look_while_the_query_is_down():
    """The agent lives, the query has failed: its lag goes on growing."""
    reader = two_partitions()
    reader._tell(reader.life.terminated("E: x"), T0 + 33)
    reader.probe(T0 + 90)
    assert reader.lag.backlog == 2 * 600
    assert check(reader, T0 + 90) > 50
