"""Blind holds until events keep coming; what was not seen is judged by nobody."""

import pytest
from test_verdict import Story

from streamgauge.exporters.metrics.live_series import Times, freshness_of, live_of_query
from streamgauge.model.observations import Unseen, UnseenCause
from streamgauge.model.transitions import RECOVERY_SECONDS
from streamgauge.model.verdict import BLIND_SECONDS


def _deaf(batches=20):
    """Batches go on, and no event comes."""
    story = Story(trigger_seconds=5.0).start().batch()
    for number in range(batches):
        story.look(batch_id=5 + number)
    assert story.verdict().state == "blind"
    return story


def _jump(story, batches):
    story.life.batch_id += batches
    return story.batch(after=1.0)


def test_one_stray_event_does_not_end_it():
    """Most events are lost: each that comes through is followed by as many that don't."""
    story = _deaf()
    states = []
    for _ in range(20):
        _jump(story, 10)
        states.append(story.verdict().state)
        for number in range(10):
            story.look(batch_id=story.life.batch_id + 2 + number)
            states.append(story.verdict().state)
    assert set(states) == {"blind"}


def test_listener_that_is_back_for_a_moment_does_not_end_it():
    """It is taken off again before it has heard two events; neither polls nor events in between end it."""
    story = Story(trigger_seconds=5.0).start().batch()
    states = []
    for _ in range(20):
        states.append(story.look(listening=False, batch_id=story.life.batch_id + 1).verdict())
        states.append(story.look(listening=True, batch_id=story.life.batch_id + 1).verdict())
        states.append(story.batch(after=1.0).verdict())
        states.append(story.look(listening=False, batch_id=story.life.batch_id + 1).verdict())
        states.append(story.batch(after=1.0).verdict())
    assert {verdict.state for verdict in states} == {"blind"}
    removed = "the listener was removed from this query's session"
    assert {verdict.cause for verdict in states} == {removed}
    for _ in range(8):
        story.look(listening=True, batch_id=story.life.batch_id + 1).batch(after=1.0)
    assert story.verdict().state == "running"


def test_it_ends_when_events_have_come_for_a_while():
    """At least two, for as long as it takes to call a query blind, and without a new gap."""
    story = _deaf()
    _jump(story, 30)
    since = story.now
    assert story.verdict().state == "blind"
    assert "it is seen again" in story.verdict().reason
    while story.now - since < RECOVERY_SECONDS:
        assert story.verdict().state == "blind"
        story.look(after=2.0, batch_id=story.life.batch_id + 1).batch(after=2.0)
    assert story.verdict().state == "running"


def test_query_with_a_long_trigger_comes_back_by_polls():
    """Its second event may be an hour away: polls that miss nothing for as long as its budget are enough."""
    story = _deaf()
    _jump(story, 30)
    since, budget = story.now, story.query.silence_budget
    while story.now - since < budget:
        assert story.verdict().state == "blind"
        story.waiting(phase="waiting_for_trigger")
    assert story.verdict().state == "idle"


def test_query_that_could_not_be_reached_is_back_with_the_second_sign():
    """Nothing was lost on the way, only the sight of it: a stray sign between two failed polls is none."""
    story = Story().start().batch()
    ids = {"query_id": story.life.query_id, "run_id": story.life.run_id}
    for _ in range(5):
        why = "the JVM of the driver does not answer since 10:00:03 UTC"
        unseen = Unseen(**ids, at=story.now, cause=UnseenCause.JVM_SILENT, why=why)
        story.fleet.apply(unseen, story.now)
        assert story.verdict().reason == why
        story.batch()
        assert story.verdict().state == "blind"
        assert story.verdict().cause == "the JVM of the driver does not answer"
    assert story.waiting().verdict().state == "running"


def test_nothing_is_judged_from_what_was_not_seen():
    """No freshness, no trend and no budget from a time without events."""
    story = Story("unknown", None).start()
    for number in range(40):
        story.batch(after=10.0, backlog=100 * number)
    assert story.verdict().state == "falling_behind"
    budget = story.query.silence_budget
    for number in range(200):
        story.look(batch_id=100 + number)
    times = Times(story.now, 0.0)
    found = live_of_query(story.query, story.verdict(), times, frozenset())
    series = {name: value for name, value, _ in found}
    assert "freshness_lag_seconds" not in series
    assert series["query_silence_seconds"] == pytest.approx(1000.0)
    assert freshness_of(story.query, story.now, story.verdict()) is None
    since = _jump(story, 200).now
    while story.now - since < BLIND_SECONDS:
        assert story.verdict().state == "blind"
        story.batch(after=5.0, backlog=10_000)
    assert story.verdict().state == "running"
    assert story.query.silence_budget <= budget + 5.0


CAUSES = [
    ("_hung_batch", "batch 1 in addBatch: tasks run, none finishes"),
    ("_hung_first_batch", "batch 0 in addBatch (sink): no task running"),
    ("_hung_source", "asking the sources for offsets: a source does not answer"),
    ("_retrying_batch", "batch 1: its tasks fail"),
    ("_retry_loop", "batch 1: its jobs fail and are run again"),
    ("_dead_thread", "no event comes, and the query can't be polled"),
    ("_commits_stalled", "data is available and nothing was committed"),
    ("_falling_behind", "the backlog of source 0-kafka grows (rows)"),
    ("_falling_behind_in_files", "the backlog of source 0-delta grows (files)"),
    ("_falling_behind_by_rate", "rows arrive faster than they are processed"),
    ("_restarting", "it is started again and again; its last end: failed (E)"),
    ("_events_missing", "events of its batches do not arrive"),
    ("_listener_removed", "the listener was removed from this query's session"),
    ("_lost", "stopped"),
    ("_failed", "IllegalStateException: batch 7 doesn't exist"),
]


@pytest.mark.parametrize(("name", "cause"), CAUSES, ids=[name for name, _ in CAUSES])
def test_cause_names_what_is_wrong_and_stays_while_it_lasts(name, cause):
    """It becomes a label: no age and no count that moves."""
    import test_verdict

    story = getattr(test_verdict, name)()
    first = story.verdict()
    assert first.cause == cause
    story.now += 7.0
    later = story.verdict()
    assert (later.state, later.cause) == (first.state, first.cause)
