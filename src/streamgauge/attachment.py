"""Every session of an application at once: `streamgauge.attach(spark)`."""

from __future__ import annotations

import threading
from typing import Any

from streamgauge.listener.classic.application import (
    active_context,
    listen_everywhere,
    stop_listening_everywhere,
    unhook_stop,
)
from streamgauge.listener.stream_listener import is_connect

from .config import Config
from .telemetry import TelemetryListener

_lock = threading.RLock()
_attached: _Attachment | None = None


class _Attachment:
    """A listener and where it sits."""

    def __init__(self, listener: TelemetryListener) -> None:
        self.listener = listener
        self._context: Any = None  # classic: the SparkContext that our bus is on
        self._bus: Any = None
        self._session: Any = None  # Connect: the session that the listener was added to

    def sees(self, spark: Any) -> bool:
        """Whether nothing is left to do for this session."""
        if is_connect(spark):
            return self._session is spark
        return self._context is not None and self._context is active_context()

    def add(self, spark: Any) -> None:
        if is_connect(spark):
            self.listener.add_everywhere(spark)
            self._session = spark
            return
        java = self.listener._jlistener  # noqa: SLF001 - our own class
        self._context = active_context()
        if self._context is None or self.listener.disabled:
            return
        try:
            self._bus = listen_everywhere(self._context, java)
            self.listener.hold(self._bus)
        except Exception as error:  # noqa: BLE001 - an unknown Spark: its own session is still seen
            self.listener.report_error(error)
            spark.streams.addListener(self.listener)

    def remove(self) -> None:
        if self._bus is not None and self._context is active_context():
            unhook_stop(self._context)
            stop_listening_everywhere(self._context, self._bus)
        self.listener.close()


def attach(spark: Any, config: Config | None = None, **settings: Any) -> TelemetryListener:
    """See the streaming queries of every session of this application, present and future.

    Settings are those of `TelemetryListener`; the listener is returned for its `address`. A second
    call does nothing in the same application, and joins the new one after `spark.stop()`. With
    Connect the sessions of this client are seen, and no other client's.
    Raises `ConfigError` for wrong settings, and nothing else of ours.
    """
    global _attached  # noqa: PLW0603 - one per process, as the agent is
    with _lock:
        wanted = TelemetryListener(config, **settings)
        if _attached is None or _attached.listener.closed:
            _attached = _Attachment(wanted)
        if not _attached.sees(spark):
            _attached.add(spark)
        return _attached.listener


def detach() -> None:
    """Take the agent off again, after it has sent what is left; nothing happens without `attach`."""
    global _attached
    with _lock:
        attached, _attached = _attached, None
        if attached is not None:
            attached.remove()
