"""The one thread that does the work: takes from the inbox, keeps the fleet, feeds the exporters.

One guard, in one place: an exporter that fails is counted and logged, and the others still get the
event.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from streamgauge.exporters import Exporter
from streamgauge.listener.inbox import FAILURE, GONE, LOOK, MARK, Inbox, Item
from streamgauge.model.decoder import UndecodableEvent, decode
from streamgauge.model.events import Event, Idle, Started, Terminated, kind_of
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import (
    ApplicationStatus,
    CheckpointNames,
    Gone,
    QueryStatus,
    RunDetails,
    SourceBacklog,
    Unseen,
)
from streamgauge.model.query import Query
from streamgauge.model.sources.broker_offsets import BrokerOffsets
from streamgauge.model.stats import Stats
from streamgauge.model.verdict import Verdict, judge

_BEAT = 1.0


class Worker:
    """Handles items one by one, in the order in which they came."""

    def __init__(
        self,
        inbox: Inbox,
        fleet: Fleet,
        exporters: Sequence[Exporter],
        stats: Stats,
        *,
        complain: Callable[[str, BaseException], None],
        wanted: Callable[[str, str], None] = lambda *_: None,
        ticked: Callable[[ApplicationStatus], None] = lambda _: None,
        beat: Callable[[], None] = lambda: None,
        timed: Callable[[float | None, float], None] = lambda *_: None,
        record: Callable[[str, str, str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._inbox = inbox
        self._fleet = fleet
        self._exporters = exporters
        self._stats = stats
        self._complain = complain
        self._wanted = wanted  # asks for the details of a run
        self._ticked = ticked
        self._beat = beat  # checks what else must go on
        self._timed = timed
        self._record = record  # keeps an event as it came
        self._clock = clock
        self._bus_dropped: int | None = None
        self._missed: dict[str, int] = {}
        self._told_the_end: set[int] = set()  # exporters that were closed
        self._verdicts: dict[str, Verdict] = {}
        self.broken: frozenset[str] = frozenset()  # runs that the end of their application breaks
        self.seen_at = clock()
        self._thread = threading.Thread(target=self._run, name="streamgauge-worker", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the inbox to be worked off after it was closed; whether it was."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            items = self._inbox.take(_BEAT)
            self.step(items)
            if self._inbox.closed and not items:
                self.close_exporters()
                return

    def step(self, items: Sequence[Item]) -> None:
        """Handle items and let go of what is old; never raises."""
        self.seen_at = self._clock()
        for item in items:
            self.handle(item)
            self.seen_at = self._clock()
            time.sleep(0)  # a callback that waits for the interpreter goes first
        self._guard("worker", self._sweep)
        self._guard("worker", self._beat)

    def handle(self, item: Item) -> None:
        """Handle one item; never raises."""
        if item.kind == MARK:
            item.content.set()
            return
        if item.kind == FAILURE:
            self._fail("bridge", item.content)
            return
        if item.kind in {LOOK, GONE}:
            self._guard("worker", lambda: self._look(item))
            return
        began = time.perf_counter()
        self._guard("worker", lambda: self._event(item))
        self._timed(item.callback_seconds, time.perf_counter() - began)

    def _guard(self, part: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - this is the one guard
            self._fail(part, error)

    def _fail(self, part: str, error: BaseException) -> None:
        self._stats.count("errors", part)
        self._complain(part, error)

    # ---- events ----------------------------------------------------------------------------

    def _event(self, item: Item) -> None:
        if item.fallback:
            self._stats.count("fallback_events")
        try:
            event = decode(item.content)
        except UndecodableEvent as error:
            self._fail("decoder", error)
            return
        if isinstance(event, Terminated) and event.exception and event.run_id in self.broken:
            self._stats.count("events", "terminated")
            return  # not a failure of its own; that it is over is told with the application's end
        query = self._fleet.handle(event, item.at)
        if query is None:
            self._skip(event)
            return
        self._stats.count("events", kind_of(event))
        if self._record:
            keep, text = self._record, str(item.content)
            self._guard("recorder", lambda: keep(query.label, query.query_id, text))
        if isinstance(event, Started):
            self._wanted(query.query_id, query.run_id)
        self._count_missed(query)
        self._tell(lambda exporter: exporter.handle(event, query))
        self._judge(query)

    def _skip(self, event: Event) -> None:
        """An event seen before; or the idling of a query whose name must be asked for first."""
        if isinstance(event, Idle) and event.query_id not in self._fleet.queries:
            self._stats.count("events", "idle")
            self._wanted(event.query_id, event.run_id)
        else:
            self._stats.count("events", "duplicate")

    def _count_missed(self, query: Query) -> None:
        known = self._missed.get(query.query_id, 0)
        if query.missed > known:
            self._missed[query.query_id] = query.missed
            self._stats.count("missed_batches", by=query.missed - known)

    # ---- looks -----------------------------------------------------------------------------

    def _look(self, item: Item) -> None:
        look: Any = item.content
        if isinstance(look, ApplicationStatus):
            self._tick(look)
            return
        if isinstance(look, BrokerOffsets):
            for each in self._fleet.witness(look):
                self._tell(lambda exporter, each=each: exporter.observe(each))  # type: ignore[misc]
            return
        if isinstance(look, RunDetails):
            query = self._fleet.learn(look, item.at)
        elif isinstance(look, QueryStatus):
            query = self._fleet.look(look)
        elif isinstance(look, CheckpointNames | SourceBacklog):
            query = self._fleet.inspect(look)
        elif isinstance(look, Unseen):
            query = self._fleet.hide(look)
        elif isinstance(look, Gone):
            query = self._fleet.lose(look)
        else:
            raise TypeError(f"the inbox held a {type(look).__name__}")
        if query is not None:
            self._count_missed(query)
            self._tell(lambda exporter: exporter.observe(query))
            self._judge(query)

    def _tick(self, tick: ApplicationStatus) -> None:
        self._ticked(tick)
        if tick.bus_dropped is not None:
            new = tick.bus_dropped - (self._bus_dropped or 0)
            if self._bus_dropped is not None and new > 0:
                self._stats.count("bus_dropped_events", by=new)
            self._bus_dropped = tick.bus_dropped

    def _sweep(self) -> None:
        now = self._clock()
        for query in self._fleet.sweep(now):
            self._verdicts.pop(query.label, None)
            self._tell(lambda exporter, query=query: exporter.forget(query))  # type: ignore[misc]
        if len(self._missed) > len(self._fleet.queries):
            known = self._fleet.queries
            self._missed = {key: n for key, n in self._missed.items() if key in known}
        for query in self._fleet.fading(now):
            self._tell(lambda exporter, query=query: exporter.observe(query))  # type: ignore[misc]

    # ---- telling ---------------------------------------------------------------------------

    def _tell(self, tell: Callable[[Exporter], None]) -> None:
        for exporter in self._exporters:
            self._guard(exporter.name, lambda exporter=exporter: tell(exporter))  # type: ignore[misc]

    def _judge(self, query: Query) -> None:
        after = judge(query, self._clock())
        before = self._verdicts.get(query.label)
        if before is None or before.state != after.state:
            self._verdicts[query.label] = after
            self._tell(lambda exporter: exporter.change(query, before, after))

    def close_exporters(self) -> None:
        """Let each exporter send what is left, once; any thread, should the worker's be stuck.

        The first to be told of events is the last here: traces wait for a collector that may be dead.
        """
        for exporter in reversed(self._exporters):
            if id(exporter) not in self._told_the_end:
                self._told_the_end.add(id(exporter))
                self._guard(exporter.name, exporter.close)
