"""What is known of a query follows from its events, whatever their order."""

from stage import Life, apply_to

from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import Gone, QueryStatus, RunDetails


def _handle(fleet, *texts, now=100.0):
    return [apply_to(fleet, decode(text), now) for text in texts]


def _only(fleet):
    (query,) = fleet.queries.values()
    return query


def _sighting(life, at=200.0, **changes):
    values = {"trigger_active": True, "data_available": True, "phase": "processing", **changes}
    return QueryStatus(query_id=life.query_id, run_id=life.run_id, at=at, **values)


def test_names_come_from_the_query():
    """A named query is called so; an unnamed one by the start of its id."""
    fleet = Fleet()
    named, unnamed = Life("orders"), Life(None)
    _handle(fleet, named.started(), unnamed.started())
    labels = {query.label for query in fleet.queries.values()}
    assert labels == {"orders", f"unnamed-{unnamed.query_id[:8]}"}


def test_two_live_queries_of_one_name_dont_mix():
    """The later one gets the start of its id."""
    fleet = Fleet()
    first, second = Life("orders"), Life("orders")
    _handle(fleet, first.started(), second.started())
    assert fleet.queries[first.query_id].label == "orders"
    assert fleet.queries[second.query_id].label == f"orders-{second.query_id[:8]}"


def test_new_checkpoint_under_an_old_name_takes_the_name():
    """After the old query ended, a new id is the same stream to people, and says what it replaced."""
    fleet = Fleet()
    old, new = Life("orders"), Life("orders")
    _handle(fleet, old.started(), old.terminated(), new.started())
    query = _only(fleet)
    assert (query.label, query.replaced_query_id) == ("orders", old.query_id)


def test_another_name_for_the_same_checkpoint_takes_the_place_of_the_old():
    """The label is the name of the run that goes on; whoever shows the old one is told, once, that it is over."""
    fleet = Fleet(silence_floor={"old": 1.0, "new": 2.0}.get)
    life = Life("old")
    _handle(fleet, life.started(), life.progress(), life.terminated("E: x"))
    life.name = "new"
    _handle(fleet, life.started())
    query = _only(fleet)
    assert (query.label, query.name, query.silence_floor) == ("new", "new", 2.0)
    (gone,) = fleet.sweep(101.0)
    assert (gone.label, gone.end) == ("old", None)
    assert gone.run_id != query.run_id
    assert fleet.sweep(102.0) == []


def test_name_that_was_not_known_at_first_is_taken_from_the_next_start():
    """A late listener hears only of an end; the next run says what the query is called."""
    fleet = Fleet()
    life = Life("orders")
    _handle(fleet, life.terminated())
    assert _only(fleet).label == f"unnamed-{life.query_id[:8]}"
    _handle(fleet, life.started())
    assert _only(fleet).label == "orders"


def test_new_name_may_be_that_of_a_query_that_is_over():
    """Two records never share a label."""
    fleet = Fleet()
    over, other = Life("orders"), Life("draft")
    _handle(fleet, over.started(), over.terminated(), other.started(), other.terminated())
    other.name = "orders"
    _handle(fleet, other.started())
    assert _only(fleet).label == "orders"
    assert [query.label for query in fleet.sweep(101.0)] == ["draft"]


def test_every_event_counts_once():
    """What a second listener brings again is known already."""
    fleet = Fleet()
    life = Life()
    texts = [life.started(), life.progress(), life.progress(), life.idle(), life.terminated()]
    assert all(_handle(fleet, *texts))
    assert not any(_handle(fleet, *texts))


def test_restart_keeps_history_and_forgets_the_run():
    """Same query, new run: how the last one ended is still known."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), life.progress(), life.terminated("java.lang.Error: x"))
    _handle(fleet, life.started())
    query = _only(fleet)
    assert query.live
    assert not query.has_batch
    assert query.last_end.outcome == "failed"
    assert len(query.starts) == 2


def test_start_may_overtake_the_end_of_the_run_before():
    """Only Started is sent synchronously, so it can come first."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started())
    late_end = life.terminated("java.lang.Error: x")
    _handle(fleet, life.started(), late_end)
    query = _only(fleet)
    assert query.live
    assert query.last_end.outcome == "failed"


