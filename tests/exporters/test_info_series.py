"""Why a query failed, why it is in its state, and when it ended, as series of it."""

import json

import pytest
from exposition import NOW, exporter_alone, look_at, observe, samples_of, tell, wait_until
from stage import Life, value

from streamgauge.config import QueryConfig
from streamgauge.model.observations import Gone, Tasks

SINKS = {
    "foreachBatch": "ForeachBatchSink",
    "kafka": "KafkaSourceProvider@1f2e",
    "memory": "MemorySink",
}


def _reasons(registry):
    return {
        (dict(labels)["state"], dict(labels)["reason"])
        for name, labels in samples_of(registry)
        if name == "streamgauge_query_reason_info"
    }


def test_healthy_query_has_neither_end_nor_reason():
    """Nor has one that was stopped."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    samples = samples_of(registry)
    for name in ("query_ended_timestamp_seconds", "query_failure_info", "query_reason_info"):
        assert value(samples, name) is None
    tell(exporter, fleet, life.terminated(), now=NOW + 5)
    samples = samples_of(registry)
    assert value(samples, "query_ended_timestamp_seconds") == NOW + 5
    assert value(samples, "query_failure_info") is None
    assert _reasons(registry) == set()


def test_reason_of_a_state_stays_as_it_began():
    """However long it lasts, it is one series: no age and no count in its words moves."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), now=NOW)
    wait_until(exporter, NOW + 400)
    (first,) = _reasons(registry)
    assert first[0] == "stalled"
    assert "no event comes" in first[1]
    for later in (415, 1000, 9000):
        wait_until(exporter, NOW + later)
        assert _reasons(registry) == {first}
    tell(exporter, fleet, life.progress(), now=NOW + 9000)
    wait_until(exporter, NOW + 9001)
    assert _reasons(registry) == set()
    wait_until(exporter, NOW + 90_000)
    assert _reasons(registry) == {first}


def test_failure_says_both_classes_and_goes_with_the_next_run():
    """Until then it stays, also past the time for which an ended query is shown."""
    exporter, fleet, registry = exporter_alone(grace_seconds=0)
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    tell(exporter, fleet, life.terminated("a.B: x\n\tat c\nCaused by: a.C: password=hunter2 y"))
    labels = {"error_class": "B", "cause_class": "C"}
    assert value(samples_of(registry), "query_failure_info", **labels) == 1
    assert not any("hunter2" in text for _, labels in samples_of(registry) for _, text in labels)
    assert {state for state, _ in _reasons(registry)} == {"failed"}
    tell(exporter, fleet, life.started())
    samples = samples_of(registry)
    assert value(samples, "query_failure_info") is None
    assert value(samples, "query_ended_timestamp_seconds") is None
    assert _reasons(registry) == set()


def test_labels_are_bounded_and_cut_in_the_middle():
    """Whatever is in the message."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    text = "a.B: begin\n" + "Caused by: a.C: start" + " x" * 5000 + " end\u202e\x00"
    tell(exporter, fleet, life.started(), life.terminated(text))
    for name, labels in samples_of(registry):
        if name in {"streamgauge_query_failure_info", "streamgauge_query_reason_info"}:
            found = dict(labels)
            words = found.get("message") or found["reason"]
            assert len(words) <= 200
            assert " … " in words
            assert "\u202e" not in words


def test_end_that_is_unknown_has_a_reason():
    """Somebody should know why it is gone."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    gone = Gone(query_id=life.query_id, run_id=life.run_id, at=NOW, why="the session died")
    observe(exporter, fleet, gone)
    ((state, reason),) = _reasons(registry)
    assert state == "stopped"
    assert "the session died" in reason


@pytest.mark.parametrize(
    ("sink", "said", "shown"),
    [
        ("foreachBatch", None, None),
        ("foreachBatch", True, 1),
        ("foreachBatch", False, 0),
        ("kafka", None, 0),
        ("kafka", True, 1),
        ("memory", None, 1),
        ("memory", False, 0),
    ],
)
def test_owner_knows_whether_the_sink_is_idempotent(sink, said, shown):
    """The setting wins over what the sink's kind tells; without both it is unknown, and absent."""
    settings = {"orders": QueryConfig(idempotent_sink=said)}
    exporter, fleet, registry = exporter_alone(queries=settings)
    life = Life()
    batch = json.loads(life.progress())
    batch["progress"]["sink"]["description"] = SINKS[sink]
    tell(exporter, fleet, life.started(), json.dumps(batch))
    assert value(samples_of(registry), "sink_idempotent") == shown


def test_hung_batch_keeps_its_first_words():
    """The number of failed tasks moves; the label does not."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    found = set()
    for after in (10, 400, 800, 1200):
        tasks = Tasks(running=1, completed=0, failed=after)
        look_at(exporter, fleet, life, NOW + after, trigger_active=True, tasks=tasks)
        wait_until(exporter, NOW + after)
        found |= _reasons(registry)
    ((state, reason),) = found
    assert state == "stalled"
    assert "its tasks fail" in reason
