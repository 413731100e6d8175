"""streamgauge: the telemetry agent for Apache Spark Structured Streaming.

from streamgauge import TelemetryListener

spark.streams.addListener(TelemetryListener())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .config import Config, ConfigError, QueryConfig
from .version import __version__

if TYPE_CHECKING:
    from streamgauge.checkpoint import describe
    from streamgauge.checkpoint import preflight_query as preflight

    from .attachment import attach, detach
    from .foreach import batch_span
    from .telemetry import TelemetryListener

__all__ = [
    "Config",
    "ConfigError",
    "QueryConfig",
    "TelemetryListener",
    "__version__",
    "attach",
    "batch_span",
    "describe",
    "detach",
    "preflight",
]
_LATER = {  # public name → module, name in it
    "TelemetryListener": ("telemetry", "TelemetryListener"),
    "attach": ("attachment", "attach"),
    "batch_span": ("foreach", "batch_span"),
    "describe": ("checkpoint", "describe"),
    "detach": ("attachment", "detach"),
    "preflight": ("checkpoint", "preflight_query"),
}


def __getattr__(name: str) -> Any:
    """Import the rest only when it is asked for: most of this package needs no Spark."""
    if name not in _LATER:
        raise AttributeError(f"module 'streamgauge' has no attribute {name!r}")
    try:
        module = import_module(f".{_LATER[name][0]}", __name__)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in {"pyspark", "py4j"}:
            raise ImportError(
                f"{name} needs PySpark; a cluster brings its own, "
                "elsewhere: pip install 'streamgauge[spark]'"
            ) from error
        raise
    return getattr(module, _LATER[name][1])
