"""A collector that is down, slow or refuses: bounded, counted to the span, quiet, quickly over."""

import logging
import os
import subprocess
import sys
import threading
import time

import pytest
from collectors import free_port, store
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from stage import ROOT, Life, feed, page, value, wait_for

from streamgauge.exporters.traces.outbox import Outbox


class Slow(SpanExporter):
    """Takes its time, and notes what it got."""

    def __init__(self, result=SpanExportResult.SUCCESS):
        self.go = threading.Event()
        self.called = threading.Event()
        self.batches = []
        self.result = result

    def export(self, spans):
        """Wait until the test says so."""
        self.called.set()
        self.go.wait(30)
        self.batches.append(list(spans))
        return self.result

    def shutdown(self):
        """An exporter that does not listen."""


class Counted(dict):
    """Counts by outcome."""

    def __call__(self, outcome, spans):
        """Add to one."""
        self[outcome] = self.get(outcome, 0) + spans


def _post(outbox, spans):
    outbox.post([object()] * spans)


def test_full_queue_drops_whole_traces_and_counts_each_span():
    """What fits is sent, what does not is counted; no trace is sent in part."""
    exporter, counted, complaints = Slow(), Counted(), []
    outbox = Outbox(
        lambda: exporter, counted, complaints.append, limit=20, batch=8, delay_seconds=0.01
    )
    _post(outbox, 7)
    assert exporter.called.wait(10)
    for _ in range(4):
        _post(outbox, 7)  # two fit beside nothing: the first is on its way
    assert counted == {"dropped": 14}
    exporter.go.set()
    wait_for(lambda: counted.get("exported") == 21)
    outbox.close(1.0)
    assert counted == {"exported": 21, "dropped": 14}
    assert [len(batch) for batch in exporter.batches] == [7, 7, 7]
    assert "no room for 7 spans in a queue of 20" in str(complaints[0])


def test_refused_spans_are_failed():
    """The exporter said no: counted, and the next ones are tried."""
    exporter, counted, complaints = Slow(SpanExportResult.FAILURE), Counted(), []
    exporter.go.set()
    outbox = Outbox(lambda: exporter, counted, complaints.append, delay_seconds=0.01)
    _post(outbox, 3)
    wait_for(lambda: counted == {"failed": 3})
    _post(outbox, 4)
    wait_for(lambda: counted == {"failed": 7})
    assert len(complaints) == 2
    outbox.close(1.0)


def test_exporter_that_can_not_be_made_is_tried_again():
    """Its failure is told; when it works later, spans go out."""
    exporter, counted, complaints = Slow(), Counted(), []
    exporter.go.set()
    tries = []

    def make():
        tries.append(1)
        if len(tries) < 3:
            raise OSError("not yet")
        return exporter

    outbox = Outbox(make, counted, complaints.append, delay_seconds=0.01)
    _post(outbox, 1)
    wait_for(lambda: counted.get("failed") == 1)
    _post(outbox, 2)
    wait_for(lambda: counted.get("exported") == 2)
    outbox.close(1.0)


def test_close_gives_up_in_time_and_counts_what_was_left():
    """On its way or in the queue: what was not sent by then is dropped, and counted once."""
    exporter, counted = Slow(), Counted()
    outbox = Outbox(lambda: exporter, counted, lambda _: None, batch=5, delay_seconds=0.01)
    _post(outbox, 5)
    assert exporter.called.wait(10)
    _post(outbox, 3)
    began = time.monotonic()
    outbox.close(0.5)
    assert time.monotonic() - began < 0.8
    assert counted == {"dropped": 8}
    exporter.go.set()
    outbox._thread.join(5)
    assert counted == {"dropped": 8}
    _post(outbox, 1)
    assert counted == {"dropped": 9}


def test_close_sends_what_is_left():
    """A collector that works gets everything, however long the delay."""
    exporter, counted = Slow(), Counted()
    exporter.go.set()
    outbox = Outbox(lambda: exporter, counted, lambda _: None, delay_seconds=3600.0)
    _post(outbox, 3)
    outbox.close(5.0)
    assert counted == {"exported": 3}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_dead_collector(agent, monkeypatch, caplog, protocol):
    """Nobody listens: metrics are right, spans are counted, one complaint, quick to close."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
    complaints = []
    made = agent()
    made.guard.report_error = lambda part, error: complaints.append((part, error))
    life = Life()
    feed(made, life.started(), *(life.progress() for _ in range(30)))
    assert value(page(made), "batches_total", data="true") == 30
    wait_for(lambda: made.stats.of("spans").get("failed", 0) >= 8)
    began = time.monotonic()
    made.close()
    assert time.monotonic() - began < 2.2
    spans = made.stats.of("spans")
    assert spans.get("exported", 0) == 0
    assert spans["failed"] + spans["dropped"] == 1 + 30 * 7
    assert made.stats.of("errors")["traces"] == 1 + 30 * 7
    assert {part for part, _ in complaints} == {"traces"}
    assert not [
        r for r in caplog.records if r.name.startswith(("opentelemetry", "urllib3", "grpc"))
    ]


def test_refusing_collector_is_told_by_its_status(agent, monkeypatch):
    """What the exporter would have logged is in our own complaint."""
    with store(status=403) as refusing:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{refusing.port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        complaints = []
        made = agent()
        made.guard.report_error = lambda _, error: complaints.append(str(error))
        life = Life()
        feed(made, life.started(), life.progress())
        wait_for(lambda: made.stats.of("spans") == {"failed": 8})
        assert any("403" in words for words in complaints)


def test_slow_collector_delays_nothing(agent, monkeypatch):
    """It takes the request and does not answer; events are handled, and the end is in time."""
    with store(hold=threading.Event()) as slow:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{slow.port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        made = agent()
        life = Life()
        feed(made, life.started(), life.progress())
        wait_for(lambda: slow.requests == 1)
        feed(made, *(life.progress() for _ in range(20)))
        assert value(page(made), "batches_total", data="true") == 21
        began = time.monotonic()
        made.close()
        assert time.monotonic() - began < 2.2
        assert made.stats.of("spans") == {"dropped": 8 + 20 * 7}


def test_users_own_exporter_keeps_its_log_lines(agent, monkeypatch, caplog):
    """Only what our thread says is held back; levels, handlers and other threads are untouched."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    made = agent()
    life = Life()
    feed(made, life.started(), life.progress())
    name = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    wait_for(lambda: logging.getLogger(name).filters, what="the exporter's first try")
    logging.getLogger(name).error("the user's own")
    assert [r.getMessage() for r in caplog.records if r.name == name] == ["the user's own"]
    made.close()
    wait_for(lambda: not logging.getLogger(name).filters)


def test_process_with_a_dead_collector_exits_in_time():
    """From the last line of the program to the end of our part in its exit, and not a word."""
    program = """
import atexit, sys, time
sys.path.insert(0, "tests")
from stage import Life, QuietDriver, feed
from streamgauge.listener.driver import ApplicationInfo
from streamgauge.agent import Agent
from streamgauge.config import make_config
atexit.register(lambda: print(time.monotonic() - last))  # runs after what is registered later
agent = Agent(make_config({"metrics_address": "", "log_level": "off"}), driver=QuietDriver())
agent.start(ApplicationInfo("shop"))
life = Life()
feed(agent, life.started(), *(life.progress() for _ in range(100)))
time.sleep(1)
last = time.monotonic()
"""
    environ = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "10"}
    environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{free_port()}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, env=environ, cwd=ROOT,
    )  # fmt: skip
    assert 0.5 < float(done.stdout) < 2.2  # it did try
    assert done.stderr == ""
