"""The thread that reads the queue in the JVM outlives what goes wrong with a call."""

import time

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from stage import wait_for

from streamgauge.listener.classic import queue_bridge
from streamgauge.listener.classic.jvm_queue import Row, Taken, _utf16_length
from streamgauge.listener.classic.queue_bridge import QueueBridge
from streamgauge.listener.inbox import FAILURE, Inbox


class Queue:
    """Gives an event per call, and raises what it is told to."""

    def __init__(self):
        self.errors, self.number, self.is_open = [], 0, True

    def take(self, _):
        if self.errors:
            raise self.errors.pop(0)
        time.sleep(0.001)
        self.number += 1
        return Taken([Row(self.number, 0, "progress", "{}")], [], left=0, dropped=0, stamp=0)

    def open(self):
        self.is_open = True

    def shut(self):
        self.is_open = False


class JavaError(Py4JJavaError):
    """What the JVM threw, without a JVM."""

    def __init__(self):
        Exception.__init__(self, "thrown")

    def __str__(self):
        return "thrown"


@pytest.fixture
def bridge(monkeypatch):
    """A bridge whose queue is not in a JVM."""
    queue, gateway = Queue(), object()
    monkeypatch.setattr(queue_bridge, "find_gateway", lambda: gateway)
    monkeypatch.setattr(queue_bridge, "JvmQueue", lambda *_, **__: queue)
    monkeypatch.setattr(queue_bridge, "active_context", lambda: gateway)
    monkeypatch.setattr(queue_bridge, "_PAUSE_SECONDS", 0.01)
    made = QueueBridge(Inbox(1_000_000))
    made.of_test = queue
    yield made
    made._inbox.close()


@pytest.mark.parametrize("error", [Py4JNetworkError("broken"), JavaError()])
def test_reading_goes_on_after_errors(bridge, error):
    """One connection that breaks, or a JVM that throws a few times, must not make us deaf."""
    bridge.listen()
    wait_for(lambda: bridge.of_test.number > 3, 10)
    bridge.of_test.errors += [error] * 5
    wait_for(lambda: not bridge.of_test.errors, 10)
    seen = bridge.of_test.number
    wait_for(lambda: bridge.of_test.number > seen + 3, 10)
    assert bridge.of_test.is_open
    failures = [item for item in bridge._inbox.take(0.1) if item.kind == FAILURE]
    assert bool(failures) is isinstance(error, JavaError)


def test_reading_ends_with_the_application(bridge, monkeypatch):
    """Then an error is no reason to try again."""
    bridge.listen()
    wait_for(lambda: bridge.of_test.number > 1, 10)
    monkeypatch.setattr(queue_bridge, "active_context", lambda: None)
    bridge.of_test.errors += [Py4JNetworkError("gone")]
    wait_for(lambda: not bridge.of_test.is_open, 10)
    assert bridge.drain(1)


@pytest.mark.parametrize(("text", "length"), [("", 0), ("abc", 3), ("ü", 1), ("orders 🚀", 9)])
def test_length_is_as_java_counts(text, length):
    """A character outside the basic plane is two units there, and an answer is cut by units."""
    assert _utf16_length(text) == length