def test_overtaken_run_whose_end_never_comes_is_known_to_have_ended():
    """Once the word of it is too late; a loop of them leaves nothing behind."""
    fleet = Fleet()
    life = Life()
    for n in range(3):
        _handle(fleet, life.started(), now=100.0 + n)
    overtaken = life.terminated("java.lang.Error: x")
    _handle(fleet, life.started(), now=110.0)
    apply_to(fleet, _sighting(life, at=150.0))
    assert _only(fleet).last_end is None
    for n in range(3):
        apply_to(fleet, _sighting(life, at=171.0 + n))
    query = _only(fleet)
    assert query.live
    assert (query.last_end.outcome, query.last_end.at) == ("unknown", 110.0)
    assert fleet._runs._replaced == {}
    assert _handle(fleet, overtaken) == [None]


def test_missed_batches_are_counted():
    """A hole in the batch ids is an event that never came."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), life.progress())
    life.batch_id += 3
    _handle(fleet, life.progress())
    assert _only(fleet).missed == 3


def test_batches_missed_at_the_end_of_a_run_are_counted_once():
    """A look found them done, and the bus, which keeps the order, brought the end before their events."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), life.progress())
    apply_to(fleet, _sighting(life, batch_id=39))
    _handle(fleet, life.terminated())
    assert _only(fleet).missed == 38
    life.batch_id = 38  # 0 was seen, 1 to 38 were not
    _handle(fleet, life.started(), life.progress())
    assert _only(fleet).missed == 38


def test_batches_missed_between_two_runs_are_counted():
    """The checkpoint goes on where the last run ended, whatever was seen of that."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), life.progress(), life.terminated())
    life.batch_id += 4
    _handle(fleet, life.started(), life.progress())
    assert _only(fleet).missed == 4


def test_lost_run_leaves_the_count_to_events_that_may_still_come():
    """A slow bus can bring them after the watchdog has given the run up."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), life.progress())
    apply_to(fleet, _sighting(life, batch_id=3))
    apply_to(fleet, Gone(query_id=life.query_id, run_id=life.run_id, at=300.0, why="gone"))
    assert _only(fleet).missed == 0


def test_look_from_before_the_last_event_says_nothing():
    """It was taken during a batch that has ended since; only its place in the inbox is behind."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), life.progress(), now=250.0)
    assert apply_to(fleet, _sighting(life, at=249.0)) is None
    assert _only(fleet).active_since is None


def test_batch_without_a_duration_is_not_a_batch_of_no_time():
    """Unknown is absent."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), life.progress(durationMs={}, batchDuration=None))
    assert _only(fleet).longest_batch(100.0) is None


def test_listener_added_late_sees_an_idle_query_by_its_name():
    """An idle event has no name; the query waits for a look that knows it."""
    fleet = Fleet()
    life = Life("orders")
    assert _handle(fleet, life.idle()) == [None]
    assert not fleet.queries
    details = RunDetails(query_id=life.query_id, run_id=life.run_id, name="orders")
    assert apply_to(fleet, details, 101.0).label == "orders"
    assert _only(fleet).last_idle_at == 100.0
    assert _only(fleet).started_at is None


def test_inflight_age_starts_at_the_first_active_look_and_resets():
    """An idle poller samples as active now and then; only an unbroken row of looks is an age."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started())
    apply_to(fleet, _sighting(life, 200.0))
    apply_to(fleet, _sighting(life, 205.0))
    assert _only(fleet).inflight_since(206.0) == 200.0
    apply_to(fleet, _sighting(life, 210.0, trigger_active=False))
    assert _only(fleet).inflight_since(211.0) is None
    apply_to(fleet, _sighting(life, 215.0))
    _handle(fleet, life.progress(), now=216.0)
    apply_to(fleet, _sighting(life, 220.0))
    assert _only(fleet).inflight_since(221.0) == 220.0


def test_lost_run_ends_with_unknown_outcome():
    """No Terminated event, and not there any more: how it ended is not known."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started())
    gone = Gone(query_id=life.query_id, run_id=life.run_id, at=300.0, why="stopped")
    assert apply_to(fleet, gone).end.outcome == "unknown"
    assert apply_to(fleet, gone) is None
    assert _handle(fleet, life.terminated()) == [None]


