"""Notices a worker that is stuck, from the watchdog's thread: then every query is blind, and that is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from streamgauge.model.query import Query
from streamgauge.model.update import Update
from streamgauge.model.verdict import BLIND_SECONDS, judge
from streamgauge.model.verdict_log import VerdictLog
from streamgauge.steady import steady_time

from .error_guard import ErrorGuard
from .heartbeat import Heartbeat


class WorkerMonitor:
    """Checks the worker's heartbeat. The watchdog's thread calls; nothing here waits or raises."""

    def __init__(
        self,
        *,
        heartbeat: Heartbeat,
        queries: Callable[[], Mapping[str, Query]],
        verdicts: VerdictLog,
        guard: ErrorGuard,
        log: Callable[[Update], None],
        clock: Callable[[], float] = steady_time,
    ) -> None:
        """`log` writes an update to the log; it may block, as whatever holds the worker does."""
        self._heartbeat = heartbeat
        self._queries = queries
        self._verdicts = verdicts
        self._guard = guard
        self._log = log
        self._clock = clock
        self._stuck = False

    def check(self) -> None:
        """Count, and tell of every live query, once, that the worker is stuck."""
        was_stuck = self._stuck
        self._stuck = self._clock() - self._heartbeat() > BLIND_SECONDS
        if self._stuck and not was_stuck:
            why = f"nothing was handled for over {BLIND_SECONDS:.0f} s; an exporter does not come back"
            self._guard.count_error("worker", TimeoutError(why))
            # A thread of its own: the log may be what the worker waits for.
            threading.Thread(
                target=self._guard.run,
                args=("logs", self._tell),
                name="streamgauge-blind",
                daemon=True,
            ).start()

    def _tell(self) -> None:
        now, seen_at = self._clock(), self._heartbeat()
        for query in self._queries().values():
            if query.live:
                verdict = judge(query, now, worker_seen_at=seen_at)
                previous = self._verdicts.record(query.label, verdict)
                self._log(
                    Update(at=now, cause=None, query=query, verdict=verdict, previous=previous)
                )
