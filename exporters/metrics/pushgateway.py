"""Pushes the page to a Pushgateway, for runs that end before anybody scrapes them.

A thread of its own: a dead gateway costs a counted error a push, and the query nothing. What is pushed
last stays there, marked by what it says: `query_active` 0 and the verdict the run ended with.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, push_to_gateway

from streamgauge.exporters import Exporter
from streamgauge.model.events import Event
from streamgauge.model.query import Query

_EVERY = 15.0
_RETRY = 1.0  # after a push that failed, doubled up to the pace of those that don't
_PATIENCE = 1.0  # for one push
_LAST = 1.2  # for all tries of the last one
_LAST_PAUSE = 0.15


class PushgatewayExporter(Exporter):
    """Pushes every 15 seconds, soon after a query ends, and once more when the agent closes."""

    name = "pushgateway"

    def __init__(
        self,
        url: str,
        registry: CollectorRegistry,
        grouping: Callable[[], dict[str, str]],
        failed: Callable[[Exception], None],
    ) -> None:
        self._url = url
        self._registry = registry
        self._grouping = grouping
        self._failed = failed
        self._wake = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamgauge-push", daemon=True)
        self._thread.start()

    def handle(self, event: Event, query: Query) -> None:
        """Push soon when a query has ended; its process may not live much longer."""
        if not query.live:
            self._wake.set()

    def observe(self, query: Query) -> None:
        """The same for one that ended without an event."""
        if not query.live:
            self._wake.set()

    def close(self) -> None:
        """Push the final state; gives up after little more than a second."""
        self._done.set()
        self._wake.set()
        self._thread.join(_LAST + 0.1)

    def _run(self) -> None:
        pause = _EVERY
        while not self._done.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            if self._done.is_set():
                break
            pushed = self._push()
            pause = _EVERY if pushed else min(_EVERY, _RETRY if pause == _EVERY else 2 * pause)
        self._push_last()

    def _push_last(self) -> None:
        """A gateway that is just coming up gets it too."""
        deadline = time.monotonic() + _LAST
        while not self._push(deadline - time.monotonic()):
            time.sleep(_LAST_PAUSE)
            if time.monotonic() + _LAST_PAUSE > deadline:
                return

    def _push(self, seconds: float = _PATIENCE) -> bool:
        try:
            push_to_gateway(
                self._url,
                job="streamgauge",
                registry=self._registry,
                grouping_key=self._grouping(),
                timeout=max(0.1, min(seconds, _PATIENCE)),
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
