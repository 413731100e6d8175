"""The listener as Spark sees it: what is put on a bus, and what Spark calls on it.

Classic PySpark asks for a Java object, on add and on remove; events then reach a queue in the JVM and
never this class. Connect calls `_set_spark_session` and hands public event objects over, on a thread of
its own client. Nothing here waits, and nothing raises but `ConfigError`, before anything has begun.
"""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from streamgauge.steady import steady_time

from .classic.application import active_context
from .classic.bridge import text_of, wrap_callback, wrap_nothing
from .classic.queue_bridge import make_queue_listener
from .host import Host, SparkKind
from .inbox import Item


class StreamListener(StreamingQueryListener):  # type: ignore[misc]
    """Puts every event on the inbox of the process's agent."""

    def __init__(self, *, disabled: bool = False) -> None:
        self.disabled = disabled
        self._java: Any = None
        self._places = 0  # sessions that it was added to, less those that it was removed from
        self._connect = False
        self._everywhere = False  # with Connect: follow every session that the client makes
        self._agent: Host | None = None

    @abstractmethod
    def _join(self, kind: SparkKind) -> Host | None:
        """The process's agent, at work; None when the listener is off. Raises `ConfigError` only."""

    @property
    def closed(self) -> bool:
        """Whether the agent that this listener feeds has ended."""
        return self._agent is not None and self._agent.closed

    def report_error(self, error: BaseException) -> None:
        """Count that Spark could not be listened to as it should, and log it, once a minute."""
        if self._agent:
            self._agent.inbox.put_failure(error)

    def hold(self, bus: Any) -> None:
        """Know a bus on which this listener hears every session."""
        if self._agent:
            self._agent.registrations.add_bus(bus)

    def _make_room(self, kind: SparkKind) -> None:
        """On each add: an agent that has ended, or is of another kind of Spark, is not used again."""
        self._connect = kind is SparkKind.CONNECT
        if self._agent is None:
            return
        if self._agent.closed or self._agent.kind is not kind:
            self._agent = self._java = None
        elif self._agent.registrations.is_disconnected():
            self._java = None  # of a JVM that is gone

    def _start(self, kind: SparkKind) -> Host | None:
        if self._agent is None and not self.disabled:
            self._agent = self._join(kind)
        return self._agent

    # ---- classic ---------------------------------------------------------------------------

    @property
    def _jlistener(self) -> Any:
        """The Java object that goes on Spark's bus; classic PySpark asks on add and on remove."""
        removal = _is_for_removal()
        if not removal:
            self._make_room(SparkKind.CLASSIC)
        if self._java is None:
            self._java = self._wrap()
        if self._agent is not None and not self.closed:
            context = active_context()
            if context is not None:
                self._agent.follow(context, self._java)
            if not removal:
                self._agent.registrations.listen()
            self._count_places(self._agent, removal=removal)
        return self._java

    def _wrap(self) -> Any:
        """A Java listener: the queue's; else one that calls Python once; else PySpark's own, which is slow.

        Each that this Spark or this JVM lacks is counted and logged, once.
        """
        agent = self._start(SparkKind.CLASSIC)
        if agent is None:
            try:
                return wrap_nothing()
            except Exception:  # noqa: BLE001 - the switch must not fail; `_take` lets events go
                return super()._jlistener
        for make in (make_queue_listener, wrap_callback):
            try:
                return make(agent)
            except Exception as error:  # noqa: BLE001 - whatever it is that this Spark lacks
                agent.inbox.put_failure(_explain(error))
        return super()._jlistener

    def _count_places(self, agent: Host, *, removal: bool) -> None:
        """Have the agent know the Java object for as long as it is on some session's bus."""
        known = agent.registrations
        if removal:
            self._places -= 1
        else:
            self._places = self._places + 1 if known.has(self._java) else 1
            known.add(self._java)
        if self._places <= 0:
            known.remove(self._java)

    # ---- Connect ---------------------------------------------------------------------------

    def _set_spark_session(self, session: Any) -> None:
        """Connect calls this on each add, before the listener is on the client's bus.

        The base class keeps the first session for good; a client may have a second one.
        """
        from .connect import patches  # noqa: PLC0415 - a classic driver needs none

        self.spark = session
        self._make_room(SparkKind.CONNECT)
        agent = self._start(SparkKind.CONNECT)
        if agent is None:
            _stay_off(session)
            return
        patches.use_daemon_threads()
        agent.follow(session, self, everywhere=self._everywhere)

    def add_everywhere(self, session: Any) -> None:
        """Add this listener to a Connect session, and to every session that its client makes."""
        self._everywhere = True
        session.streams.addListener(self)

    def _init_listener_id(self) -> None:
        """Only Connect of Spark 3.5 calls this, before it sends the listener to the server.

        The error is the final word there, of the kind that PySpark itself raises for what Connect lacks.
        """
        raise NotImplementedError(  # not a hole of ours: 3.5's Connect can't have it
            "Spark 3.5's Connect runs listeners in a worker process of the server, where their "
            "metrics can't be served; use Connect of Spark 4.0 or newer, or a classic session"
        )

    # ---- public event objects: Connect, or where the fast path is missing --------------------

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Take a start."""
        self._take("started", event)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Take a batch."""
        self._take("progress", event)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Take an idle trigger."""
        self._take("idle", event)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Take an end."""
        self._take("terminated", event)

    def _take(self, kind: str, event: Any) -> None:
        began = time.perf_counter()
        agent = self._start(SparkKind.CONNECT if self._connect else SparkKind.CLASSIC)
        if agent is None:
            return
        try:
            text = text_of(kind, event)
            # Connect's client calls on a thread of its own: Spark's bus does not wait for it.
            spent = None if self._connect else time.perf_counter() - began
            agent.inbox.put(Item(kind, text, steady_time(), spent, not self._connect))
        except Exception as error:  # noqa: BLE001 - nothing may reach Spark
            agent.inbox.put_failure(error)


def _explain(error: BaseException) -> RuntimeError:
    """What it means that the best way, or the next, can't be had."""
    return RuntimeError(
        "events come by a slower way, on which Spark's listener thread waits for Python: "
        f"{type(error).__name__}: {error}"
    )


def is_connect(spark: Any) -> bool:
    """Whether a session is a Connect client's."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _stay_off(session: Any) -> None:
    """Have Connect add no listener that is off; where it must, its threads hold up no exit."""
    from .connect import patches  # noqa: PLC0415 - a classic driver needs none

    try:
        kept = patches.exclude_disabled_listeners(
            session, lambda it: isinstance(it, StreamListener) and it.disabled
        )
    except Exception:  # noqa: BLE001 - a Connect we don't know; `_take` lets its events go
        kept = False
    if not kept:
        patches.use_daemon_threads()


def _is_for_removal() -> bool:
    """Whether PySpark asks for the Java object in order to remove it; nothing else tells."""
    return sys._getframe(2).f_code.co_name == "removeListener"  # noqa: SLF001
