"""Where Spark's events enter Python if the queue in the JVM can't be had: one call per event, and no work.

PySpark's own wrapper turns each event into Python objects with hundreds of Py4J calls before user code
runs, on the one thread that serves every listener of the application. A class
of ours that implements the same Java interface asks the Java event for its JSON once.

Everything here runs on Spark's threads: `onQueryStarted` inside `start()`, the rest on the listener
bus. Nothing here waits, not even for a log, and nothing raises: the worker reports failures.
"""

from __future__ import annotations

import json
import time
from typing import Any

from streamgauge.listener.host import Host
from streamgauge.listener.inbox import Inbox, Item
from streamgauge.steady import steady_time

from .method_handles import MethodHandles


class Bridge:
    """What the JVM calls back. The method names are Spark's."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def onQueryStarted(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        """Take a start; `start()` waits for this to return."""
        self._take("started", jevent)

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802
        """Take a batch."""
        self._take("progress", jevent)

    def onQueryIdle(self, jevent: Any) -> None:  # noqa: N802
        """Take an idle trigger."""
        self._take("idle", jevent)

    def onQueryTerminated(self, jevent: Any) -> None:  # noqa: N802
        """Take an end."""
        self._take("terminated", jevent)

    def _take(self, kind: str, jevent: Any) -> None:
        began = time.perf_counter()
        try:
            text = _read(kind, jevent)
            spent = time.perf_counter() - began
            self._inbox.put(Item(kind, text, steady_time(), spent, fallback=True))
        except Exception as error:  # noqa: BLE001 - nothing may reach Spark
            self._inbox.put_failure(error)

    class Java:
        """What Py4J needs to make a Java object of this class."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def _read(kind: str, jevent: Any) -> str:
    """The JSON of an event, from PySpark's public objects if it has none."""
    try:
        return str(jevent.json())
    except Exception:  # noqa: BLE001 - an unknown Spark: the public objects still work
        from pyspark.sql.streaming import listener  # noqa: PLC0415 - only where it is needed

        name = f"Query{kind.capitalize()}Event"
        return text_of(kind, getattr(listener, name).fromJObject(jevent))


def text_of(kind: str, event: Any) -> str:
    """The JSON of one of PySpark's public event objects."""
    if kind == "progress":
        return f'{{"progress":{event.progress.json}}}'
    fields: dict[str, Any] = {"id": str(event.id), "runId": str(event.runId)}
    if kind == "terminated":
        fields["exception"] = event.exception
        fields["errorClassOnException"] = event.errorClassOnException
    else:
        fields["timestamp"] = event.timestamp
    if kind == "started":
        fields["name"] = event.name
    return json.dumps(fields)


def wrap_callback(host: Host) -> Any:
    """A Java listener that calls Python; raise when this Spark has no such thing."""
    return wrap_bridge(Bridge(host.inbox))


def wrap_bridge(bridge: Any) -> Any:
    """A Java listener around an object that has the four methods, in Python or in the JVM."""
    jvm = find_gateway().jvm
    return jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(bridge)


def wrap_nothing() -> Any:
    """A Java listener that does nothing, without a single call into Python.

    Spark's `addListener` insists on some object; the kill switch gives it this one.
    """
    handles = MethodHandles(find_gateway())
    interface = handles.load("org.apache.spark.sql.streaming.PythonStreamingQueryListener")
    return wrap_bridge(handles.implement(interface, handles.nothing("Object")))


def find_gateway() -> Any:
    """The way to PySpark's JVM; None before there is one."""
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark is an extra

    return SparkContext._gateway  # noqa: SLF001 - there is no public way to the JVM
