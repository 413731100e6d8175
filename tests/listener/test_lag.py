"""How far behind, in rows and in seconds, against a broker whose every row has a known time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_broker import T0, Broker, Reader, steady

KEYS = [(f"t{t}", str(p)) for t in range(3) for p in range(8)]


def even(rate: float, seconds: float) -> Broker:
    """3 topics x 8 partitions, a different pace in each."""
    return Broker({key: steady(rate * (1 + n % 5), seconds) for n, key in enumerate(KEYS)})


def check(reader: Reader, now: float, slack: float = 0.0) -> float | None:
    """Lag is within 10 % or 1 s of the producer's clock, or absent; never a false zero."""
    found = reader.lag.seconds(now)
    since = reader.broker.oldest_unread(reader.read, now)
    true = 0.0 if since is None else now - since
    if found is not None:
        assert abs(found - true) <= max(1.0, 0.1 * true) + slack, (found, true)
    return found


def test_throttled_then_hung_then_probed_no_more():
    """A query that reads half of what arrives, then hangs: the lag is the producer's, to the second."""
    reader = Reader(even(20, 1200))
    now, seen = T0 + 1, 0
    for _ in range(60):
        reader.batch(now, 4.5, limit=5 * 20 * 24)
        now += 5
        reader.probe(now - 2)
        seen += check(reader, now) is not None
    assert seen == 60
    for _ in range(100):  # it hangs
        now += 5
        reader.probe(now)
        found = check(reader, now)
    assert found > 500
    reader.probe(now)
    waits = {k: n - reader.read[k] for k, n in reader.broker.latest(now).items()}
    assert reader.lag.backlogs.by_key() == waits
    assert reader.lag.backlog == sum(waits.values())


def test_without_the_probe():
    """Spark's own latest offsets will do while the query moves, and a hung one's lag still grows."""
    reader = Reader(even(20, 600))
    now = T0 + 1
    for n in range(50):
        reader.batch(now, 4.5, limit=5 * 20 * 24)
        now += 5
        assert check(reader, now) is not None or not n  # one look is too few
    for _ in range(20):
        now += 10
        assert check(reader, now) > 50


def test_query_that_keeps_up_is_behind_by_the_time_since_its_trigger():
    """Right after a commit all was read as of the trigger, and rows came in since."""
    reader = Reader(even(20, 600))
    for n in range(20):
        reader.batch(T0 + 1 + 10 * n, 8.0)
        for after in (8.1, 9.0, 14.0) if n else ():
            assert check(reader, T0 + 1 + 10 * n + after) is not None
    assert reader.lag.backlog == 0
    assert reader.lag.seconds(T0 + 400) is None  # nobody has looked for minutes


def test_caught_up_and_quiet_is_zero():
    """The producer stopped, the query idles: no lag."""
    reader = Reader(even(20, 60))
    for n in range(10):
        reader.batch(T0 + 1 + 10 * n, 1.0)
    for n in range(30):
        reader.idle(T0 + 110 + 10 * n)
    assert reader.lag.seconds(T0 + 405) == 0.0
    assert reader.lag.drain(T0 + 405) == 0.0


def test_rows_from_before_the_agent_have_no_age():
    """What was there when the agent began may be an hour old or a day: absent, until it was read."""
    reader = Reader(Broker({("t0", "0"): steady(100, 600)}))
    for n in range(10):
        reader.batch(T0 + 300 + 5 * n, 1.0, limit=1000)
        assert reader.lag.seconds(T0 + 302 + 5 * n) is None
        assert reader.lag.backlog > 0
    reader.batch(T0 + 350, 1.0, limit=25_000)
    assert check(reader, T0 + 352) is not None


