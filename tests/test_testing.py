"""What ships for users' own tests: events played without Spark, and what came of them."""

import threading

import pytest
from stage import EVENTS, Life

from streamgauge import ConfigError
from streamgauge.exporters import Exporter
from streamgauge.model.decoder import UndecodableEvent
from streamgauge.model.events import Progress, Started
from streamgauge.testing import InMemoryExporter, Player


def test_recorded_events_give_numbers_and_verdicts():
    """As a user's test would ask for them."""
    life = Life()
    with Player() as player:
        player.play(life.started(), life.progress(), life.progress())
        assert player.value("input_rows_total", query="orders") == 20
        assert player.value("batches_total", query="orders", data="true") == 2
        assert player.verdict("orders").state == "running"
        player.play(life.terminated("java.io.IOException: gone", "IO"))
        assert player.verdict("orders").state == "failed"
        assert [type(event) for event in player.memory.events[:2]] == [Started, Progress]
        assert [after.state for _, after in player.memory.changes][-1] == "failed"
    assert player.memory.closed


def test_time_is_that_of_the_events():
    """Waiting makes a silent query stalled, at once and without a clock."""
    life = Life()
    with Player(silence_seconds=60) as player:
        player.play(life.started(), life.progress())
        assert player.wait(30).verdict("orders").state != "stalled"
        assert player.wait(60).verdict("orders").state == "stalled"
        assert player.value("query_state", query="orders", state="stalled") == 1


def test_forgets_after_the_grace_period():
    """A query that ended well leaves the page."""
    life = Life()
    with Player(grace_seconds=10) as player:
        player.play(life.started(), life.progress(), life.terminated()).wait(11)
        assert player.memory.forgotten == ["orders"]
        assert player.value("query_active", query="orders") is None


def test_files_mappings_and_lines(tmp_path):
    """An event may be a text, a mapping, a file, or a line of a file."""
    import json

    life = Life()
    lines = tmp_path / "events.jsonl"
    lines.write_text(f"{life.started()}\n{life.progress()}\n")
    one = tmp_path / "one.json"
    one.write_text(json.dumps(json.loads(life.progress()), indent=2))
    with Player() as player:
        player.play(lines, one, json.loads(life.progress()))
        assert player.value("batches_total", query="orders", data="true") == 3


def test_every_recorded_event_of_ours_can_be_played():
    """Real events of every Spark version."""
    for path in sorted(EVENTS.glob("*/progress-*.json")):
        with Player() as player:
            player.play(path)
            assert not player.errors
            assert isinstance(player.memory.events[0], Progress)


def test_own_exporter_that_fails_is_counted():
    """As in production: the others still get the event."""

    class Broken(Exporter):
        name = "mine"

        def handle(self, event, query):
            raise RuntimeError("no")

    other = InMemoryExporter()
    with Player(exporters=[Broken(), other]) as player:
        player.play(Life().started())
        assert player.errors["mine"] == 1
        assert len(other.events) == 1


def test_wrong_things_raise():
    """What is not an event, and what is not a setting."""
    with Player() as player, pytest.raises(UndecodableEvent):
        player.play("{}")
    with pytest.raises(ConfigError, match="silence_seconds"):
        Player(silence_second=1)


def test_starts_no_thread():
    """Nothing runs beside the test."""
    before = threading.active_count()
    with Player() as player:
        player.play(Life().started())
        assert threading.active_count() == before
