"""The one line: `spark.streams.addListener(TelemetryListener())`."""

from __future__ import annotations

import sys
import time
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from streamgauge.exporters.logs import make_logger
from streamgauge.listener.classic.application import active_context
from streamgauge.listener.classic.bridge import Bridge, text_of, wrap, wrap_nothing
from streamgauge.listener.connect.client import keep_off
from streamgauge.listener.connect.patches import let_exit
from streamgauge.listener.inbox import Item
from streamgauge.model.stats import Stats

from .agent import Agent
from .config import Config, ConfigError, load_config

__all__ = ["TelemetryListener"]


class TelemetryListener(StreamingQueryListener):  # type: ignore[misc]
    """Sees every streaming query of the session it is added to.

    Settings are those of `streamgauge.Config`, as keyword arguments, as a `Config`, or as
    `STREAMGAUGE_<FIELD>` variables. Wrong ones in code raise `ConfigError` here; nothing raises
    later. All listeners of a process share one agent, and so one page.

    `registry` puts the metrics into a registry of yours, which you serve; `logger` is a structlog
    logger of yours; `tracer_provider` writes traces through a provider of yours, which you close;
    `exporters` are more places to tell (see `streamgauge.exporters.Exporter`).
    """

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
        self._config = config
        self._settings = settings
        self._parts = {
            "registry": registry,
            "logger": logger,
            "exporters": exporters,
            "tracer_provider": tracer_provider,
        }
        self._java: Any = None
        self._places = 0  # sessions that it was added to, less those that it was removed from
        self._connect = False
        self.everywhere = False  # with Connect: follow every session that the client makes
        self._agent: Agent | None = None
        effective = config or load_config(settings)[0]
        self._log_level = effective.log_level
        # Whoever runs the job has the last word, whatever its code says.
        self.disabled = effective.disabled or load_config({})[0].disabled

    # ---- what Spark calls ------------------------------------------------------------------

    @property
    def _jlistener(self) -> Any:
        """The Java object that goes on Spark's bus; classic PySpark asks on add and on remove."""
        removal = _is_for_removal()
        if self.closed and not removal:
            self._agent = self._java = None  # added again: a new agent
        if self._java is None:
            self._java = self._wrap()
        if self._agent is not None and not self.closed:
            self._watch_application(self._agent)
            self._count(self._agent, removal=removal)
        return self._java

    def _count(self, agent: Agent, *, removal: bool) -> None:
        """Have the agent know the Java object for as long as it is on some session's bus."""
        if removal:
            self._places -= 1
        else:
            self._places = self._places + 1 if agent.knows(self._java) else 1
            agent.know(self._java)
        if self._places <= 0:
            agent.let_go(self._java)

    def _wrap(self) -> Any:
        """A Java listener; on an unknown Spark the slow one of PySpark, which has always worked."""
        agent = self._start()
        if agent is None:
            try:
                return wrap_nothing()
            except Exception:  # noqa: BLE001 - the switch must not fail; `_take` lets events go
                return super()._jlistener
        try:
            java = wrap(Bridge(agent.inbox))
        except Exception as error:  # noqa: BLE001 - whatever it is that this Spark lacks
            agent.inbox.put_failure(error)
            java = super()._jlistener
        return java

    def _watch_application(self, agent: Agent) -> None:
        context = active_context()
        if context is not None:
            agent.watch(context, context.appName, **_resource())

    def _set_spark_session(self, session: Any) -> None:
        """Connect calls this on each add, before the listener is on the client's bus.

        The base class keeps the first session for good; a client may have a second one.
        """
        self.spark = session
        if self.closed:
            self._agent = None  # added again: a new agent
        agent = self._start()
        if agent is None:
            _stay_off(session)
            return
        self._connect = True
        let_exit()
        try:
            agent.follow(session, self, everywhere=self.everywhere)
        except Exception as error:  # noqa: BLE001 - a Connect we don't know: events still come
            agent.inbox.put_failure(error)

    def _init_listener_id(self) -> None:
        """Only Connect of Spark 3.5 calls this, before it sends the listener to the server.

        The error is the final word there, of the kind that PySpark itself raises for what Connect lacks.
        """
        raise NotImplementedError(  # not a hole of ours: 3.5's Connect can't have it
            "Spark 3.5's Connect runs listeners in a worker process of the server, where their "
            "metrics can't be served; use Connect of Spark 4.0 or newer, or a classic session"
        )

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Take a public event object: Connect, or where the fast path is missing."""
        self._take("started", event)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Take a public event object: Connect, or where the fast path is missing."""
        self._take("progress", event)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Take a public event object: Connect, or where the fast path is missing."""
        self._take("idle", event)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Take a public event object: Connect, or where the fast path is missing."""
        self._take("terminated", event)

    def _take(self, kind: str, event: Any) -> None:
        began = time.perf_counter()
        agent = self._start()
        if agent is None:
            return
        inbox = agent.inbox
        try:
            text = text_of(kind, event)
            # Connect's client calls on a thread of its own: Spark's bus does not wait for it.
            spent = None if self._connect else time.perf_counter() - began
            inbox.put(Item(kind, text, time.time(), spent, not self._connect))
        except Exception as error:  # noqa: BLE001 - nothing may reach Spark
            inbox.put_failure(error)

    # ---- what users may call ---------------------------------------------------------------

    @property
    def address(self) -> str | None:
        """Where the page is served, once the listener was added; None when it is not."""
        return self._agent.address if self._agent else None

    @property
    def stats(self) -> Stats | None:
        """What the agent has counted of itself."""
        return self._agent.stats if self._agent else None

    @property
    def closed(self) -> bool:
        """Whether the agent that this listener feeds has ended."""
        return self._agent is not None and self._agent.closed

    def close(self) -> None:
        """Send what is left and stop the process's agent; exit does this by itself."""
        if self._agent:
            self._agent.flush()
            self._agent.close()

    def complain(self, error: BaseException) -> None:
        """Count that Spark could not be listened to as it should, and log it, once a minute."""
        if self._agent:
            self._agent.inbox.put_failure(error)

    def hold(self, bus: Any) -> None:
        """Know a bus on which this listener hears every session."""
        if self._agent:
            self._agent.bus = bus

    def _start(self) -> Agent | None:
        """The process's agent, at work; None when the listener is off.

        One whose agent can't be made is off from then on. Raises `ConfigError`, and nothing else.
        """
        if self._agent is None and not self.disabled:
            try:
                self._agent = Agent.join(self._settings, self._config, **self._parts)
            except ConfigError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, `addListener` must not notice
                self.disabled = True
                make_logger(self._log_level).error(
                    "the agent can't be made, and the listener is off; the query is not affected",
                    error=f"{type(error).__name__}: {error}",
                )
            else:
                self._agent.start(_app_name(), **_resource())
        return self._agent


def is_connect(spark: Any) -> bool:
    """Whether a session is a Connect client's."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _stay_off(session: Any) -> None:
    """Have Connect add no listener that is off; where it must, its threads hold up no exit."""
    try:
        kept = keep_off(session, lambda it: isinstance(it, TelemetryListener) and it.disabled)
    except Exception:  # noqa: BLE001 - a Connect we don't know; `_take` lets its events go
        kept = False
    if not kept:
        let_exit()


def _is_for_removal() -> bool:
    """Whether PySpark asks for the Java object in order to remove it; nothing else tells."""
    return sys._getframe(2).f_code.co_name == "removeListener"  # noqa: SLF001


def _app_name() -> str | None:
    context = active_context()
    return context.appName if context is not None else None


def _resource() -> dict[str, str | None]:
    """What traces say of the application; a Spark that is shutting down says nothing."""
    from pyspark import SparkContext  # noqa: PLC0415

    context = SparkContext._active_spark_context  # noqa: SLF001
    try:
        return {"app_id": context.applicationId, "spark_version": context.version}
    except Exception:  # noqa: BLE001 - Py4J's own errors, or no context at all
        return {}