def test_looks_at_the_past_give_old_rows_their_age():
    """What the broker says of the hours before the agent's start is as good as having been there."""
    reader = Reader(even(5, 1500))
    reader.read = {key: n + 7 for key, n in reader.broker.latest(T0 + 100).items()}
    reader.batch(T0 + 1000, 1.0, limit=500)
    reader.probe(T0 + 1005)
    assert reader.lag.seconds(T0 + 1006) is None
    for ago in (300, 10, 950, 900, 600, 120, 60, 30):
        reader.probe(T0 + 1000 - ago)
    assert check(reader, T0 + 1006) > 800
    assert reader.lag.history.newest.at == T0 + 1005
    before = reader.lag
    reader.probe(T0 + 500, latest=dict.fromkeys(KEYS, 1))  # does not fit what came before
    reader.probe(T0 + 500, latest=dict.fromkeys(KEYS, 10**6))
    reader.probe(T0 + 400)  # is there already
    assert reader.lag is before


def test_drain_is_told_within_a_quarter():
    """At the present pace; the time that it then takes is within 25 % of it."""
    reader = Reader(Broker({key: steady(10, 3000) for key in KEYS}))
    reader.read = dict.fromkeys(KEYS, 0)
    now, told, drained = T0 + 600, [], None
    while drained is None:
        reader.batch(now, 4.0, limit=5 * 10 * 24 * 2)
        if (left := reader.lag.drain(now + 4.0)) is not None and left > 30:
            told.append((now + 4.0, left))
        if not reader.lag.backlog:
            drained = now + 4.0
        now += 5
    assert len(told) > 50
    for at, left in told:
        assert abs(at + left - drained) <= 0.25 * (drained - at) + 5, (at - T0, left)


def test_drain_never_comes():
    """More arrives than is read, or the next batch is overdue: absent."""
    reader = Reader(Broker({key: steady(10, 3000) for key in KEYS}))
    for n in range(10):
        reader.batch(T0 + 100 + 5 * n, 4.0, limit=100)
    assert reader.lag.drain(T0 + 150) is None
    for n in range(10):
        reader.batch(T0 + 150 + 5 * n, 4.0, limit=5000)
    assert reader.lag.drain(T0 + 200) is not None
    assert reader.lag.drain(T0 + 300) is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lag_is_the_producers_to_the_gap_between_two_looks(data):
    """Whenever rows come in, the lag errs at most by the looks around them; and a backlog is no 0."""
    gaps = st.lists(st.floats(0.01, 30.0), min_size=1, max_size=40)
    rows = {}
    for key in KEYS[: data.draw(st.integers(1, 5))]:
        at, times = T0, []
        for gap in data.draw(gaps):
            at += gap
            times.append(at)
        rows[key] = times
    reader = Reader(Broker(rows))
    now = T0
    for _ in range(data.draw(st.integers(2, 30))):
        step = data.draw(st.floats(0.5, 20.0))
        now += step
        if data.draw(st.booleans()):
            reader.batch(now, 0.3, limit=data.draw(st.sampled_from([None, 1, 5, 50])))
            now += 0.3
        elif "0-kafka" in reader.fleet.queries[reader.life.query_id].lags:
            reader.probe(now)
            waits = {k: n - reader.read.get(k, 0) for k, n in reader.broker.latest(now).items()}
            assert reader.lag.backlogs is None or reader.lag.backlogs.by_key() == waits
            if any(waits.values()):
                assert reader.lag.seconds(now) != 0.0
            check(reader, now, slack=_widest(reader))


def _widest(reader: Reader) -> float:
    points = reader.lag.history.points
    return max((b.at - a.at for a, b in pairwise(points)), default=0.0)


