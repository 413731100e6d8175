"""The agent: one per process, whatever the number of listeners and sessions.

The composition root: it builds the parts and connects them, starts them and closes them. What they do
is theirs: `worker` (the way of an event), `lifecycle` (applications, SIGTERM, exit), `worker_monitor`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from prometheus_client import CollectorRegistry

from streamgauge.exporters import Exporter, adapt
from streamgauge.exporters.http.live import LiveExporter
from streamgauge.exporters.logs import LogExporter, make_logger
from streamgauge.exporters.metrics.collector import PrometheusExporter
from streamgauge.listener.driver import ApplicationInfo, Driver
from streamgauge.listener.host import SparkKind
from streamgauge.listener.inbox import Inbox, Item
from streamgauge.listener.pollers import make_pollers
from streamgauge.listener.registrations import Registrations
from streamgauge.listener.watchdog import Watchdog
from streamgauge.model.application import UNKNOWN, Application, CurrentApplication
from streamgauge.model.fleet import Fleet
from streamgauge.model.query import Query
from streamgauge.model.stats import Stats
from streamgauge.model.verdict_log import VerdictLog
from streamgauge.steady import no_offset, steady_time, wall_offset

from .config import Config
from .environment import fill_owners, load_config
from .error_guard import ErrorGuard
from .heartbeat import Heartbeat
from .last_scrape import LastScrape
from .lifecycle import EXIT_SECONDS, Lifecycle
from .parts import (
    choose_driver,
    make_disk_reader,
    make_pushgateway,
    make_recorder,
    try_tracer,
)
from .reports import AgentReports
from .serving import serve
from .summary import Summarized
from .worker import Worker
from .worker_monitor import WorkerMonitor

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from streamgauge.exporters.http.server import MetricsServer

# How many failed queries are kept; of a small series budget, one for each hundred series.
_FAILED_KEPT = 500


class Agent(Summarized):
    """Everything between the inbox and the outside. Make one with `Agent.join`."""

    _lock: ClassVar[threading.RLock] = threading.RLock()
    _shared: ClassVar[Agent | None] = None

    def __init__(
        self,
        config: Config,
        *,
        kind: SparkKind = SparkKind.CLASSIC,
        registry: CollectorRegistry | None = None,
        logger: FilteringBoundLogger | None = None,
        exporters: Sequence[Exporter] = (),
        tracer_provider: Any = None,
        driver: Driver | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        offset, clock = (no_offset, clock) if clock else (wall_offset, steady_time)
        self.config = config
        self.kind = kind
        self.guard = guard = ErrorGuard(logger or make_logger(config.log_level))
        self.inbox = Inbox(config.inbox_limit)
        self.registrations = Registrations()
        self.registry = registry or CollectorRegistry(auto_describe=False)
        self._serves = bool(config.metrics_address) and (
            registry is None or config.metrics_address != Config().metrics_address
        )
        self.server: MetricsServer | None = None
        self.application = CurrentApplication(
            Application(
                name=config.app or UNKNOWN, code_version=config.code_version, env=config.env
            ),
            fixed_name=bool(config.app),
        )
        self.fleet = Fleet(
            silence_floor=lambda name: config.of_query(name).silence_seconds or 0.0,
            watch_seconds=config.watch_seconds,
            grace_seconds=config.grace_seconds,
            failed_limit=min(_FAILED_KEPT, max(1, config.series_limit // 100)),
        )
        heartbeat, verdicts = Heartbeat(clock), VerdictLog()
        self.prometheus = PrometheusExporter(
            config,
            guard.stats,
            application=self.application,
            clock=clock,
            wall_offset=offset,
            worker_seen_at=heartbeat,
            inbox_events=self.inbox.__len__,
            dropped=self.inbox.count_dropped,
            refused=self._warn_of_series_limit,
        )
        self.live = LiveExporter(
            application=self.application, clock=clock, wall_offset=offset, worker_seen_at=heartbeat
        )
        logs = LogExporter(guard.logger, application=self.application)
        self.traces = try_tracer(
            config,
            guard,
            application=self.application,
            queries=self._queries,
            provider=tracer_provider,
        )
        self.driver = driver or choose_driver(
            kind,
            registrations=self.registrations,
            lose_all=lambda cause: self._watchdog.lose_all(cause),  # noqa: PLW0108 - it is made below
            wake=self._meet_session,
            clock=clock,
            wall_offset=offset,
        )
        monitor = WorkerMonitor(
            heartbeat=heartbeat,
            queries=self._queries,
            verdicts=verdicts,
            guard=guard,
            log=logs.export,
            clock=clock,
        )
        self._watchdog = Watchdog(
            self.driver,
            self.inbox,
            self._queries,
            interval_seconds=config.watch_seconds,
            report_error=lambda error: guard.count_error("watchdog", error),
            before_poll=monitor.check,
            clock=clock,
        )
        self._pollers = make_pollers(
            config, self.driver, self.inbox, self._queries, guard.count_error
        )
        self._exporters: list[Exporter] = [self.prometheus, self.live, logs, *map(adapt, exporters)]
        self._pushgateway = make_pushgateway(
            config, guard, registry=self.registry, application=self.application
        )
        if self._pushgateway is not None:
            self._exporters.append(self._pushgateway)
        self._worker = Worker(
            inbox=self.inbox,
            fleet=self.fleet,
            exporters=self._exporters,
            reports=AgentReports(
                watchdog=self._watchdog,
                application=self.application,
                renamed=self._announce,
                prometheus=self.prometheus,
            ),
            guard=guard,
            verdicts=verdicts,
            heartbeat=heartbeat,
            tracer=self.traces,
            evidence=make_disk_reader(self.traces, guard),
            record=make_recorder(config),
            clock=clock,
            wall_offset=offset,
        )
        self._lifecycle = Lifecycle(
            driver=self.driver,
            watchdog=self._watchdog,
            inbox=self.inbox,
            guard=guard,
            last_scrape=LastScrape(
                config.linger_seconds,
                server=lambda: self.server,
                queries=self._queries,
                guard=guard,
            ),
            application_ended=self.registrations.clear,
            close=self.close,
        )
        self._started = False
        self.closed = False

    # ---- one per process -------------------------------------------------------------------

    @classmethod
    def join(
        cls,
        settings: Mapping[str, Any],
        config: Config | None = None,
        *,
        kind: SparkKind = SparkKind.CLASSIC,
        **parts: Any,
    ) -> Agent:
        """Return the process's agent, making it if there is none; its first settings stand.

        One of another kind of Spark belongs to an application that has ended: it makes room.
        """
        with cls._lock:
            config, wrong = (fill_owners(config), []) if config else load_config(settings)
            there = cls._shared
            if there is not None and not there.closed and there.kind is not kind:
                there.close()
            if there is None or there.closed:
                there = cls._shared = cls(config, kind=kind, **parts)
                for sentence in wrong:
                    there.guard.logger.warning(sentence)
            elif there.config != config or any(parts.values()):
                there._say_unused(config)
            return there

    @classmethod
    def current(cls) -> Agent | None:
        """The process's agent, if there is one."""
        return cls._shared

    def _say_unused(self, config: Config) -> None:
        self.guard.logger.warning(
            "a second listener joins the agent that is there; its settings are not used",
            kept=repr(self.config),
            unused=repr(config),
        )

    # ---- life ------------------------------------------------------------------------------

    def start(self, info: ApplicationInfo | None = None) -> None:
        """Start the threads and the server; once, and never with an exception."""
        with self._lock:
            if self._started or self.closed:
                return
            self._started = True
            self.application.enter(*(info or ApplicationInfo()))
            self.guard.run("prometheus", lambda: self.registry.register(self.prometheus))
            if self._serves:
                self.guard.run("server", self._serve)
            if self._pushgateway:
                self.guard.run("pushgateway", self._pushgateway.start)
            self.guard.run("worker", self._worker.start)
            for poller in (self._watchdog, *self._pollers):
                self.guard.run("watchdog", poller.start)
            self._lifecycle.begin()

    def follow(self, stoppable: Any, listener: Any, *, everywhere: bool = False) -> None:
        """See a context or Connect session through to its end; it may be of another application."""
        with self._lock:
            self.guard.run(
                "bridge",
                lambda: self._enter(
                    self._lifecycle.follow(stoppable, listener, everywhere=everywhere)
                ),
            )

    def flush(self) -> bool:
        """Take in what is on Spark's bus now; whether all of it was handled in time. Any thread."""
        return self._lifecycle.flush()

    def close(self, seconds: float = EXIT_SECONDS) -> None:
        """Work off the inbox, send what is left, stop; two seconds at most, and no exception."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            if Agent._shared is self:
                Agent._shared = None
        for poller in (self._watchdog, *self._pollers):
            poller.close()
        self.inbox.close()
        self._worker.close(seconds)
        self.guard.run("prometheus", lambda: self.registry.unregister(self.prometheus))
        if self.server:
            self.guard.run("server", self.server.close)
        self._lifecycle.end()

    def step(self, *items: Item) -> None:
        """Handle items in the caller's thread, instead of starting: for tests that play events."""
        self._worker.step(items)

    # ---- what can be read ------------------------------------------------------------------

    @property
    def address(self) -> str | None:
        """Where the page is served; None when it is not."""
        return self.server.address if self.server else None

    @property
    def stats(self) -> Stats:
        """What the agent has counted of itself."""
        return self.guard.stats

    @property
    def queries(self) -> Mapping[str, Query]:
        """What is known of each query now, by query id."""
        return self.fleet.queries

    def _queries(self) -> Mapping[str, Query]:
        return self.fleet.queries

    # ---- connections between parts ---------------------------------------------------------

    def _meet_session(self) -> None:
        self._lifecycle.meet_session()

    def _serve(self) -> None:
        self.server = serve(
            config=self.config,
            registry=self.registry,
            application=self.application,
            live=self.live.render,
            active=self.prometheus.active_runs,
            guard=self.guard,
        )

    def _enter(self, info: ApplicationInfo) -> None:
        """Tell what comes from now on as that of this application, if it is another one."""
        before = self.application()
        if self.application.enter(*info):
            if self.traces is not None:
                self.traces.enter(self.application())
            if self.application().name != before.name:
                self._announce()

    def _announce(self) -> None:
        """A Connect client's name is known later than its port."""
        if self.server:
            self.guard.run("server", self.server.announce)

    def _warn_of_series_limit(self) -> None:
        self.guard.log_once_a_minute(
            "series",
            lambda _: self.guard.logger.warning(
                "the series budget is used up; new label sets are refused",
                series_limit=self.config.series_limit,
                hint="raise series_limit, or drop observed or custom metrics",
            ),
        )
