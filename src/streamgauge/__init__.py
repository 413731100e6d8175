"""streamgauge: the telemetry agent for Apache Spark Structured Streaming.

from streamgauge import TelemetryListener

spark.streams.addListener(TelemetryListener())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .config import Config, ConfigError, QueryConfig
from .version import __version__

if TYPE_CHECKING:
    from .telemetry import TelemetryListener

__all__ = ["Config", "ConfigError", "QueryConfig", "TelemetryListener", "__version__"]


def __getattr__(name: str) -> Any:
    """Import what needs Spark only when it is asked for: most of this package does not."""
    if name != "TelemetryListener":
        raise AttributeError(f"module 'streamgauge' has no attribute {name!r}")
    try:
        from .telemetry import TelemetryListener  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in {"pyspark", "py4j"}:
            raise ImportError(
                "TelemetryListener needs PySpark; a cluster brings its own, "
                "elsewhere: pip install 'streamgauge[spark]'"
            ) from error
        raise
    return TelemetryListener
