"""A user's own TracerProvider: its ids, its sampler, its exporters, and its own end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    set_span_in_context,
)

from streamgauge.version import __version__

from .attributes import LINK, Attributes
from .outbox import Count
from .pipeline import Key, SpanRecord

_MOST_OPEN = 256


class UsersPipeline:
    """Starts, fills and ends spans through the API alone."""

    def __init__(self, provider: TracerProvider, count: Count) -> None:
        self._tracer: Tracer = provider.get_tracer("streamgauge", __version__)
        self._count = count
        self._open: dict[Key, Span] = {}  # roots begun before all was known of them
        self._lock = threading.Lock()

    def write(self, key: Key, root: SpanRecord) -> SpanContext | None:
        """Write a whole trace; return its root's context, or None when it was not sampled."""
        with self._lock:
            begun = self._open.pop(key, None)
        span = self._begin(root, None) if begun is None else _complete(begun, root)
        sampled = _is_sampled(span)
        if sampled:
            for child in root.children:
                self._begin(child, span).end(child.end)
            _tell_failure(span, root)
        span.end(root.end)
        self._count("handed_over" if sampled else "unsampled", 1 + len(root.children))
        return span.get_span_context() if sampled else None

    def write_below(self, key: Key, child: SpanRecord, name: str) -> SpanContext | None:
        """Write one span under a root, called `name`, that is begun now and written later."""
        parent = self.context_of(key, name, child.start)
        if parent is None:
            return None
        span = self._begin(child, NonRecordingSpan(parent))
        span.end(child.end)
        sampled = _is_sampled(span)
        self._count("handed_over" if sampled else "unsampled", 1)
        return span.get_span_context() if sampled else None

    def context_of(
        self, key: Key, name: str, start: int | None = None, attributes: Attributes | None = None
    ) -> SpanContext | None:
        """Context of a root that is begun now, if it was not before."""
        with self._lock:
            span = self._open.get(key)
            if span is None:
                span = self._tracer.start_span(
                    name, context=Context(), attributes=attributes, start_time=start
                )
                self._open[key] = span
            while len(self._open) > _MOST_OPEN:
                self._open.pop(next(iter(self._open))).end()
        context = span.get_span_context()
        return context if context.is_valid else None

    def computed(self, key: Key) -> None:
        """Nobody can compute what the SDK chose."""

    def end_open(self, run_id: str, end: int) -> None:
        """End the roots of a run that were begun and will not be written."""
        with self._lock:
            for key in [key for key in self._open if key[0] == run_id]:
                self._open.pop(key).end(end)

    def set_resource(self, attributes: Mapping[str, str]) -> None:
        """Nothing: the resource is the user's, as the provider is."""

    def close(self) -> None:
        """The provider is the user's to close."""

    def _begin(self, record: SpanRecord, parent: Span | None) -> Span:
        return self._tracer.start_span(
            record.name,
            context=Context() if parent is None else set_span_in_context(parent, Context()),
            attributes=record.attributes,
            links=[Link(context, {LINK: what}) for what, context in record.links],
            start_time=record.start,
        )


def _complete(span: Span, root: SpanRecord) -> Span:
    """Say of a span that was begun early what is known now."""
    span.set_attributes(root.attributes)
    for what, context in root.links:
        span.add_link(context, {LINK: what})
    with suppress(AttributeError):
        # Begun by `batch_span`, in the middle of the batch; the API can't set a start later.
        span._start_time = root.start  # type: ignore[attr-defined] # noqa: SLF001
    return span


def _is_sampled(span: Span) -> bool:
    return bool(span.get_span_context().trace_flags.sampled)


def _tell_failure(span: Span, root: SpanRecord) -> None:
    if root.failure is None:
        return
    span.set_status(Status(StatusCode.ERROR, root.failure.words))
    if root.failure.exception is not None:
        span.add_event("exception", root.failure.exception, root.end)
