"""What the live page shows: the last batches of each query, and its verdicts.

The worker writes, replacing whole tuples; the server's threads read and render.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from streamgauge.exporters import Exporter
from streamgauge.exporters.metrics.info import sink_of
from streamgauge.exporters.metrics.live_series import freshness_of
from streamgauge.exporters.metrics.rates import rates_of
from streamgauge.model.application import Application
from streamgauge.model.events import Progress
from streamgauge.model.phases import ENGINE_ORDER
from streamgauge.model.query import Query
from streamgauge.model.timeshift import shift_event, shift_query
from streamgauge.model.update import Update
from streamgauge.model.verdict import judge
from streamgauge.steady import no_offset, steady_time

from .backlog import backlog_of
from .next_step import next_step_of

BATCHES, VERDICTS = 100, 30


class Batch(Struct, frozen=True):
    """One bar of the page."""

    id: int
    at: float
    seconds: float
    phases: tuple[float, ...]  # in engine order
    rows: int | None
    input_rate: float | None
    processed_rate: float | None
    state_rows: int | None
    backlog: tuple[tuple[str, float], ...]  # unit and number, as known when the batch ended
    lag: float | None
    replayed: bool


class _Shown(Struct, frozen=True):
    query: Query
    batches: tuple[Batch, ...] = ()
    verdicts: tuple[tuple[float, str, str], ...] = ()


class LiveExporter(Exporter):
    """Remembers a hundred batches and thirty verdicts of each query."""

    name = "live"
    steady_times = True

    def __init__(
        self,
        *,
        application: Callable[[], Application],
        clock: Callable[[], float] = steady_time,
        wall_offset: Callable[[], float] = no_offset,
        worker_seen_at: Callable[[], float] = steady_time,
    ) -> None:
        self._application = application
        self._clock = clock
        self._wall_offset = wall_offset
        self._worker_seen_at = worker_seen_at
        self._shown: dict[str, _Shown] = {}

    def export(self, update: Update) -> None:
        """Remember a batch, a verdict, and what is known of the query."""
        label = update.query.label
        if update.forgotten:
            self._shown = {key: shown for key, shown in self._shown.items() if key != label}
            return
        shown = self._shown.get(label) or _Shown(update.query)
        batches, verdicts = shown.batches, shown.verdicts
        if isinstance(update.cause, Progress):
            batch = shift_event(update.cause, self._wall_offset())
            backlog = backlog_of(update.query, update.at).whole
            batches = (*batches, _batch(batch, backlog))[-BATCHES:]  # type: ignore[arg-type]
        if update.changes_state:
            verdict = (update.at, update.verdict.state, update.verdict.reason)
            verdicts = (*verdicts, verdict)[-VERDICTS:]
        self._shown = {**self._shown, label: _Shown(update.query, batches, verdicts)}

    # ---- any thread ------------------------------------------------------------------------

    def render(self) -> bytes:
        """Everything the page needs now, as JSON."""
        now, offset, application = self._clock(), self._wall_offset(), self._application()
        shown = sorted(self._shown.values(), key=lambda s: s.query.label)
        return msgspec.json.encode(
            {
                "app": application.known_name,
                "now": now + offset,
                "phases": ENGINE_ORDER,
                "queries": [self._render_query(s, now, offset, application.ui_url) for s in shown],
            }
        )

    def _render_query(
        self, shown: _Shown, now: float, offset: float, ui_url: str | None
    ) -> dict[str, Any]:
        query = shown.query
        verdict = judge(query, now, worker_seen_at=self._worker_seen_at())
        since = query.inflight_since(now)
        tasks = query.status.tasks if query.status and since is not None else None
        spark_page = f"{ui_url}/StreamingQuery/statistics/?id={query.run_id}"
        return {
            "name": query.label,
            "state": verdict.state,
            "reason": verdict.reason,
            "run_id": query.run_id,
            "started_at": shift_query(query, offset).started_at,
            "trigger": query.trigger,
            "trigger_seconds": query.trigger_seconds,
            "checkpoint": query.details.checkpoint if query.details else None,
            "freshness": freshness_of(query, now, verdict) if query.live else None,
            "rates": rates_of(query, verdict, now),
            "backlog": backlog_of(query, now),
            "inflight": now - since if since is not None else None,
            "inflight_batch": query.status.batch_id if query.status else None,
            "tasks": tasks,
            "step": next_step_of(query, verdict, sink_of(query)),
            "watermark": query.committed.watermark if query.committed else None,
            "batches": shown.batches,
            "verdicts": [(at + offset, *words) for at, *words in shown.verdicts],
            "ui": spark_page if ui_url and query.live else None,
        }


def _batch(event: Progress, backlog: tuple[tuple[str, float], ...]) -> Batch:
    rows = [operator.rows for operator in event.operators if operator.rows is not None]
    return Batch(
        id=event.batch_id,
        at=event.at,
        seconds=event.seconds or 0.0,
        phases=tuple(event.phases.get(name, 0.0) for name in ENGINE_ORDER),
        rows=event.input_rows,
        input_rate=event.input_rate,
        processed_rate=event.processed_rate,
        state_rows=sum(rows) if rows and len(rows) == len(event.operators) else None,
        backlog=backlog,
        lag=event.lag,
        replayed=event.replayed,
    )


def page() -> bytes:
    """The page itself: one file, no outside host."""
    from importlib.resources import files  # noqa: PLC0415 - a driver nobody looks at need not

    return files(__package__).joinpath("live.html").read_bytes()
