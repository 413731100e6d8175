"""Pushes the page to a Pushgateway, for runs that end before anybody scrapes them.

A thread of its own: a dead gateway costs a counted error a push, and the query nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from prometheus_client import CollectorRegistry, push_to_gateway

from streamgauge.listener.events import Event
from streamgauge.listener.fleet import Query

from . import Exporter

_EVERY = 15.0
_PATIENCE = 1.5


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

    def close(self) -> None:
        """Push the final state; gives up after about a second and a half."""
        self._done.set()
        self._wake.set()
        self._thread.join(_PATIENCE + 0.3)

    def _run(self) -> None:
        while not self._done.is_set():
            self._wake.wait(_EVERY)
            self._wake.clear()
            self._push()

    def _push(self) -> None:
        try:
            push_to_gateway(
                self._url,
                job="streamgauge",
                registry=self._registry,
                grouping_key=self._grouping(),
                timeout=_PATIENCE,
            )
        except Exception as error:  # noqa: BLE001 - whatever is wrong out there is not ours
            self._failed(error)
