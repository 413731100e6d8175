"""streamgauge: the telemetry agent for Apache Spark Structured Streaming.

from streamgauge import TelemetryListener

spark.streams.addListener(TelemetryListener())
"""

from __future__ import annotations

from importlib import import_module

from .version import __version__

TYPE_CHECKING = False  # typing's own costs as much as all of this module
if TYPE_CHECKING:
    from typing import Any

    from streamgauge.checkpoint import describe
    from streamgauge.checkpoint import preflight_query as preflight

    from .attachment import attach, detach
    from .config import Config, ConfigError, QueryConfig
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
    "Config": ("config", "Config"),
    "ConfigError": ("config", "ConfigError"),
    "QueryConfig": ("config", "QueryConfig"),
    "TelemetryListener": ("telemetry", "TelemetryListener"),
    "attach": ("attachment", "attach"),
    "batch_span": ("foreach", "batch_span"),
    "describe": ("checkpoint", "describe"),
    "detach": ("attachment", "detach"),
    "preflight": ("checkpoint", "preflight_query"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a command needs few of them, and most need no Spark."""
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


def __dir__() -> list[str]:
    """Every public name, also those that are not imported yet."""
    return sorted({*globals(), *__all__})
