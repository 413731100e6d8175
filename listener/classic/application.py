"""The hooks in a classic Spark application: its end, and a place on its bus for every session.

Both rest on what is private in PySpark or Spark, and the same on all of 3.5 to 4.3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from streamgauge.listener.driver import ApplicationInfo

_HOOKS = "_streamgauge_hooks"
_BUS_CLASSES = (
    "org.apache.spark.sql.execution.streaming.runtime.StreamingQueryListenerBus",  # 4.1 and newer
    "org.apache.spark.sql.execution.streaming.StreamingQueryListenerBus",  # 3.5, 4.0
)


def active_context() -> Any:
    """The process's SparkContext; None when there is none, as in a Connect client.

    One that is just starting is there before it has what this asks for, and does not count yet.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark is an extra

    context = SparkContext._active_spark_context  # noqa: SLF001 - there is no public way
    return context if getattr(context, "_jsc", None) is not None else None


def describe_application(context: Any) -> ApplicationInfo:
    """What a SparkContext says of its application; any thread, and it never raises.

    Unknown is None: there is no context, or its JVM is shutting down.
    """
    return ApplicationInfo(
        name=_text(lambda: context.appName),
        app_id=_text(lambda: context.applicationId),
        spark_version=_text(lambda: context.version),
    )


def _text(read: Callable[[], Any]) -> str | None:
    try:
        found = read()
    except Exception:  # noqa: BLE001 - Py4J's own errors, or no context at all
        return None
    return None if found is None else str(found)


def hook_stop(stoppable: Any, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Have `before` and `after` called around a context's or session's `stop()`, in its caller's thread.

    This patches the object's `stop`, once; a later call replaces the hooks of an earlier one, also where
    somebody has wrapped `stop` since. They must not raise.
    """
    hooks = getattr(stoppable, _HOOKS, None)
    if hooks is not None:
        hooks[:] = before, after
        return
    hooks = [before, after]
    stop = stoppable.stop

    @functools.wraps(stop)
    def stop_with_hooks(*args: Any, **kwargs: Any) -> Any:
        hooks[0]()
        try:
            return stop(*args, **kwargs)
        finally:
            hooks[1]()

    setattr(stoppable, _HOOKS, hooks)
    stoppable.stop = stop_with_hooks


def unhook_stop(stoppable: Any) -> None:
    """Have nothing called around `stop()` any more."""
    hooks = getattr(stoppable, _HOOKS, None)
    if hooks is not None:
        hooks[:] = _do_nothing, _do_nothing


def _do_nothing() -> None:
    pass


def listen_everywhere(context: Any, java_listener: Any) -> Any:
    """Put a Java listener where the events of every session pass; the bus that was made for it.

    Each session's own bus drops the events of other sessions' queries; a bus without a session
    drops nothing. Raises what Py4J raises where this Spark has no such class.
    """
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415

    ensure_callback_server_started(context._gateway)  # noqa: SLF001 - as `addListener` does
    bus = _make_bus(context._jvm)  # noqa: SLF001
    bus.addListener(java_listener)
    context._jsc.sc().listenerBus().addToQueue(bus, "streams")  # noqa: SLF001
    return bus


def stop_listening_everywhere(context: Any, bus: Any) -> None:
    """Take such a bus off again."""
    context._jsc.sc().listenerBus().removeListener(bus)  # noqa: SLF001


def _make_bus(jvm: Any) -> Any:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _BUS_CLASSES:
        try:
            jvm.java.lang.Class.forName(name, False, loader)
        except Exception:  # noqa: BLE001, S112 - Py4J's; another Spark has it under another name
            continue
        bus_class = functools.reduce(getattr, name.split("."), jvm)
        return bus_class(jvm.scala.Option.empty())
    raise RuntimeError(
        f"this Spark has none of {', '.join(_BUS_CLASSES)}; "
        "use spark.streams.addListener(TelemetryListener()) in each session"
    )