def test_lost_run_whose_failure_spark_still_knows_has_failed():
    """Only the event was lost, not the truth."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started())
    gone = Gone(
        query_id=life.query_id,
        run_id=life.run_id,
        at=300.0,
        why="x",
        exception="java.lang.Error: x",
    )
    assert apply_to(fleet, gone).end.outcome == "failed"


def test_grace_for_what_ended_well_and_none_for_what_failed():
    """A stopped query goes after five minutes; a failed one stays until it starts again."""
    fleet = Fleet(grace_seconds=300)
    good, bad = Life("good"), Life("bad")
    _handle(fleet, good.started(), bad.started(), good.terminated(), bad.terminated("E: x"))
    assert fleet.sweep(399.0) == []
    assert [query.label for query in fleet.sweep(401.0)] == ["good"]
    assert [query.label for query in fleet.fading(401.0)] == ["bad"]
    assert fleet.fading(402.0) == []
    assert list(fleet.queries) == [bad.query_id]


def test_of_too_many_failed_queries_the_first_to_fail_go():
    """A job that makes a new query for each attempt fills no memory; those that live are left alone."""
    fleet = Fleet(failed_limit=3)
    healthy, lives = Life("healthy"), [Life(None) for _ in range(5)]
    _handle(fleet, healthy.started())
    for n, life in enumerate(reversed(lives)):
        _handle(fleet, life.started(), life.terminated("E: x"), now=100.0 + n)
    assert [query.query_id for query in fleet.sweep(200.0)] == [
        life.query_id for life in (lives[4], lives[3])
    ]
    assert fleet.sweep(200.0) == []
    assert set(fleet.queries) == {life.query_id for life in (healthy, *lives[:3])}


def test_past_thousands_of_queries_those_that_ended_first_go(monkeypatch):
    """Whoever keeps something of them is told, so that it can let go as well."""
    monkeypatch.setattr("streamgauge.model.retention._QUERIES_KEPT", 2)
    fleet = Fleet()
    lives = [Life(f"q{n}") for n in range(4)]
    for life in lives:
        _handle(fleet, life.started(), life.terminated())
    assert [query.label for query in fleet.sweep(101.0)] == ["q0", "q1"]
    assert {query.label for query in fleet.queries.values()} == {"q2", "q3"}


def test_budget_grows_with_the_querys_own_pace():
    """Trigger interval, idle interval and long batches all stretch it; nothing shrinks it."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started())
    assert _only(fleet).silence_budget == 300.0
    apply_to(
        fleet,
        RunDetails(
            query_id=life.query_id,
            run_id=life.run_id,
            trigger="processing_time",
            trigger_seconds=600.0,
            idle_seconds=30.0,
        ),
        100.0,
    )
    assert _only(fleet).silence_budget == 1830.0
    _handle(fleet, life.progress(durationMs={"triggerExecution": 900_000}))
    assert _only(fleet).silence_budget == 2730.0


def test_budget_of_a_query_that_ends_by_itself_has_no_trigger_in_it():
    """AvailableNow does not wait between its batches: one long batch is allowed once, not three times more."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started())
    details = RunDetails(query_id=life.query_id, run_id=life.run_id, trigger="available_now")
    apply_to(fleet, details, 100.0)
    _handle(fleet, life.progress(durationMs={"triggerExecution": 600_000}), now=700.0)
    assert _only(fleet).silence_budget == 610.0


def test_budget_learns_from_gaps_where_the_trigger_is_unknown():
    """A query that always speaks every 200 s is not silent after 300."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), now=0.0)
    for n in range(1, 5):
        _handle(fleet, life.progress(), now=200.0 * n)
    assert _only(fleet).silence_budget > 600.0


def test_longest_gap_outlives_restarts():
    """What was learned of an unknown trigger holds for the next runs, whatever their number."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), now=0.0)
    _handle(fleet, life.progress(), now=3600.0)
    for n in range(20):
        _handle(fleet, life.terminated(), life.started(), life.progress(), now=3600.0 + n)
    assert _only(fleet).silence_budget > 3 * 3600.0


def test_memory_of_a_long_life_is_bounded():
    """A million batches leave as much as a thousand."""
    fleet = Fleet()
    life = Life()
    _handle(fleet, life.started(), now=0.0)
    for n in range(3000):
        _handle(fleet, life.progress(), now=float(n * 7))
    query = _only(fleet)
    assert len(query.moments) <= 64
    assert len(query.longest) <= 61
    assert len(query.gaps) <= 10


def test_thousand_restarts_leave_one_record():
    """Starts are remembered for an hour, each of them: a loop is as bad as it is."""
    fleet = Fleet()
    life = Life()
    for n in range(1000):
        started = life.started(f"2026-11-16T00:{n // 60:02}:{n % 60:02}.000Z")
        _handle(fleet, started, life.terminated("E: x"), now=1_794_787_200.0 + n)
    assert len(fleet.queries) == 1
    assert len(_only(fleet).starts) == 1000
    _handle(fleet, life.started(), now=1_794_787_200.0 + 3700)
    assert len(_only(fleet).starts) < 1000
    assert len(fleet._runs._newest) < 100
    assert len(fleet._runs._ended) <= 256
