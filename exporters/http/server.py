"""Serves the page: `/metrics` in text and OpenMetrics, `/-/healthy`, and the live page at `/`.

Threads of its own, all daemons; nothing here can hold up the worker or Spark.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry

from streamgauge.config import Config, ConfigError
from streamgauge.model.application import Application

from .access import make_tls, read_password, require_password
from .discovery import DiscoveryFile
from .routes import make_routes
from .scrapers import ScraperLog
from .sockets import bind
from .wsgi import App

_POLL_SECONDS = 0.2  # how long the end of the server may take


class MetricsServer:
    """An HTTP server for one registry. `address` is where it can be reached."""

    def __init__(
        self,
        config: Config,
        registry: CollectorRegistry,
        *,
        application: Callable[[], Application] = Application,
        live: Callable[[], bytes] = lambda: b"{}",
        active: Callable[[], frozenset[str]] = frozenset,
        failed: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        """Bind and serve; raise OSError or ConfigError when that can't be done.

        `live` makes the live page's data, `active` names the runs that the page shows as active. What goes
        wrong later is passed to `failed`, from any thread.
        """
        self._application = application
        self._active = active
        self.scrapers = ScraperLog()
        app = self._noting(make_routes(registry, live))
        if config.metrics_auth_file:
            app = require_password(app, read_password(config.metrics_auth_file))
        tls = make_tls(config)
        self._server = bind(*config.metrics_endpoint(), app, tls=tls, failed=failed)
        host, port = self._server.server_address[:2]
        self.host, self.port = str(host), int(port)
        target = f"{_bracket(self.host)}:{self.port}"
        self.address = f"{'https' if tls else 'http'}://{target}"
        self._discovery = (
            DiscoveryFile(config.sd_file, target=target, https=tls is not None)
            if config.sd_file
            else None
        )
        self._start()
        try:
            self.announce()
        except ConfigError as error:
            failed(error)

    def _start(self) -> None:
        threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL_SECONDS,),
            name="streamgauge-server",
            daemon=True,
        ).start()

    def announce(self) -> None:
        """Write the `sd_file` with the application's name; raise `ConfigError` when that can't be done."""
        if self._discovery is not None:
            self._discovery.write(self._application().name)

    def _noting(self, app: App) -> App:
        """Note each scrape once its answer has been written."""

        def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            if environ.get("PATH_INFO") != "/metrics" or environ.get("REQUEST_METHOD") != "GET":
                return app(environ, start_response)
            began, active = time.monotonic(), self._active()
            return self._note(environ, app(environ, start_response), began, active)

        return serve

    def _note(
        self,
        environ: dict[str, Any],
        body: Iterable[bytes],
        began: float,
        active: frozenset[str],
    ) -> Iterator[bytes]:
        yield from body  # a WSGI server asks for more once it has written what it got
        self.scrapers.note(environ, began, active)

    def close(self) -> None:
        """Stop serving and take the target back."""
        self._server.shutdown()
        self._server.server_close()
        if self._discovery is not None:
            self._discovery.withdraw()


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