@settings(max_examples=40, deadline=None)
@given(
    hours=st.floats(0.1, 30.0),
    every=st.floats(1.0, 60.0),
    rate=st.floats(1.0, 500.0),
)
def test_hours_of_history_stay_within_a_tenth(hours, every, rate):
    """However long it hangs, and however often it is looked at: bounded points, and a right age."""
    reader = Reader(Broker({("t0", "0"): []}))
    reader.broker.latest = lambda at: {("t0", "0"): int(rate * (at - T0))}
    reader.batch(T0 + 60, 1.0)
    reader.batch(T0 + 120, 1.0)
    now = T0 + 120
    for _ in range(min(2000, int(hours * 3600 / every))):
        now += every
        reader.probe(now)
    assert len(reader.lag.history.points) <= 128
    true = now - T0 - (reader.read["t0", "0"] + 1) / rate
    assert reader.lag.seconds(now) == pytest.approx(true, rel=0.1, abs=1.0)


# ---- topics that change -----------------------------------------------------------------------


def _two() -> Reader:
    reader = Reader(Broker({("t0", "0"): steady(10, 600), ("t0", "1"): steady(10, 600)}))
    for n in range(5):
        reader.batch(T0 + 10 + 5 * n, 1.0)
    return reader


def test_topic_made_anew_is_no_zero():
    """Offsets that went backwards: the backlog is unknown, the reset is counted, and it recovers."""
    reader = _two()
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
    reader = _two()
    end = dict(reader.read)
    reader.probe(T0 + 30.5, latest={key: n - 3 for key, n in end.items()})
    assert reader.lag.resets == 0
    assert reader.lag.backlog == 0


def test_added_partition_counts_from_its_beginning():
    """It was empty before it was there; its rows are as old as they are."""
    reader = _two()
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
    reader = _two()
    before = reader.lag
    reader.probe(T0 + 90, topics=frozenset({"other"}))
    reader.probe(T0 + 15.01)
    reader.probe(T0 + 90, kind="pulsar")
    assert reader.lag is before


def test_stalled_partition():
    """One that has rows and gives none, while others move."""
    reader = _two()
    start, latest = dict(reader.read), {key: n + 100 for key, n in reader.read.items()}
    reader.read["t0", "0"] += 50
    reader.told(T0 + 40, 1.0, start, latest)
    assert reader.lag.stalled == 1
    assert reader.lag.limited is True
    assert reader.lag.backlog == 150


def test_replayed_batch_says_nothing_of_the_source():
    """No latest offset: rate limit and drain are unknown, and its end is beyond what was seen."""
    reader = _two()
    start = dict(reader.read)
    reader.read = {key: n + 10 for key, n in start.items()}
    reader.told(T0 + 500, 1.0, start, None)
    assert reader.lag.limited is None
    assert reader.lag.backlog is None
    assert reader.lag.seconds(T0 + 501) is None
    assert reader.lag.drain(T0 + 501) is None


def test_clock_set_back_begins_anew():
    """A driver whose clock was put right an hour does not go blind for an hour."""
    reader = _two()
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
        assert min(waits.values(), default=-1) < 0  # made anew: what was read is not there
    if any(waits.values()):
        assert reader.lag.seconds(now) != 0.0


# ---- retention --------------------------------------------------------------------------------


def test_headroom_is_retention_less_the_age_of_the_first_unread_row():
    """And the whole retention while nothing waits."""
    reader = _two()
    keep = {"t0": 100.0}
    reader.probe(T0 + 31, retention=keep)
    assert reader.lag.headroom(T0 + 31) == pytest.approx(99, abs=1)
    reader.probe(T0 + 91, retention=keep)
    assert reader.lag.headroom(T0 + 91) == pytest.approx(100 - 61, abs=1)
    assert reader.lag.headroom(T0 + 95) == pytest.approx(100 - 65, abs=1)
    assert reader.lag.lost == 0
    assert Reader.lag.fget(_two()).headroom(T0 + 50) is None


def test_rows_that_retention_took_are_counted_once():
    """Earliest past the committed: lost, now and after the query went on behind the gap."""
    reader = _two()
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
    reader = _two()
    reader._tell(reader.life.terminated("E: x"), T0 + 33)
    reader.probe(T0 + 90)
    assert reader.lag.backlog == 2 * 600
    assert check(reader, T0 + 90) > 50
