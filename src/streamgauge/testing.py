"""For users' own tests: recorded events played without Spark, and an exporter that remembers.

Nothing here starts a thread, opens a port or reads the clock: time is that of the events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from streamgauge.exporters import Exporter
from streamgauge.listener.driver import QuietDriver
from streamgauge.listener.inbox import Item
from streamgauge.model.decoder import decode
from streamgauge.model.events import Event, Idle, Progress, Started, kind_of
from streamgauge.model.query import Query
from streamgauge.model.verdict import Verdict, judge

from .agent import Agent
from .config import make_config

__all__ = ["InMemoryExporter", "Player"]

Recorded = str | Path | Mapping[str, Any]


class InMemoryExporter(Exporter):
    """Keeps everything it is told, in order."""

    name = "memory"

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changes: list[tuple[str, Verdict]] = []  # label of the query, its new verdict
        self.forgotten: list[str] = []
        self.closed = False

    def handle(self, event: Event, query: Query) -> None:
        """Keep an event."""
        self.events.append(event)

    def change(self, query: Query, before: Verdict | None, after: Verdict) -> None:
        """Keep a new verdict."""
        self.changes.append((query.label, after))

    def forget(self, query: Query) -> None:
        """Keep the label of a query that left."""
        self.forgotten.append(query.label)

    def close(self) -> None:
        """Know that it is over."""
        self.closed = True


class Player:
    """An agent that is given recorded events instead of Spark's, in the caller's thread.

    Settings are those of `streamgauge.Config`. An exporter that raises is counted, as in production:
    see `errors`.
    """

    def __init__(self, *, exporters: Iterable[Exporter] = (), **settings: Any) -> None:
        config = make_config({"log_level": "off", "app": "test", **settings})
        self.now = 0.0  # seconds since the epoch: the time of the newest event
        self.memory = InMemoryExporter()
        self._agent = Agent(
            config,
            registry=CollectorRegistry(auto_describe=False),
            exporters=[self.memory, *exporters],
            driver=QuietDriver(),
            clock=lambda: self.now,
        )
        self._agent.registry.register(self._agent.prometheus)

    def play(self, *events: Recorded) -> Player:
        """Hand in events: JSON as Spark writes it, a mapping, or a file of one or a line each.

        Raises `UndecodableEvent` for what is not an event.
        """
        for text in (text for event in events for text in _texts(event)):
            event = decode(text)
            self.now = max(self.now, _time_of(event) or 0.0)
            self._agent.step(Item(kind_of(event), text, self.now))
        return self

    def wait(self, seconds: float) -> Player:
        """Let time pass without an event."""
        self.now += seconds
        self._agent.step()
        return self

    def verdict(self, query: str) -> Verdict:
        """The verdict on a query now, by its label; raises KeyError when there is none."""
        found = {q.label: q for q in self._agent.queries.values()}
        return judge(found[query], self.now)

    def value(self, name: str, query: str | None = None, **labels: str) -> float | None:
        """One sample of the page by its name without the prefix; None when it is absent."""
        if query is not None:
            labels = {"app": self._agent.application().name, "query": query, **labels}
        found: float | None = self._agent.registry.get_sample_value(f"streamgauge_{name}", labels)
        return found

    @property
    def errors(self) -> Mapping[str, float]:
        """What failed, by part; an exporter's part is its name."""
        return self._agent.stats.of("errors")

    def close(self) -> None:
        """End it: the exporters are closed."""
        self._agent.close()

    def __enter__(self) -> Player:  # noqa: PYI034 - `Self` is newer than Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _texts(event: Recorded) -> list[str]:
    """The JSON of what may be a file with one event, or one a line."""
    if isinstance(event, str):
        return [event]
    if not isinstance(event, Path):
        return [json.dumps(event)]
    text = event.read_text(encoding="utf-8").strip()
    lines = text.splitlines()
    return lines if all(line.startswith("{") and line.endswith("}") for line in lines) else [text]


def _time_of(event: Event) -> float | None:
    if isinstance(event, Progress):
        return event.ended_at
    return event.at if isinstance(event, Started | Idle) else None
