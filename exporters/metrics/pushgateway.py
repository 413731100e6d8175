"""Pushes the page to a Pushgateway, for runs that end before anybody scrapes them.

A thread of its own: a dead gateway costs a counted error per push, and the query nothing. What is pushed
last stays there, marked by what it says: `query_active` 0 and the verdict the run ended with.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, push_to_gateway

from streamgauge.exporters import Exporter
from streamgauge.model.application import Application
from streamgauge.model.update import Update

_PUSH_SECONDS = 15.0
_RETRY_SECONDS = 1.0  # after a push that failed; doubled up to the pace of those that don't
_TIMEOUT_SECONDS = 1.0  # of one push
_LAST_PUSH_SECONDS = 1.2  # for all tries of the last one
_LAST_PAUSE_SECONDS = 0.15


class PushgatewayExporter(Exporter):
    """Pushes every 15 seconds, soon after a query ends, and once more when the agent closes."""

    name = "pushgateway"

    def __init__(
        self,
        url: str,
        registry: CollectorRegistry,
        *,
        application: Callable[[], Application],
        failed: Callable[[Exception], None],
        instance: str | None = None,
    ) -> None:
        """`instance` (host and process) keeps two drivers from overwriting each other."""
        self._url = url
        self._registry = registry
        self._application = application
        self._failed = failed
        self._instance = instance or f"{socket.gethostname()}:{os.getpid()}"
        self._wake = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamgauge-push", daemon=True)

    def start(self) -> None:
        """Begin to push; raises RuntimeError when no thread can be started."""
        self._thread.start()

    def export(self, update: Update) -> None:
        """Push soon when a query has ended; its process may not live much longer."""
        if not update.forgotten and not update.query.live:
            self._wake.set()

    def close(self) -> None:
        """Push the final state; gives up after little more than a second."""
        self._done.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_LAST_PUSH_SECONDS + 0.1)

    def _run(self) -> None:
        pause = _PUSH_SECONDS
        while not self._done.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            if self._done.is_set():
                break
            pushed = self._push()
            retry = _RETRY_SECONDS if pause == _PUSH_SECONDS else 2 * pause
            pause = _PUSH_SECONDS if pushed else min(_PUSH_SECONDS, retry)
        self._push_last()

    def _push_last(self) -> None:
        """A gateway that is just coming up gets it too."""
        deadline = time.monotonic() + _LAST_PUSH_SECONDS
        while not self._push(deadline - time.monotonic()):
            time.sleep(_LAST_PAUSE_SECONDS)
            if time.monotonic() + _LAST_PAUSE_SECONDS > deadline:
                return

    def _push(self, seconds: float = _TIMEOUT_SECONDS) -> bool:
        try:
            push_to_gateway(
                self._url,
                job="streamgauge",
                registry=self._registry,
                grouping_key={"app": self._application().name, "instance": self._instance},
                timeout=max(0.1, min(seconds, _TIMEOUT_SECONDS)),
            )
        except Exception as error:  # noqa: BLE001 - whatever is wrong out there is not ours
            self._failed(_hide_address(self._url, error))
            return False
        return True


def _hide_address(url: str, error: Exception) -> Exception:
    """The error, unless it may show pieces of a password: an address with one is not understood."""
    if "@" not in url:
        return error
    return ValueError(f"{type(error).__name__}; take user and password out of pushgateway_url")
