"""The agent: one a process, whatever the number of listeners and sessions.

Puts the parts together and takes them apart again; holds no logic of its own.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from prometheus_client import CollectorRegistry
from structlog.typing import FilteringBoundLogger

from streamgauge.exporters import Exporter
from streamgauge.exporters.http.live import LiveExporter
from streamgauge.exporters.http.server import MetricsServer
from streamgauge.exporters.logs import LogExporter, make_logger
from streamgauge.exporters.metrics.collector import PrometheusExporter
from streamgauge.exporters.metrics.pushgateway import PushgatewayExporter
from streamgauge.exporters.recorder import FlightRecorder
from streamgauge.listener.classic.driver import ClassicDriver
from streamgauge.listener.inbox import MARK, Inbox, Item
from streamgauge.listener.watchdog import Driver, Watchdog
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import ApplicationStatus
from streamgauge.model.query import Query
from streamgauge.model.verdict import BLIND_SECONDS

from .config import Config, fill_owners, load_config
from .error_guard import Guarded
from .lifecycle import Following
from .masking import clean
from .sigterm import TermGuard
from .timers import make_timers
from .tracing import make_trace_exporter
from .version import __version__
from .worker import Worker

if TYPE_CHECKING:
    from streamgauge.exporters.traces.exporter import TraceExporter

# Exit may take two seconds longer than without us, and the server's end is in it.
_EXIT_SECONDS = 1.6
_BUS_SECONDS = 1.0
_INBOX_SECONDS = 0.5
_FAILED = 500  # so many failed queries are kept; of a small series budget, one for each hundred


class Agent(Guarded):
    """Everything between the inbox and the outside. Make one with `Agent.join`."""

    _lock: ClassVar[threading.RLock] = threading.RLock()
    _shared: ClassVar[Agent | None] = None

    def __init__(
        self,
        config: Config,
        *,
        registry: CollectorRegistry | None = None,
        logger: FilteringBoundLogger | None = None,
        exporters: Sequence[Exporter] = (),
        tracer_provider: Any = None,
        driver: Driver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(logger or make_logger(config.log_level))
        self.config = config
        self.inbox = Inbox(config.inbox_limit)
        self.registry = registry or CollectorRegistry(auto_describe=False)
        self.listeners: list[Any] = []  # the Java objects of our listeners
        self.bus: Any = None  # our own bus for every session, once attached
        self._serves = bool(config.metrics_address) and (
            registry is None or config.metrics_address != Config().metrics_address
        )
        self.server: MetricsServer | None = None
        self.fleet = Fleet(
            silence_floor=lambda name: config.of_query(name).silence_seconds or 0.0,
            watch_seconds=config.watch_seconds,
            grace_seconds=config.grace_seconds,
            failed_limit=min(_FAILED, max(1, config.series_limit // 100)),
        )
        self.prometheus = PrometheusExporter(
            config,
            self.stats,
            clock=clock,
            worker_seen_at=lambda: self._worker.seen_at,
            inbox_events=lambda: len(self.inbox),
            refused=self._refused,
        )
        self.prometheus.version = __version__
        self.prometheus.dropped = lambda: self.inbox.dropped
        self._logs = LogExporter(self.logger, config.app or "")
        self._live = LiveExporter(clock=clock, worker_seen_at=lambda: self._worker.seen_at)
        self.traces = self._make_traces(tracer_provider)
        self._exporters: list[Exporter] = [self.prometheus, self._live, self._logs, *exporters]
        if self.traces is not None:  # before those that name the trace of an event
            self._exporters.insert(0, self.traces)
            self.prometheus.trace_of = self.traces.exemplar_of
            self._logs.trace_of = self.traces.ids_of
        self._worker = Worker(
            self.inbox,
            self.fleet,
            self._exporters,
            self.stats,
            complain=self.complain,
            wanted=self._want,
            ticked=self._ticked,
            beat=self._check,
            timed=self._timed,
            record=FlightRecorder(config.flight_recorder_dir).record
            if config.flight_recorder_dir
            else None,
            clock=clock,
        )
        driver = driver or ClassicDriver(lambda: self.listeners, clock, lambda: self.bus)
        self._timers = make_timers(
            config, driver, self.inbox, lambda: self.fleet.queries, self._failed
        )
        self._watchdog = Watchdog(
            driver,
            self.inbox,
            lambda: self.fleet.queries,
            seconds=config.watch_seconds,
            failed=lambda error: self._failed("watchdog", error),
            beat=self._check_worker,
            clock=clock,
        )
        self._following = Following(
            self._watchdog,
            flush=self.flush,
            breaking=self._break_all,
            lose_all=self.lose_all,
            name=self._name_once,
            made=self._session_made,
            attempt=self._try,
        )
        self._resource: dict[str, str | None] = {}
        self._elsewhere: set[str] = set()  # labels whose series say an earlier application's name
        self._term = TermGuard(
            lambda: self.leave("the process was told to end by SIGTERM"),
            _EXIT_SECONDS + _BUS_SECONDS + config.linger_seconds,
        )
        self._clock = clock
        self._held_up = False  # the worker, as the watchdog last found it
        self._pid = os.getpid()
        self._started = False
        self._working = False  # the worker's thread began; a machine may be out of threads
        self.closed = False

    # ---- one a process ---------------------------------------------------------------------

    @classmethod
    def join(cls, settings: Mapping[str, Any], config: Config | None = None, **parts: Any) -> Agent:
        """Return the process's agent, making it if there is none; its first settings stand."""
        with cls._lock:
            wrong: list[str] = []
            if config is None:
                config, wrong = load_config(settings)
            else:
                config = fill_owners(config)
            if cls._shared is None or cls._shared.closed:
                cls._shared = cls(config, **parts)
                for sentence in wrong:
                    cls._shared.logger.warning(sentence)
            elif cls._shared.config != config or any(parts.values()):
                cls._shared.logger.warning(
                    "a second listener joins the agent that is there; its settings are not used",
                    kept=repr(cls._shared.config),
                    unused=repr(config),
                )
            return cls._shared

    @classmethod
    def current(cls) -> Agent | None:
        """The process's agent, if there is one."""
        return cls._shared

    # ---- life ------------------------------------------------------------------------------

    def start(self, app_name: str | None = None, **resource: str | None) -> None:
        """Start the threads and the server; once, and never with an exception.

        `resource` is what else is known of the application: `app_id`, `spark_version`.
        """
        with self._lock:
            if self._started or self.closed:
                return
            self._started = True
            self._name(app_name)
            self._resource = resource
            self._try("prometheus", lambda: self.registry.register(self.prometheus))
            if self._serves:
                self._try("server", self._serve)
            if self.config.pushgateway_url:
                self._try("pushgateway", self._push)
            self._try("worker", self._begin_work)
            for looking in (self._watchdog, *self._timers):
                self._try("watchdog", looking.start)
            self._try("exit", self._term.install)
            atexit.register(self._exit)

    def flush(self) -> bool:
        """Take in what is on Spark's bus now; whether all of it was handled in time. Any thread."""
        if not self._started or self.closed:
            return False
        self._watchdog.drain(_BUS_SECONDS)
        return self._settle()

    def lose_all(self, why: str) -> None:
        """End the runs that go on: Spark sends no event for those that die with the application."""
        if self._started and not self.closed:
            self._watchdog.lose_all(why)
            self._settle()

    def leave(self, why: str) -> None:
        """The process ends: flush, end what runs, linger if that is wanted, close."""
        deadline = time.monotonic() + _EXIT_SECONDS
        if self.closed or os.getpid() != self._pid:  # a forked child has none of our threads
            return
        self.flush()
        self._following.skip_farewells()
        self.lose_all(why)
        if self.config.linger_seconds and self.server:
            self.server.await_scrape(self.config.linger_seconds)
            deadline = time.monotonic() + _EXIT_SECONDS
        self.close(max(0.2, deadline - time.monotonic()))

    def close(self, seconds: float = _EXIT_SECONDS) -> None:
        """Work off what waits, send what is left, stop; two seconds at most, and no exception."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            if Agent._shared is self:
                Agent._shared = None
        deadline = time.monotonic() + seconds
        self._watchdog.close()
        self._following.close()
        for timer in self._timers:
            timer.close()
        self.inbox.close()
        if not self._working:
            self._worker.close_exporters()
        elif not self._worker.join(seconds * 0.7):
            self._close_without_worker(deadline - time.monotonic())
        self._try("prometheus", lambda: self.registry.unregister(self.prometheus))
        if self.server:
            self._try("server", self.server.close)
        self._try("exit", self._term.remove)
        atexit.unregister(self._exit)

    def step(self, *items: Item) -> None:
        """Handle items in the caller's thread, instead of starting: for tests that play events."""
        self._worker.step(items)

    def _begin_work(self) -> None:
        self._worker.start()
        self._working = True

    def _exit(self) -> None:
        self._try("exit", lambda: self.leave("the process ended"))

    def _close_without_worker(self, seconds: float) -> None:
        """One exporter holds the worker; the others still get their word."""
        closing = threading.Thread(target=self._worker.close_exporters, daemon=True)
        self._try("exit", closing.start)  # from Python 3.12 not at exit any more
        if closing.ident is not None:
            closing.join(max(0.1, seconds))

    def _settle(self) -> bool:
        """Wait a little until what is in the inbox now has been handled."""
        handled = threading.Event()
        self.inbox.put(Item(MARK, handled, time.time()))
        return handled.wait(_INBOX_SECONDS)

    # ---- the application's end -------------------------------------------------------------

    def watch(self, context: Any, app_name: str | None = None, **resource: str | None) -> None:
        """See a classic application through its `stop()`; it may be another one than before."""
        with self._lock:
            self._try("bridge", lambda: self._enter(app_name, resource))
        self._following.watch(context, self._forget_application)

    def _enter(self, app_name: str | None, resource: dict[str, str | None]) -> None:
        """Tell what comes from now on as that of this application, if it is another one."""
        if not resource or resource.get("app_id") == self._resource.get("app_id"):
            return
        self._resource = resource
        self._name(app_name)
        if self.traces is not None:
            self.traces.introduce(self._describe())

    def _move(self, query: Query) -> None:
        """Begin the series of a query that goes on in another application anew. The worker.

        Those of queries that don't stay until their time is over, with the `app` that they had.
        """
        if query.label in self._elsewhere:
            self._elsewhere.remove(query.label)
            self.prometheus.forget(query)

    def follow(self, session: Any, listener: Any, *, everywhere: bool = False) -> None:
        """Look at a Connect session from now on, and at the one that takes its place."""
        with self._lock:
            self._following.follow(session, listener, everywhere=everywhere)

    def _session_made(self) -> None:
        """Look at it soon; and leave before its client does: the last to register is the first to exit."""
        if not self.closed:
            atexit.unregister(self._exit)
            atexit.register(self._exit)
        self._watchdog.wake()

    def _break_all(self) -> None:
        """A stop is about to break the runs that live; those that failed before have been told of."""
        self._worker.broken = frozenset(q.run_id for q in self.queries.values() if q.live)

    def _forget_application(self) -> None:
        self.bus, self.listeners = None, []

    # ---- our listeners on Spark's buses; compared by `is`, since `==` would ask the JVM ---------

    def knows(self, java: Any) -> bool:
        """Whether this Java object is looked for on the buses."""
        return any(one is java for one in self.listeners)

    def know(self, java: Any) -> None:
        """Look for it from now on."""
        if not self.knows(java):
            self.listeners = [*self.listeners, java]

    def let_go(self, java: Any) -> None:
        """Look for it no more; the last one stays, for a look to find that it is gone."""
        if len(self.listeners) > 1:
            self.listeners = [one for one in self.listeners if one is not java]

    @property
    def address(self) -> str | None:
        """Where the page is served; None when it is not."""
        return self.server.address if self.server else None

    @property
    def queries(self) -> Mapping[str, Query]:
        """What is known of each query now, by query id."""
        return self.fleet.queries

    # ---- parts that start ------------------------------------------------------------------

    def _serve(self) -> None:
        self.server = MetricsServer(
            self.config,
            self.registry,
            self.prometheus.app,
            self._live.render,
            lambda error: self._failed("server", error),
        )
        wanted = self.config.metrics_endpoint()[1]
        if wanted and self.server.port != wanted:
            self.stats.count("errors", "server")
            self.logger.warning(
                "metrics port is taken; serving on another one",
                wanted=wanted,
                address=self.server.address,
                hint="set sd_file so that Prometheus finds it",
            )
        else:
            self.logger.info("metrics are served", address=f"{self.server.address}/metrics")

    def _push(self) -> None:
        url = self.config.pushgateway_url or ""
        self._exporters.append(
            PushgatewayExporter(
                url,
                self.registry,
                self._grouping,
                lambda error: self._failed("pushgateway", error),
            )
        )

    def _make_traces(self, provider: Any) -> TraceExporter | None:
        try:
            return make_trace_exporter(
                self.config,
                self.stats,
                lambda error: self.complain("traces", error),
                self._describe,
                provider,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the query must not notice
            self._failed("traces", error)
            return None

    def _describe(self) -> dict[str, str]:
        """Attributes of the traces' resource; what is not known is empty."""
        known = [query.details for query in self.queries.values() if query.details]
        details = known[0] if known else None
        app_id = self._resource.get("app_id") or (details and details.app_id) or ""
        version = self._resource.get("spark_version") or (details and details.spark_version) or ""
        return {
            "service.name": self.prometheus.app,
            "service.instance.id": app_id,
            "service.version": self.config.code_version or "",
            "deployment.environment.name": self.config.env or "",
            "spark.app.id": app_id,
            "spark.version": version,
        }

    def _grouping(self) -> dict[str, str]:
        """App and instance: two drivers never overwrite each other."""
        return {"app": self.prometheus.app, "instance": f"{socket.gethostname()}:{os.getpid()}"}

    # ---- what the parts report -------------------------------------------------------------

    def _want(self, query_id: str, run_id: str) -> None:
        query = self.queries.get(query_id)
        if query is not None:  # else it idles, and its name must be asked for first
            self._move(query)
        self._watchdog.kick(query_id, run_id)

    def _check(self) -> None:
        self._watchdog.check()

    def _check_worker(self) -> None:
        """Count, once, that the worker is held up for so long that every query is blind."""
        held_up = self._clock() - self._worker.seen_at > BLIND_SECONDS
        if held_up and not self._held_up:
            why = f"nothing was handled for over {BLIND_SECONDS:.0f} s; an exporter does not come back"
            self._failed("worker", TimeoutError(why))
        self._held_up = held_up

    def _name(self, app_name: str | None) -> None:
        app = self.config.app or (clean(app_name) if app_name else None)
        if not app:
            return
        self._logs.app = self._live.app = app
        if app == self.prometheus.app:
            return
        self.prometheus.app = app
        self._elsewhere = {query.label for query in self.queries.values()}
        if self.server:  # a Connect client's name is known later than its port
            self._try("server", partial(self.server.name, app))

    def _name_once(self, app_name: str | None) -> None:
        if self.prometheus.app == "unknown":
            self._name(app_name)

    def _ticked(self, tick: ApplicationStatus) -> None:
        self._name_once(tick.app_name)
        for query in self.queries.values() if self._elsewhere else ():
            if query.live:  # its start was not seen
                self._move(query)
        self._live.spark_ui = tick.ui_url
        if tick.spark_version:
            self.prometheus.spark_version = tick.spark_version

    def _timed(self, callback_seconds: float | None, handling_seconds: float) -> None:
        if callback_seconds is not None:
            self.prometheus.callback_seconds.observe(callback_seconds)
        self.prometheus.handling_seconds.observe(handling_seconds)

    def _refused(self) -> None:
        held = self._throttle.ask("series")
        if held is not None:
            self.logger.warning(
                "the series budget is used up; new label sets are refused",
                series_limit=self.config.series_limit,
                hint="raise series_limit, or drop observed or custom metrics",
            )
