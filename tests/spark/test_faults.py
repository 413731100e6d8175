"""The agent may fail; the query may not notice: every batch is committed, every failure counted."""

import socket
import threading
import time

import pytest
from harness import commits
from stage import page, value, wait_for

from streamgauge.exporters import Exporter
from streamgauge.model.verdict import judge
from streamgauge.steady import steady_time

BATCHES = 6


class Broken(Exporter):
    """Raises on everything."""

    name = "broken"

    def handle(self, event, query):
        raise RuntimeError("broken on purpose")

    observe = change = handle


class Stuck(Exporter):
    """Blocks the worker until it is let go."""

    name = "stuck"

    def __init__(self):
        self.let_go = threading.Event()

    def handle(self, event, query):
        self.let_go.wait(60)


def _run(rows, name):
    """Run a query for some batches; what its sink was given, and how long `start()` took."""
    written = []
    writer = rows.writeStream.foreachBatch(lambda frame, n: written.append((n, frame.count())))
    writer = writer.queryName(name).trigger(processingTime="100 milliseconds")
    began = time.monotonic()
    query = writer.start()
    started = time.monotonic() - began
    commits(query, BATCHES)
    query.stop()
    assert query.exception() is None
    assert written[:BATCHES] == [(n, 10) for n in range(BATCHES)]
    return started


def test_exporter_that_raises_on_every_event(listen, rows):
    """It is counted, and the other exporters still get every event."""
    listener = listen(exporters=[Broken()])
    _run(rows, "broken")
    # A stop in the middle of foreachBatch may cost Spark 4.3 its Terminated event; the watchdog sees it.
    wait_for(
        lambda: value(page(listener._agent), "query_active", query="broken") == 0, 60, "the end"
    )
    samples = page(listener._agent)
    assert value(samples, "agent_errors_total", query=None, part="broken") >= BATCHES
    assert value(samples, "batches_total", query="broken", data="true") >= BATCHES


def test_dead_pushgateway(listen, rows):
    """Neither `start()` nor a batch waits for it."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    listener = listen(pushgateway_url=f"http://127.0.0.1:{port}")
    _run(rows, "pushed")
    wait_for(lambda: listener.stats.of("errors").get("pushgateway"), what="the counted failure")


def test_pushgateway_that_accepts_and_says_nothing(listen, rows):
    """A gateway that hangs is as bad as a dead one, and as harmless."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        listener = listen(pushgateway_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert _run(rows, "hanging") < 20
        wait_for(lambda: listener.stats.of("errors").get("pushgateway"), what="the failure")


def test_taken_port(listen, rows):
    """The page moves to the next port, the address says which, and it is counted."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listener = listen(metrics_address=f"127.0.0.1:{port}")
        assert listener.address != f"http://127.0.0.1:{port}"
        _run(rows, "moved")
        assert listener.address.startswith("http://127.0.0.1:")
        assert value(page(listener._agent), "agent_errors_total", query=None, part="server") == 1


def test_unusable_address(listen, rows):
    """An address of another machine can't be served; that is counted, and all."""
    listener = listen(metrics_address="192.0.2.1:9465")
    assert listener.address is None
    _run(rows, "nowhere")
    assert listener.stats.of("errors") == {"server": 1}


def test_full_inbox_and_blocked_worker(listen, rows, monkeypatch):
    """Events wait, then the oldest progress goes; `start()` and batches don't wait at all."""
    for module in ("worker_monitor", "model.verdict"):
        monkeypatch.setattr(f"streamgauge.{module}.BLIND_SECONDS", 2.0)
    stuck = Stuck()
    listener = listen(exporters=[stuck], inbox_limit=3)
    try:
        _run(rows, "full")
        wait_for(lambda: listener._agent.inbox.dropped.get("progress", 0) >= 1, what="a drop")
        samples = page(listener._agent)
        assert value(samples, "agent_events_dropped_total", query=None, kind="progress") >= 1
        assert value(samples, "agent_events_dropped_total", query=None, kind="terminated") == 0
        errors = listener.stats.of
        wait_for(
            lambda: errors("errors").get("worker", 0) == 1, what="the count of a blocked worker"
        )
        assert value(page(listener._agent), "query_state", query="full", state="blind") == 1
    finally:
        stuck.let_go.set()
    wait_for(lambda: value(page(listener._agent), "query_active", query="full") == 0)


@pytest.mark.parametrize("text", ["not json", '{"progress":{}}', '{"progress":' + "[" * 5000])
def test_undecodable_event(listen, rows, monkeypatch, text):
    """A Spark that speaks another language costs numbers, not batches."""
    from streamgauge.listener.classic.queue_bridge import QueueBridge

    handle = QueueBridge._handle

    def garble(self, row, at):
        handle(self, row._replace(text=text) if row.kind == "progress" else row, at)

    monkeypatch.setattr(QueueBridge, "_handle", garble)
    listener = listen()
    _run(rows, "garbled")
    wait_for(lambda: listener.stats.of("errors").get("decoder", 0) >= BATCHES, what="the count")


def test_bridge_that_raises(listen, rows, monkeypatch):
    """Not even an error in the callback itself reaches the query."""
    from streamgauge.listener.inbox import Inbox

    def refuse(*_):
        raise MemoryError("no room")

    listener = listen()
    monkeypatch.setattr(Inbox, "put", refuse)
    _run(rows, "raising")
    assert listener.stats.of("events") == {}


def test_log_that_cant_be_written(listen, rows):
    """A closed standard error is not the query's problem."""
    import io

    from streamgauge.exporters.logs import make_logger

    stream = io.StringIO()
    logger = make_logger("debug", stream)
    stream.close()
    listener = listen(logger=logger)
    _run(rows, "unlogged")
    wait_for(lambda: listener.stats.of("errors").get("logs", 0) >= BATCHES, what="the count")
    wait_for(
        lambda: (
            value(page(listener._agent), "batches_total", query="unlogged", data="true") >= BATCHES
        ),
        what="every batch",
    )


def test_retry_loop_inside_a_batch_is_stalled(listen, rows, monkeypatch):
    """Tasks finish and jobs fail, again and again: `running` is not the word for that."""
    monkeypatch.setattr("streamgauge.model.stall.RETRY_SECONDS", 3.0)
    listener, stop = listen(silence_seconds=1), threading.Event()

    def write(frame, number):
        frame.count()
        while number > 0 and not stop.is_set():
            try:
                frame.foreach(lambda _: 1 / 0)
            except Exception:  # noqa: BLE001 - as people write it
                frame.count()

    query = rows.writeStream.foreachBatch(write).queryName("loop").start()
    agent = listener._agent
    try:
        wait_for(
            lambda: value(page(agent), "query_state", query="loop", state="stalled") == 1,
            90,
            "stalled",
        )
        (found,) = agent.queries.values()
        verdict = judge(found, steady_time())
        assert "failed, and it goes on" in verdict.reason
        assert verdict.cause == "batch 1: its jobs fail and are run again"
        assert value(page(agent), "inflight_task_age_seconds", query="loop") < 10
    finally:
        stop.set()
        query.stop()
