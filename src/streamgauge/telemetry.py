"""The one line: `spark.streams.addListener(TelemetryListener())`."""

from __future__ import annotations

from typing import Any

from streamgauge.listener.classic.application import active_context, describe_application
from streamgauge.listener.host import SparkKind
from streamgauge.listener.stream_listener import StreamListener
from streamgauge.model.stats import Stats

from .agent import Agent
from .config import Config, ConfigError
from .environment import load_config
from .summary import summarize, to_html

__all__ = ["TelemetryListener"]


class TelemetryListener(StreamListener):
    """Sees every streaming query of the session it is added to.

    Settings are those of `streamgauge.Config`, as keyword arguments, as a `Config`, or as
    `STREAMGAUGE_<FIELD>` variables. Wrong ones in code raise `ConfigError` here; nothing raises
    later. All listeners of a process share one agent, and so one page.

    `registry` puts the metrics into a registry of yours, which you serve; `logger` is a structlog
    logger of yours; `tracer_provider` writes traces through a provider of yours, which you close;
    `exporters` are more places to tell (see `streamgauge.exporters.Exporter`).
    """

    _agent: Agent | None

    def __init__(
        self,
        config: Config | None = None,
        *,
        registry: Any = None,
        logger: Any = None,
        exporters: Any = (),
        tracer_provider: Any = None,
        **settings: Any,
    ) -> None:
        if config is not None and settings:
            raise ConfigError("give either a Config or single settings, not both")
        effective = config or load_config(settings)[0]
        # Whoever runs the job has the last word, whatever its code says.
        super().__init__(disabled=effective.disabled or load_config({})[0].disabled)
        self._config = config
        self._settings = settings
        self._parts = {
            "registry": registry,
            "logger": logger,
            "exporters": exporters,
            "tracer_provider": tracer_provider,
        }
        self._log_level = effective.log_level

    @property
    def address(self) -> str | None:
        """Where the page is served, once the listener was added; None when it is not."""
        return self._agent.address if self._agent else None

    @property
    def stats(self) -> Stats | None:
        """What the agent has counted of itself."""
        return self._agent.stats if self._agent else None

    def __repr__(self) -> str:
        """Address, queries and verdicts, once the listener was added."""
        if self._agent is None:
            return f"<TelemetryListener {self._outside}>"
        return summarize(self._agent, "TelemetryListener")

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        return to_html(self._agent) if self._agent else f"<p>streamgauge: {self._outside}</p>"

    @property
    def _outside(self) -> str:
        return "off" if self.disabled else "not added yet: spark.streams.addListener(…)"

    def close(self) -> None:
        """Send what is left and stop the process's agent at once; exit does this by itself.

        Unlike exit it waits for no scrape: right after `stop()` it looks like a driver that was killed.
        """
        if self._agent:
            self._agent.flush()
            self._agent.close()

    def _join(self, kind: SparkKind) -> Agent | None:
        """One whose agent can't be made is off from then on."""
        try:
            agent = Agent.join(self._settings, self._config, kind=kind, **self._parts)
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, `addListener` must not notice
            self._turn_off(error)
            return None
        agent.start(describe_application(active_context()))
        return agent

    def _turn_off(self, error: Exception) -> None:
        from streamgauge.exporters.logs import make_logger  # noqa: PLC0415 - once, if ever

        self.disabled = True
        make_logger(self._log_level).error(
            "the agent can't be made, and the listener is off; the query is not affected",
            error=f"{type(error).__name__}: {error}",
        )
