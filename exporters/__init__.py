"""What goes out: Prometheus metrics, OpenTelemetry traces, structured logs, the HTTP server."""

from __future__ import annotations

from typing import Any

from streamgauge.model.events import Event, Idle, Progress, Started, Terminated
from streamgauge.model.query import Query
from streamgauge.model.update import Update
from streamgauge.model.verdict import Verdict


class Exporter:
    """Something that tells others what happened.

    All methods run in the agent's one worker thread, never on Spark's. They may raise: that is
    counted under `name` and logged, and the other exporters still get the update. They must not wait
    for anything that may not come. Override `export` to get every update whole, or only those of the
    other methods that are of interest.
    """

    name: str
    steady_times = (
        False  # True: updates come in the steady clock, to compute ages with; else in wall time
    )

    def export(self, update: Update) -> None:
        """Take one update; unless overridden, call the methods below that fit it."""
        if update.forgotten:
            self.forget(update.query)
            return
        try:
            if isinstance(update.cause, Started | Progress | Idle | Terminated):
                self.handle(update.cause, update.query)
            else:
                self.observe(update.query)
        finally:  # a new verdict is told once, whatever became of the event
            if update.changes_state:
                self.change(update.query, update.previous, update.verdict)

    def handle(self, event: Event, query: Query) -> None:
        """Tell of an event; `query` is what is known with this event taken in."""

    def observe(self, query: Query) -> None:
        """Tell of something learned between events."""

    def change(self, query: Query, before: Verdict | None, after: Verdict) -> None:
        """Tell of a new verdict."""

    def forget(self, query: Query) -> None:
        """Let go of a query that has left the fleet."""

    def close(self) -> None:
        """Send what is left, within a second or so; nothing comes after this."""


class _Adapted(Exporter):
    """An exporter of the user's that has the methods but not the base class."""

    def __init__(self, exporter: Any) -> None:
        self.name = getattr(exporter, "name", type(exporter).__name__)
        for method in ("handle", "observe", "change", "forget", "close"):
            if hasattr(exporter, method):
                setattr(self, method, getattr(exporter, method))


def adapt(exporter: Any) -> Exporter:
    """An exporter as the worker calls it; one without `export` gets its updates by the other methods."""
    ready: Exporter = exporter if hasattr(exporter, "export") else _Adapted(exporter)
    return ready
