"""The one thread that does the work: takes from the inbox, keeps the fleet, feeds the exporters.

Every item goes the same way: decode, `Fleet.apply`, one `Update` per query that changed, the tracer,
the exporters. One guard, in one place: an exporter that fails is counted and logged, and the others
still get the update.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from streamgauge.exporters import Exporter
from streamgauge.listener.inbox import FAILURE, GONE, MARK, OBSERVATION, Inbox, Item
from streamgauge.model.decoder import UndecodableEvent, decode
from streamgauge.model.events import Event, kind_of
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import ApplicationStatus, Observation
from streamgauge.model.query import Query
from streamgauge.model.timeshift import to_steady
from streamgauge.model.update import Applied, TraceIds, Update, shift_update
from streamgauge.model.verdict import judge
from streamgauge.model.verdict_log import VerdictLog
from streamgauge.steady import no_offset, steady_time

from .error_guard import ErrorGuard
from .heartbeat import Heartbeat

_BEAT_SECONDS = 1.0


class Tracer(Protocol):
    """Writes the trace of an update before the exporters get it: they name the trace."""

    def trace(self, update: Update) -> TraceIds | None:
        """Write what this update completes; the ids of the trace that it belongs to."""

    def close(self) -> None:
        """Send what is left, within a second."""


class Evidence(Protocol):
    """What can be read about an event from files on this host, in bounded time."""

    def collect(self, cause: Event | Observation, query: Query) -> Sequence[Observation]:
        """Observations that belong to what just happened to this query; never raises."""


class Reports(Protocol):
    """Whom the worker tells what is not about one query. All methods return at once."""

    def request_details(self, query_id: str, run_id: str) -> None:
        """A run began: ask how it is configured."""

    def observe_application(self, status: ApplicationStatus) -> None:
        """A poll of the application as a whole came in."""

    def beat(self) -> None:
        """The worker lives; check what else must go on."""

    def time_event(self, callback_seconds: float | None, handling_seconds: float) -> None:
        """An event took so long: on Spark's bus, and in the worker."""


