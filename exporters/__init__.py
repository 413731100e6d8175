"""What goes out: Prometheus metrics, OpenTelemetry traces, structured logs."""

from __future__ import annotations

from streamgauge.model.events import Event
from streamgauge.model.query import Query
from streamgauge.model.verdict import Verdict


class Exporter:
    """Something that tells others what happened.

    All methods run in the agent's one worker thread, never on Spark's. They may raise: that is
    counted under `name` and logged, and the other exporters still get the event. They must not wait for anything
    that may not come. Subclasses override what they need.
    """

    name: str

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
