"""Somebody sets the driver's clock while an agent runs: ages go on, and the page's times are the new clock's."""

import time
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry
from stage import Life, QuietDriver, feed, page, value

from streamgauge import steady
from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.exporters import Exporter
from streamgauge.steady import steady_time, wall_offset
from streamgauge.testing import Player

HOUR = 3600.0


@pytest.fixture
def wall(monkeypatch):
    """A wall clock that a test sets; the monotonic one runs on."""
    step = [0.0]
    clock = SimpleNamespace(time=lambda: time.time() + step[0], monotonic=time.monotonic)
    monkeypatch.setattr(steady, "time", clock)
    return step


class Listening(Exporter):
    """An exporter of the user's own."""

    name = "listening"

    def __init__(self):
        self.updates = []

    def export(self, update):
        self.updates.append(update)


@pytest.fixture
def agent():
    """An agent at work, whose exporter is the test's."""
    heard = Listening()
    made = Agent(
        make_config({"app": "shop", "log_level": "off"}),
        registry=CollectorRegistry(auto_describe=False),
        exporters=[heard],
        driver=QuietDriver(),
    )
    made.heard = heard
    made.start()
    yield made
    made.close()


def _stamp(ago=0.0, step=0.0):
    at = time.time() - ago + step
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{text}.{int(at % 1 * 1000):03d}Z"


def test_clock_is_the_wall_clock_until_somebody_sets_that(wall):
    """And no step moves it."""
    assert steady_time() == pytest.approx(time.time(), abs=1.0)
    assert wall_offset() == 0.0
    before = steady_time()
    for step in (HOUR, -HOUR):
        wall[0] = step
        assert steady_time() == pytest.approx(before, abs=1.0)
        assert wall_offset() == step


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_step_changes_no_age_and_no_verdict(agent, wall, step):
    """Neither before the next event nor after it; what is a time is that of the new clock."""
    life = Life()
    feed(agent, life.started(_stamp(20)), life.progress(_stamp(10)))
    before = page(agent)
    wall[0] = step
    feed(agent, life.progress(_stamp(1, step)))
    after = page(agent)
    for name in ("query_silence_seconds", "query_commit_age_seconds", "freshness_lag_seconds"):
        assert value(after, name) < 15.0, name
    for state in ("running", "stalled", "blind"):
        known = [value(samples, "query_state", state=state) for samples in (before, after)]
        assert known[0] == known[1]
    assert value(after, "silence_budget_seconds") == value(before, "silence_budget_seconds")
    assert value(after, "agent_heartbeat_age_seconds", query=None) < 5.0
    now = time.time() + step
    assert value(after, "agent_clock_timestamp_seconds", query=None) == pytest.approx(now, abs=1.0)
    for name, ago in (("last_event", 0), ("last_commit", 0.5)):
        assert value(after, f"{name}_timestamp_seconds") == pytest.approx(now - ago, abs=2.0), name


def test_batch_with_a_step_in_it_is_in_no_bucket_of_an_hour(agent, wall):
    """Histogram, maximum and budget get what the steady clock allows."""
    life = Life()
    feed(agent, life.started(_stamp(20)), life.progress(_stamp(10)))
    began = _stamp(4)
    wall[0] = HOUR
    feed(
        agent,
        life.progress(began, durationMs={"triggerExecution": 3_604_000, "addBatch": 3_603_000}),
    )
    samples = page(agent)
    assert value(samples, "batch_duration_seconds_sum") < 15.0
    assert value(samples, "batch_duration_max_seconds") < 15.0
    assert value(samples, "phase_duration_seconds_total", phase="add_batch") < 15.0
    assert value(samples, "silence_budget_seconds") == 300.0  # the floor


def test_others_are_told_in_wall_time(agent, wall):
    """Traces, logs and users' exporters write times down."""
    life = Life()
    wall[0] = HOUR
    feed(agent, life.started(_stamp(1, HOUR)), life.progress(_stamp(1, HOUR)))
    update = agent.heard.updates[-1]
    assert update.at == pytest.approx(time.time() + HOUR, abs=2.0)
    assert update.cause.ended_at == pytest.approx(time.time() + HOUR, abs=2.0)
    assert update.query.started_at == pytest.approx(time.time() + HOUR - 1, abs=2.0)


def test_player_has_no_clock_but_its_own():
    """Events of any year play alike."""
    with Player() as player:
        life = Life()
        player.play(life.started(), life.progress())
        assert player.value("query_silence_seconds", "orders") == 0.0
        player.wait(7.0)
        assert player.value("query_silence_seconds", "orders") == 7.0
        assert player.value("query_commit_age_seconds", "orders") == 7.0
        assert player.value("query_uncommitted_seconds", "orders") == 7.0
        player.play(life.idle("2026-11-16T00:00:20.000Z")).wait(2.0)
        assert player.value("query_uncommitted_seconds", "orders") == 2.0
        assert player.value("query_commit_age_seconds", "orders") > 10.0
        player.play(life.terminated())
        assert player.value("query_silence_seconds", "orders") is None
