"""Our own pipeline: ids that anybody can compute, OpenTelemetry's samplers, limits and exporters.

Finished spans are made as they are, all at once, instead of being started, filled and ended one by
one: that costs less than half. No provider is registered anywhere, so none is replaced.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from streamgauge.version import __version__

from . import ids as span_ids
from .attributes import LINK, Attributes
from .outbox import Count, Outbox, ReportError
from .pipeline import Key, SpanRecord
from .sampling import KeepSampler

_CLOSE_SECONDS = 1.0  # of the two that an exit may take
_MOST_ATTRIBUTES = 512  # a batch of many sources says more than the SDK's 128 allow
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")
_SAMPLED, _UNSAMPLED = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)
_SCOPE = InstrumentationScope("streamgauge", __version__)
_ERROR, _UNSET = StatusCode.ERROR, Status(StatusCode.UNSET)


class OwnPipeline:
    """Makes finished spans and posts them. Holds no state of traces, so any thread may call it."""

    def __init__(
        self,
        sampler: Sampler,
        resource: Resource,
        limits: SpanLimits,
        count: Count,
        outboxes: Sequence[Outbox],
    ) -> None:
        self._sampler = sampler
        self._resource = resource
        self._limits = limits
        self._count = count
        self._outboxes = outboxes

    def write(self, key: Key, root: SpanRecord) -> SpanContext | None:
        """Write a whole trace; return its root's context, or None when it was not sampled."""
        links = [Link(context, {LINK: what}) for what, context in root.links]
        context = _context(key, root.part, self._ask(key, root.name, root.attributes, links))
        if not context.trace_flags.sampled:
            self._count("unsampled", 1 + len(root.children))
            return None
        spans = [
            self._make(child, _context(key, child.part, _SAMPLED), context)
            for child in root.children
        ]
        spans.append(self._make(root, context, None, links))
        self._post(spans)
        return context

    def write_below(self, key: Key, child: SpanRecord, name: str) -> SpanContext | None:
        """Write one span under a root, called `name`, that is not written yet."""
        parent = self.context_of(key, name, child.start, child.attributes)
        if not parent.trace_flags.sampled:
            self._count("unsampled", 1)
            return None
        context = _context(key, child.part, _SAMPLED)
        self._post([self._make(child, context, parent)])
        return context

    def context_of(
        self, key: Key, name: str, start: int | None = None, attributes: Attributes | None = None
    ) -> SpanContext:
        """Context of a root before it is written; sampled if it would be with these attributes."""
        return _context(key, _root(key), self._ask(key, name, attributes or {}, ()))

    def computed(self, key: Key) -> SpanContext:
        """Context of a root that was not sampled."""
        return _context(key, _root(key), _UNSAMPLED)

    def end_open(self, run_id: str, end: int) -> None:
        """Nothing is ever left open."""

    def set_resource(self, attributes: Mapping[str, str]) -> None:
        """Have the spans from now on come from this resource; each reads it once."""
        self._resource = make_resource(attributes)

    def close(self) -> None:
        """Send what is left, within a second."""
        deadline = time.monotonic() + _CLOSE_SECONDS
        for outbox in self._outboxes:
            outbox.finish()
        for outbox in self._outboxes:
            outbox.close(max(0.0, deadline - time.monotonic()))

    def _ask(
        self, key: Key, name: str, attributes: Attributes, links: Sequence[Link]
    ) -> TraceFlags:
        result = self._sampler.should_sample(
            Context(), span_ids.trace_id(*key), name, SpanKind.INTERNAL, attributes, links
        )
        return _SAMPLED if result.decision is Decision.RECORD_AND_SAMPLE else _UNSAMPLED

    def _make(
        self,
        record: SpanRecord,
        context: SpanContext,
        parent: SpanContext | None,
        links: Sequence[Link] = (),
    ) -> ReadableSpan:
        failure, events, status = record.failure, (), _UNSET
        if failure is not None:
            status = Status(_ERROR, failure.words)
        if failure is not None and failure.exception is not None:
            events = (Event("exception", failure.exception, record.end),)  # type: ignore[assignment]
        return ReadableSpan(
            record.name,
            context,
            parent,
            self._resource,
            self._bound(record.attributes),
            events,
            links,
            SpanKind.INTERNAL,
            status=status,
            start_time=record.start,
            end_time=record.end,
            instrumentation_scope=_SCOPE,
        )

    def _bound(self, attributes: Attributes) -> Any:
        """Attributes within the limits; where they are, the SDK's own checks are not needed."""
        most, longest = self._limits.max_span_attributes, self._limits.max_span_attribute_length
        if longest is None and (most is None or len(attributes) <= most):
            return attributes
        return BoundedAttributes(most, attributes, immutable=True, max_value_len=longest)

    def _post(self, spans: list[ReadableSpan]) -> None:
        for outbox in self._outboxes:
            outbox.post(spans)


def _root(key: Key) -> str:
    return span_ids.START if key[1] == span_ids.START else span_ids.BATCH


def _context(key: Key, part: str, flags: TraceFlags) -> SpanContext:
    return SpanContext(
        span_ids.trace_id(*key), span_ids.span_id(*key, part), is_remote=False, trace_flags=flags
    )


def make_own(
    makers: Sequence[Callable[[], SpanExporter]],
    attributes: Mapping[str, str],
    count: Count,
    report_error: ReportError,
    *,
    keep_seconds: float,
    environ: Mapping[str, str] | None = None,
) -> OwnPipeline:
    """Build a pipeline of our own; sampler, limits and queue are those of OTEL_* variables."""
    environ = os.environ if environ is None else environ
    limited = any(environ.get(variable) for variable in _LIMITS)
    limits = SpanLimits() if limited else SpanLimits(max_span_attributes=_MOST_ATTRIBUTES)
    sampler = TracerProvider(shutdown_on_exit=False, resource=Resource({})).sampler
    limit, batch, delay_seconds = _queue(environ)
    outboxes = [
        Outbox(make, count, report_error, limit=limit, batch=batch, delay_seconds=delay_seconds)
        for make in makers
    ]
    return OwnPipeline(
        KeepSampler(sampler, keep_seconds), make_resource(attributes), limits, count, outboxes
    )


def make_resource(attributes: Mapping[str, str]) -> Resource:
    """Who speaks: what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say wins over ours."""
    said = OTELResourceDetector().detect().attributes
    known = {"host.name": socket.gethostname(), "telemetry.distro.name": "streamgauge"}
    known |= {"telemetry.distro.version": __version__, **attributes}
    return Resource.create({k: v for k, v in known.items() if v and k not in said})


def _queue(environ: Mapping[str, str]) -> tuple[int, int, float]:
    """Size and pace of the queue: the batch span processor's variables, with their defaults."""
    limit = _natural(environ.get("OTEL_BSP_MAX_QUEUE_SIZE"), 2048)
    batch = _natural(environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), 512)
    delay = _natural(environ.get("OTEL_BSP_SCHEDULE_DELAY"), 5000)
    return limit, batch, delay / 1000


def _natural(text: str | None, default: int) -> int:
    return int(text) if text and text.strip().isdecimal() and int(text) > 0 else default
