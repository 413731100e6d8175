"""The only place where Spark's events enter Python: one Py4J call per event, and no work.

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

from streamgauge.listener.inbox import Inbox, Item
from streamgauge.steady import steady_time


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
            text, fallback = _read(kind, jevent)
            spent = time.perf_counter() - began
            self._inbox.put(Item(kind, text, steady_time(), spent, fallback))
        except Exception as error:  # noqa: BLE001 - nothing may reach Spark
            self._inbox.put_failure(error)

    class Java:
        """What Py4J needs to make a Java object of this class."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def _read(kind: str, jevent: Any) -> tuple[str, bool]:
    """The JSON of an event, and whether PySpark's public objects had to be asked for it."""
    try:
        return jevent.json(), False
    except Exception:  # noqa: BLE001 - an unknown Spark: the public objects still work
        from pyspark.sql.streaming import listener  # noqa: PLC0415 - only where it is needed

        name = f"Query{kind.capitalize()}Event"
        return text_of(kind, getattr(listener, name).fromJObject(jevent)), True


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


def wrap(bridge: Bridge) -> Any:
    """A Java listener that calls this bridge; raise when this Spark has no such thing."""
    jvm = _jvm()
    return jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(bridge)


def wrap_nothing() -> Any:
    """A Java listener that does nothing, without a single call into Python.

    Spark's `addListener` insists on some object; the kill switch gives it this one.
    """
    jvm = _jvm()
    interface = jvm.java.lang.Class.forName(
        "org.apache.spark.sql.streaming.PythonStreamingQueryListener",
        True,
        jvm.java.lang.Thread.currentThread().getContextClassLoader(),
    )
    nothing = jvm.java.beans.EventHandler.create(interface, jvm.java.lang.Object(), "hashCode")
    return jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(nothing)


def _jvm() -> Any:
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark is an extra

    return SparkContext._jvm  # noqa: SLF001 - there is no public way to the JVM
