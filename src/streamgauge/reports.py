"""Where the worker's news that is not about one query goes: the watchdog, the application, the page."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.exporters.metrics.collector import PrometheusExporter
from streamgauge.listener.watchdog import Watchdog
from streamgauge.model.application import CurrentApplication
from streamgauge.model.observations import ApplicationStatus


class AgentReports:
    """Passes on what the worker reports. The worker's thread; nothing here waits."""

    def __init__(
        self,
        *,
        watchdog: Watchdog,
        application: CurrentApplication,
        renamed: Callable[[], None],
        prometheus: PrometheusExporter,
    ) -> None:
        self._watchdog = watchdog
        self._application = application
        self._renamed = renamed  # told when the application's name is known at last
        self._prometheus = prometheus

    def request_details(self, query_id: str, run_id: str) -> None:
        """Have the watchdog ask how a run is configured."""
        self._watchdog.request_details(query_id, run_id)

    def observe_application(self, status: ApplicationStatus) -> None:
        """Know the application by what a poll found."""
        if self._application.observe(status.app_name, status.spark_version, status.ui_url):
            self._renamed()

    def beat(self) -> None:
        """Have a poll that does not come back noticed."""
        self._watchdog.check_overdue()

    def time_event(self, callback_seconds: float | None, handling_seconds: float) -> None:
        """Show what an event cost."""
        self._prometheus.time(callback_seconds, handling_seconds)
