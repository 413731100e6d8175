"""How far behind, in rows and in seconds, against a broker whose every row has a known time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_broker import T0, Broker, Reader, check, steady

KEYS = [(f"t{t}", str(p)) for t in range(3) for p in range(8)]


def even(rate: float, seconds: float) -> Broker:
    """3 topics x 8 partitions, a different pace in each."""
    return Broker({key: steady(rate * (1 + n % 5), seconds) for n, key in enumerate(KEYS)})


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
