"""A worker that is stuck makes every query blind, and that is a verdict like any other."""

import io
import threading

import structlog
from stage import Life, QuietDriver, feed, wait_for

from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.error_guard import ErrorGuard
from streamgauge.exporters import Exporter
from streamgauge.heartbeat import Heartbeat
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.verdict import BLIND_SECONDS
from streamgauge.model.verdict_log import VerdictLog
from streamgauge.worker_monitor import WorkerMonitor


class Clock:
    """Time that a test moves."""

    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


class Blocking(Exporter):
    """Takes nothing until it is let go."""

    name = "blocking"

    def __init__(self):
        self.let_go = threading.Event()

    def export(self, update):
        self.let_go.wait(20)


def _monitored():
    clock, fleet, told = Clock(), Fleet(), []
    for name in ("orders", "clicks"):
        fleet.apply(decode(Life(name).started()), clock())
    ended = Life("ended")
    fleet.apply(decode(ended.started()), clock())
    fleet.apply(decode(ended.terminated()), clock())
    heartbeat = Heartbeat(clock)
    guard = ErrorGuard(structlog.wrap_logger(structlog.PrintLogger(io.StringIO())))
    monitor = WorkerMonitor(
        heartbeat=heartbeat,
        queries=lambda: fleet.queries,
        verdicts=VerdictLog(),
        guard=guard,
        log=told.append,
        clock=clock,
    )
    return monitor, clock, heartbeat, guard, told


def test_stuck_worker_is_told_once_for_every_live_query():
    """Not while it works, not again while it stays stuck; of ended queries there is nothing to say."""
    monitor, clock, heartbeat, guard, told = _monitored()
    monitor.check()
    assert told == []
    clock.now += BLIND_SECONDS + 1
    monitor.check()
    monitor.check()
    wait_for(lambda: len(told) == 2, what="both verdicts")
    assert {update.query.label for update in told} == {"orders", "clicks"}
    assert {update.verdict.state for update in told} == {"blind"}
    assert guard.stats.of("errors") == {"worker": 1}
    heartbeat.beat()
    monitor.check()
    clock.now += BLIND_SECONDS + 1
    monitor.check()
    wait_for(lambda: guard.stats.of("errors") == {"worker": 2}, what="the second time")


def test_blind_and_its_end_are_in_the_log():
    """The line comes while the worker is stuck, from another thread; the next update tells the end."""
    clock, blocking, stream = Clock(), Blocking(), io.StringIO()
    logger = structlog.wrap_logger(
        structlog.PrintLogger(stream), processors=[structlog.processors.JSONRenderer()]
    )
    agent = Agent(
        make_config({"app": "shop", "metrics_address": "", "watch_seconds": 0.05}),
        exporters=[blocking],
        logger=logger,
        driver=QuietDriver(),
        clock=clock,
    )
    agent.start()
    try:
        life = Life()
        feed(agent, life.started(), settle=False)
        wait_for(lambda: "query started" in stream.getvalue(), what="the start")
        clock.now += BLIND_SECONDS + 5
        wait_for(lambda: '"state": "blind"' in stream.getvalue(), what="the verdict")
        blocking.let_go.set()
        feed(agent, life.progress(), settle=False)
        wait_for(lambda: '"before": "blind"' in stream.getvalue(), what="its end")
    finally:
        blocking.let_go.set()
        agent.close()
