"""The way into the JVM of a classic application, through what is private in PySpark.

`hasattr` on a Py4J object is always true, so the way to ask whether a Spark has something is to call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamgauge.listener.driver import ApplicationStopped

from .application import active_context


def attempt(read: Callable[[], Any]) -> Any:
    """The result of a call; None when this Spark can't answer it. Raises `ApplicationStopped` only."""
    try:
        return read()
    except ApplicationStopped:
        raise
    except Exception:  # noqa: BLE001 - Py4J raises its own, and which ones depends on the Spark
        return None


def require_context() -> Any:
    """The process's SparkContext; raises `ApplicationStopped` when there is none."""
    context = active_context()
    if context is None:
        raise ApplicationStopped
    return context


def require_jvm() -> Any:
    """The JVM of the application; raises `ApplicationStopped` when there is none."""
    return require_context()._jvm  # noqa: SLF001


def listener_bus() -> Any:
    """Spark's listener bus."""
    return require_context()._jsc.sc().listenerBus()  # noqa: SLF001


def read_numbers(array: Any) -> list[int]:
    """A Java array of numbers, in one call."""
    text = require_jvm().java.util.Arrays.toString(array).strip("[]")
    return [int(number) for number in text.split(",") if number.strip()]
