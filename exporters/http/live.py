"""What the live page shows: the last batches of each query, and its verdicts.

The worker writes, replacing whole tuples; the server's threads read and render.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from streamgauge.exporters import Exporter
from streamgauge.exporters.metrics.page import freshness_of
from streamgauge.model.events import Event, Progress
from streamgauge.model.query import Query
from streamgauge.model.verdict import Verdict, judge

BATCHES, VERDICTS = 100, 30
PHASES = (
    *("latest_offset", "get_offset", "wal_commit", "get_batch"),
    *("query_planning", "add_batch", "commit_offsets"),
)


class Batch(Struct, frozen=True):
    """One bar of the page."""

    id: int
    at: float
    seconds: float
    phases: tuple[float, ...]  # in the order of PHASES
    rows: int | None
    input_rate: float | None
    processed_rate: float | None
    state_rows: int | None
    backlog: float | None
    lag: float | None
    replayed: bool


class _Shown(Struct, frozen=True):
    query: Query
    batches: tuple[Batch, ...] = ()
    verdicts: tuple[tuple[float, str, str], ...] = ()


class LiveExporter(Exporter):
    """Remembers a hundred batches and thirty verdicts of each query."""

    name = "live"

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        worker_seen_at: Callable[[], float] = time.time,
    ) -> None:
        self.app = ""
        self.spark_ui: str | None = None
        self._clock = clock
        self._worker_seen_at = worker_seen_at
        self._shown: dict[str, _Shown] = {}

    def handle(self, event: Event, query: Query) -> None:
        """Remember a batch."""
        shown = self._shown.get(query.label) or _Shown(query)
        batches = shown.batches
        if isinstance(event, Progress):
            batches = (*batches, _batch(event))[-BATCHES:]
        self._keep(_Shown(query, batches, shown.verdicts))

    def observe(self, query: Query) -> None:
        """Remember what was seen between events."""
        shown = self._shown.get(query.label) or _Shown(query)
        self._keep(_Shown(query, shown.batches, shown.verdicts))

    def change(self, query: Query, before: Verdict | None, after: Verdict) -> None:
        """Remember a verdict."""
        shown = self._shown.get(query.label) or _Shown(query)
        verdicts = (*shown.verdicts, (self._clock(), after.state, after.reason))[-VERDICTS:]
        self._keep(_Shown(query, shown.batches, verdicts))

    def forget(self, query: Query) -> None:
        """Take a query off the page."""
        self._shown = {label: s for label, s in self._shown.items() if label != query.label}

    def _keep(self, shown: _Shown) -> None:
        self._shown = {**self._shown, shown.query.label: shown}

    # ---- any thread ------------------------------------------------------------------------

    def render(self) -> bytes:
        """Everything the page needs now, as JSON."""
        now = self._clock()
        shown = sorted(self._shown.values(), key=lambda s: s.query.label)
        return msgspec.json.encode(
            {
                "app": self.app,
                "now": now,
                "phases": PHASES,
                "queries": [self._query(s, now) for s in shown],
            }
        )

    def _query(self, shown: _Shown, now: float) -> dict[str, Any]:
        query = shown.query
        verdict = judge(query, now, worker_seen_at=self._worker_seen_at())
        since = query.inflight_since(now)
        tasks = query.status.tasks if query.status and since is not None else None
        page = f"{self.spark_ui}/StreamingQuery/statistics/?id={query.run_id}"
        return {
            "name": query.label,
            "state": verdict.state,
            "reason": verdict.reason,
            "run_id": query.run_id,
            "started_at": query.started_at,
            "trigger": query.trigger,
            "trigger_seconds": query.trigger_seconds,
            "checkpoint": query.details.checkpoint if query.details else None,
            "freshness": freshness_of(query, now, verdict.state) if query.live else None,
            "inflight": now - since if since is not None else None,
            "tasks": tasks,
            "watermark": query.committed.watermark if query.committed else None,
            "batches": shown.batches,
            "verdicts": shown.verdicts,
            "ui": page if self.spark_ui and query.live else None,
        }


def _batch(event: Progress) -> Batch:
    rows = [operator.rows for operator in event.operators if operator.rows is not None]
    return Batch(
        id=event.batch_id,
        at=event.at,
        seconds=event.seconds or 0.0,
        phases=tuple(event.phases.get(name, 0.0) for name in PHASES),
        rows=event.input_rows,
        input_rate=event.input_rate,
        processed_rate=event.processed_rate,
        state_rows=sum(rows) if rows and len(rows) == len(event.operators) else None,
        backlog=event.backlog,
        lag=event.lag,
        replayed=event.replayed,
    )


def page() -> bytes:
    """The page itself: one file, no outside host."""
    return files(__package__).joinpath("live.html").read_bytes()
