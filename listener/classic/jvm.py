"""The way into the JVM of a classic application, through what is private in PySpark.

`hasattr` on a Py4J object is always true, so the way to ask whether a Spark has something is to call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamgauge.listener.driver import ApplicationStopped, DriverUnreachable

from .application import active_context


def attempt(read: Callable[[], Any]) -> Any:
    """The result of a call; None when this Spark can't answer it.

    Raises `ApplicationStopped` and `DriverUnreachable` only.
    """
    try:
        return reach(read)
    except (ApplicationStopped, DriverUnreachable):
        raise
    except Exception:  # noqa: BLE001 - Py4J raises its own, and which ones depends on the Spark
        return None


def reach(read: Callable[[], Any]) -> Any:
    """The result of a call; raises what it raises, and `DriverUnreachable` where the JVM does not answer."""
    try:
        return read()
    except Exception as error:
        unreachable = explain(error)
        if unreachable is error:
            raise
        raise unreachable from error


def explain(error: BaseException) -> BaseException:
    """`DriverUnreachable` for an error of the connection to the JVM; else the error itself."""
    found: BaseException | None = error
    chain: list[BaseException] = []
    while found is not None and found not in chain:
        chain.append(found)
        found = found.__cause__ or found.__context__
    if any(isinstance(each, DriverUnreachable) for each in chain[:1]):
        return error
    if any(isinstance(each, ConnectionRefusedError) for each in chain):
        return DriverUnreachable("the JVM of the driver is gone: connection refused", gone=True)
    if any(_is_of_connection(each) for each in chain):
        return DriverUnreachable("the connection to the JVM of the driver is broken")
    return error


def _is_of_connection(error: BaseException) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, ConnectionError) or "Py4JNetworkError" in names


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
