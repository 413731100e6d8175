"""Puts the metrics server on its port, and says where that is."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from streamgauge.exporters.http.server import MetricsServer
from streamgauge.model.application import Application

from .config import Config
from .error_guard import ErrorGuard


def serve(
    *,
    config: Config,
    registry: CollectorRegistry,
    application: Callable[[], Application],
    live: Callable[[], bytes],
    active: Callable[[], frozenset[str]],
    guard: ErrorGuard,
) -> MetricsServer:
    """Serve on the address of the settings, or on one of the next ports; raises when none is free."""
    server = MetricsServer(
        config,
        registry,
        application=application,
        live=live,
        active=active,
        failed=lambda error: guard.count_error("server", error),
    )
    wanted = config.metrics_endpoint()[1]
    if wanted and server.port != wanted:
        guard.stats.count("errors", "server")
        guard.logger.warning(
            "metrics port is taken; serving on another one",
            wanted=wanted,
            address=server.address,
            hint="set sd_file so that Prometheus finds it",
        )
    else:
        guard.logger.info("metrics are served", address=f"{server.address}/metrics")
    return server
