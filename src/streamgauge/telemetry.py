"""The one line: `spark.streams.addListener(TelemetryListener())`."""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from .agent import Agent
from .config import Config, ConfigError, load_config, make_config
from .listener.bridge import Bridge, text_of, wrap, wrap_nothing
from .listener.inbox import Item
from .listener.stats import Stats

__all__ = ["TelemetryListener"]


class TelemetryListener(StreamingQueryListener):  # type: ignore[misc]
    """Sees every streaming query of the session it is added to.

    Settings are those of `streamgauge.Config`, as keyword arguments, as a `Config`, or as
    `STREAMGAUGE_<FIELD>` variables. Wrong ones in code raise `ConfigError` here; nothing raises
    later. All listeners of a process share one agent, and so one page.

    `registry` puts the metrics into a registry of yours, which you serve; `logger` is a structlog
    logger of yours; `exporters` are more places to tell (see `streamgauge.exporters.Exporter`).
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        registry: Any = None,
        logger: Any = None,
        exporters: Any = (),
        **settings: Any,
    ) -> None:
        if config is not None and settings:
            raise ConfigError("give either a Config or single settings, not both")
        make_config(settings)
        self._config = config
        self._settings = settings
        self._parts = {"registry": registry, "logger": logger, "exporters": exporters}
        self._java: Any = None
        self._agent: Agent | None = None
        effective = config or load_config(settings)[0]
        self.disabled = effective.disabled or os.environ.get("STREAMGAUGE_DISABLED") == "1"

    # ---- what Spark calls ------------------------------------------------------------------

    @property
    def _jlistener(self) -> Any:
        """The Java object that goes on Spark's bus; classic PySpark asks on add and on remove."""
        if self._java is None:
            if self.disabled:
                self._java = wrap_nothing()
                return self._java
            agent = self._start()
            try:
                self._java = wrap(Bridge(agent.inbox, agent.complain))
            except Exception as error:  # noqa: BLE001 - an unknown Spark: its own slow way still works
                agent.complain("bridge", error)
                self._java = super()._jlistener
            agent.listeners.append(self._java)
        return self._java

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Take a public event object; only where the fast path is missing."""
        self._take("started", event)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Take a public event object; only where the fast path is missing."""
        self._take("progress", event)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Take a public event object; only where the fast path is missing."""
        self._take("idle", event)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Take a public event object; only where the fast path is missing."""
        self._take("terminated", event)

    def _take(self, kind: str, event: Any) -> None:
        if self.disabled:
            return
        agent = self._start()
        try:
            agent.inbox.put(Item(kind, text_of(kind, event), _now(), 0.0, fallback=True))
        except Exception as error:  # noqa: BLE001 - nothing may reach Spark
            agent.complain("bridge", error)

    # ---- what users may call ---------------------------------------------------------------

    @property
    def address(self) -> str | None:
        """Where the page is served, once the listener was added; None when it is not."""
        return self._agent.address if self._agent else None

    @property
    def stats(self) -> Stats | None:
        """What the agent has counted of itself."""
        return self._agent.stats if self._agent else None

    def close(self) -> None:
        """Send what is left and stop the process's agent; exit does this by itself."""
        if self._agent:
            self._agent.close()

    def _start(self) -> Agent:
        if self._agent is None:
            self._agent = Agent.join(self._settings, self._config, **self._parts)
            self._agent.start(_app_name())
        return self._agent


def _now() -> float:
    import time  # noqa: PLC0415

    return time.time()


def _app_name() -> str | None:
    from pyspark import SparkContext  # noqa: PLC0415

    context = SparkContext._active_spark_context  # noqa: SLF001
    return context.appName if context is not None else None