class Worker:
    """Handles items one by one, in the order in which they came."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        fleet: Fleet,
        exporters: Sequence[Exporter],
        reports: Reports,
        guard: ErrorGuard,
        verdicts: VerdictLog,
        heartbeat: Heartbeat,
        tracer: Tracer | None = None,
        evidence: Evidence | None = None,
        record: Callable[[str, str, str], None] | None = None,
        clock: Callable[[], float] = steady_time,
        wall_offset: Callable[[], float] = no_offset,
    ) -> None:
        self._inbox = inbox
        self._fleet = fleet
        self._exporters = exporters
        self._reports = reports
        self._guard = guard
        self._verdicts = verdicts
        self._heartbeat = heartbeat
        self._tracer = tracer
        self._evidence = evidence
        self._record = record  # keeps an event as it came
        self._clock = clock
        self._wall_offset = wall_offset
        self._closed: set[int] = set()  # exporters that were closed
        self._thread = threading.Thread(target=self._run, name="streamgauge-worker", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def close(self, seconds: float) -> None:
        """Work off the inbox, which is closed by now, and close the exporters; in bounded time."""
        if self._thread.ident is None:  # never started
            self.close_exporters()
            return
        deadline = time.monotonic() + seconds
        self._thread.join(seconds * 0.7)
        if not self._thread.is_alive():
            return
        # One exporter holds the worker; the others still get their word.
        closing = threading.Thread(target=self.close_exporters, daemon=True)
        with suppress(RuntimeError):  # from Python 3.12 no thread can be started at exit
            closing.start()
            closing.join(max(0.1, deadline - time.monotonic()))

    def _run(self) -> None:
        while True:
            items = self._inbox.take(_BEAT_SECONDS)
            self.step(items)
            if self._inbox.closed and not items:
                self.close_exporters()
                return

    def step(self, items: Sequence[Item]) -> None:
        """Handle items and let go of what is old; never raises."""
        self._heartbeat.beat()
        for item in items:
            self.handle(item)
            self._heartbeat.beat()
            time.sleep(0)  # a callback that waits for the interpreter goes first
        self._guard.run("worker", self._sweep)
        self._guard.run("worker", self._reports.beat)

    def handle(self, item: Item) -> None:
        """Handle one item; never raises."""
        if item.kind == MARK:
            item.content.set()
        elif item.kind == FAILURE:
            self._guard.count_error("bridge", item.content)
        elif item.kind in {OBSERVATION, GONE}:
            self._guard.run("worker", lambda: self._take_observation(item))
        else:
            began = time.perf_counter()
            self._guard.run("worker", lambda: self._take_event(item))
            self._reports.time_event(item.callback_seconds, time.perf_counter() - began)

    # ---- in --------------------------------------------------------------------------------

    def _take_event(self, item: Item) -> None:
        stats = self._guard.stats
        if item.fallback:
            stats.count("fallback_events")
        try:
            event = decode(item.content)
        except UndecodableEvent as error:
            self._guard.count_error("decoder", error)
            return
        known = self._fleet.queries.get(event.query_id)
        event = to_steady(event, known, item.at, self._wall_offset())
        applied = self._fleet.apply(event, item.at)
        stats.count("events", "duplicate" if applied.repeated else kind_of(event))
        for query in applied.queries if self._record else ():
            self._keep(query, str(item.content))
        self._tell(event, applied, item.at)

    def _take_observation(self, item: Item) -> None:
        observation: Observation = item.content
        applied = self._fleet.apply(observation, item.at)
        if isinstance(observation, ApplicationStatus):
            self._reports.observe_application(observation)
        self._tell(observation, applied, item.at)

    def _keep(self, query: Query, text: str) -> None:
        record = self._record
        if record is not None:
            self._guard.run("recorder", lambda: record(query.label, query.query_id, text))

    # ---- out -------------------------------------------------------------------------------

    def _tell(self, cause: Event | Observation, applied: Applied, at: float) -> None:
        """Count and pass on what came of an event or observation."""
        stats = self._guard.stats
        if applied.missed:
            stats.count("missed_batches", by=applied.missed)
        if applied.bus_dropped:
            stats.count("bus_dropped_events", by=applied.bus_dropped)
        if applied.wants_details is not None:
            self._reports.request_details(*applied.wants_details)
        for query in applied.queries:
            self._publish(cause, self._add_evidence(cause, query, at))

    def _add_evidence(self, cause: Event | Observation, query: Query, at: float) -> Query:
        """What files on this host tell of this very event, taken in like any other observation."""
        if self._evidence is not None:
            for found in self._evidence.collect(cause, query):
                self._fleet.apply(found, at)
        return self._fleet.queries.get(query.query_id, query)

    def _publish(self, cause: Event | Observation | None, query: Query) -> None:
        now = self._clock()
        verdict = judge(query, now)
        previous = self._verdicts.record(query.label, verdict)
        self._export(Update(at=now, cause=cause, query=query, verdict=verdict, previous=previous))

    def _export(self, update: Update) -> None:
        tracer, shown = self._tracer, shift_update(update, self._wall_offset())
        traced: list[TraceIds | None] = []
        if tracer is not None:
            self._guard.run("traces", lambda: traced.append(tracer.trace(shown)))
        if traced and traced[0] is not None:
            update = msgspec.structs.replace(update, trace=traced[0])
            shown = msgspec.structs.replace(shown, trace=traced[0])
        for exporter in self._exporters:
            told = update if getattr(exporter, "steady_times", False) else shown
            self._guard.run(exporter.name, lambda to=exporter, told=told: to.export(told))  # type: ignore[misc]

    def _sweep(self) -> None:
        now = self._clock()
        for query in self._fleet.sweep(now):
            self._verdicts.forget(query.label)
            self._export(
                Update(at=now, cause=None, query=query, verdict=judge(query, now), forgotten=True)
            )
        for query in self._fleet.fading(now):
            self._publish(None, query)

    def close_exporters(self) -> None:
        """Let each exporter send what is left, once; any thread, should the worker's be stuck.

        The last to be added comes first, and traces come last: they may wait for a dead collector.
        """
        closing: list[Exporter | Tracer] = [*reversed(self._exporters)]
        if self._tracer is not None:
            closing.append(self._tracer)
        for part in closing:
            if id(part) not in self._closed:
                self._closed.add(id(part))
                self._guard.run(getattr(part, "name", "traces"), part.close)
