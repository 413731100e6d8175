"""What traces are written to: records of spans go in, and come out with ids of somebody's choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from opentelemetry.trace import SpanContext

from .attributes import Attributes

Key = tuple[str, int | str]  # run id; batch id, or `span_ids.START`


class Failure(Struct, frozen=True, kw_only=True):
    """Why a span ended badly."""

    error_type: str
    words: str
    exception: Attributes | None = None  # of the exception event, on the span that failed


class SpanRecord(Struct, frozen=True, kw_only=True):
    """One span with those below it. Times are nanoseconds since the epoch."""

    name: str
    part: str
    start: int
    end: int
    attributes: Attributes
    links: Sequence[tuple[str, SpanContext]] = ()  # what it points to, and where that is
    failure: Failure | None = None
    children: Sequence[SpanRecord] = ()


class Pipeline(Protocol):
    """Writes traces. All methods are safe on any thread, and none waits for a collector."""

    def write(self, key: Key, root: SpanRecord) -> SpanContext | None:
        """Write a whole trace; return its root's context, or None when it was not sampled."""

    def write_below(self, key: Key, child: SpanRecord, name: str) -> SpanContext | None:
        """Write one span under a root, called `name`, that is not written yet."""

    def context_of(
        self, key: Key, name: str, start: int | None = None, attributes: Attributes | None = None
    ) -> SpanContext | None:
        """Context of a root before it is written, with the sampling that can be foreseen."""

    def computed(self, key: Key) -> SpanContext | None:
        """Context of a root that was not sampled, where ids can be computed."""

    def end_open(self, run_id: str, end: int) -> None:
        """End what was begun of a run and will not be written."""

    def set_resource(self, attributes: Mapping[str, str]) -> None:
        """Have the spans from now on come from this resource, where that is ours to say."""

    def close(self) -> None:
        """Send what is left, within a second."""
