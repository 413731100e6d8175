"""From records of spans to OpenTelemetry's SDK.

Our own provider gives them ids that anybody can compute; a user's gives them its own. No global of
OpenTelemetry is set or replaced.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)
from opentelemetry.trace import TracerProvider as AnyTracerProvider

from streamgauge.version import __version__

from . import span_ids
from .outbox import Complain, Count, Outbox
from .sampling import KeepSampler
from .span_attributes import LINK, Attributes

Key = tuple[str, int | str]  # run id; batch id, or `span_ids.START`

_CLOSE_SECONDS = 1.0  # of the two that an exit may take
_ATTRIBUTES = 512  # a batch of many sources says more than the SDK's 128 allow
_OPEN = 256
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Failure(Struct, frozen=True):
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


class HashedIds(IdGenerator):
    """Gives out the ids that were set last. Only under the pipeline's lock."""

    def __init__(self) -> None:
        self.trace = 0
        self.span = 0

    def generate_trace_id(self) -> int:
        """The trace id of the span that is about to start."""
        return self.trace

    def generate_span_id(self) -> int:
        """The span id of the span that is about to start."""
        return self.span


class Pipeline:
    """Writes traces. All methods are safe on any thread, and none waits for a collector."""

    def __init__(
        self,
        provider: AnyTracerProvider,
        count: Count,
        *,
        ids: HashedIds | None = None,
        outboxes: Sequence[Outbox] = (),
    ) -> None:
        self._provider = provider
        self._tracer: Tracer = provider.get_tracer("streamgauge", __version__)
        self._count = count
        self._ids = ids
        self._outboxes = outboxes
        self._open: dict[Key, Span] = {}  # roots begun before all was known; a user's provider only
        self._lock = threading.Lock()

    def write(self, key: Key, root: SpanRecord) -> SpanContext | None:
        """Write a whole trace; return its root's context, or None when it was not sampled."""
        with self._lock:
            span = self._begin_root(key, root)
            sampled = span.is_recording() and span.get_span_context().trace_flags.sampled
            if sampled:
                self._fill(key, span, root)
            span.end(root.end)
            self._post(1 + len(root.children), sampled)
            return span.get_span_context() if sampled else None

    def write_below(self, key: Key, child: SpanRecord, name: str) -> SpanContext | None:
        """Write one span under a root that is not written yet."""
        parent = self.context_of(key, name, child.start, child.attributes)
        if parent is None:
            return None
        with self._lock:
            span = self._begin(key, child, NonRecordingSpan(parent))
            sampled = span.get_span_context().trace_flags.sampled
            span.end(child.end)
            self._post(1, sampled)
            return span.get_span_context() if sampled else None

    def context_of(
        self, key: Key, name: str, start: int | None = None, attributes: Attributes | None = None
    ) -> SpanContext | None:
        """Context of a root before it is written: computed, or of a span that is begun now."""
        if self._ids is None:
            with self._lock:
                return self._begin_early(key, name, start)
        trace = span_ids.trace_id(*key)
        span = span_ids.span_id(*key, _root_part(key))
        flags = self._foresee(trace, name, attributes or {})
        return SpanContext(trace, span, is_remote=False, trace_flags=flags)

    def computed(self, key: Key) -> SpanContext | None:
        """Context of a root, sampled or not, where ids are ours."""
        return self.context_of(key, "") if self._ids is not None else None

    def end_open(self, run_id: str, end: int) -> None:
        """End the roots of a run that were begun and will not be written."""
        with self._lock:
            for key in [key for key in self._open if key[0] == run_id]:
                self._open.pop(key).end(end)

    def close(self) -> None:
        """Send what is left, within a second; a user's provider is the user's to close."""
        deadline = time.monotonic() + _CLOSE_SECONDS
        for outbox in self._outboxes:
            outbox.finish()
        for outbox in self._outboxes:
            outbox.close(max(0.0, deadline - time.monotonic()))

    # ---- under the lock --------------------------------------------------------------------

    def _begin_root(self, key: Key, root: SpanRecord) -> Span:
        span = self._open.pop(key, None)
        if span is None:
            return self._begin(key, root, None)
        span.set_attributes(root.attributes)
        for what, context in root.links:
            span.add_link(context, {LINK: what})
        with suppress(AttributeError):
            # Begun by `batch_span`, in the middle of the batch; the API can't set a start later.
            span._start_time = root.start  # type: ignore[attr-defined] # noqa: SLF001
        return span

    def _begin(self, key: Key, record: SpanRecord, parent: Span | None) -> Span:
        if self._ids is not None:
            self._ids.trace = span_ids.trace_id(*key)
            self._ids.span = span_ids.span_id(*key, record.part)
        return self._tracer.start_span(
            record.name,
            context=Context() if parent is None else set_span_in_context(parent, Context()),
            attributes=record.attributes,
            links=[Link(context, {LINK: what}) for what, context in record.links],
            start_time=record.start,
        )

    def _begin_early(self, key: Key, name: str, start: int | None) -> SpanContext | None:
        span = self._open.get(key)
        if span is None:
            span = self._tracer.start_span(name, context=Context(), start_time=start)
            self._open[key] = span
            while len(self._open) > _OPEN:
                self._open.pop(next(iter(self._open))).end()
        context = span.get_span_context()
        return context if context.is_valid else None

    def _fill(self, key: Key, span: Span, root: SpanRecord) -> None:
        for child in root.children:
            self._begin(key, child, span).end(child.end)
        if root.failure is not None:
            span.set_status(Status(StatusCode.ERROR, root.failure.words))
            if root.failure.exception is not None:
                span.add_event("exception", root.failure.exception, root.end)

    def _post(self, spans: int, sampled: bool) -> None:
        if not sampled:
            self._count("unsampled", spans)
        elif self._ids is None:
            self._count("handed_over", spans)
        for outbox in self._outboxes:
            outbox.post()

    def _foresee(self, trace: int, name: str, attributes: Attributes) -> TraceFlags:
        """What the sampler will say of a root of which no more than this is known."""
        sampler = getattr(self._provider, "sampler", None)
        if sampler is None:
            return _SAMPLED
        decision = sampler.should_sample(Context(), trace, name, attributes=attributes).decision
        return _SAMPLED if decision.is_sampled() else TraceFlags(TraceFlags.DEFAULT)


def _root_part(key: Key) -> str:
    return span_ids.START if key[1] == span_ids.START else span_ids.BATCH


# ---- our own provider ---------------------------------------------------------------------


def make_own(
    makers: Sequence[Callable[[], SpanExporter]],
    attributes: Mapping[str, str],
    count: Count,
    complain: Complain,
    *,
    keep_seconds: float,
    environ: Mapping[str, str] | None = None,
) -> Pipeline:
    """Build a pipeline of our own; the sampler and the limits are those of OTEL_* variables."""
    environ = os.environ if environ is None else environ
    ids = HashedIds()
    limited = any(environ.get(variable) for variable in _LIMITS)
    provider = TracerProvider(
        resource=make_resource(attributes),
        shutdown_on_exit=False,
        id_generator=ids,
        span_limits=SpanLimits() if limited else SpanLimits(max_span_attributes=_ATTRIBUTES),
    )
    provider.sampler = KeepSampler(provider.sampler, keep_seconds)
    limit, batch, delay = _queue(environ)
    outboxes = [
        Outbox(make, count, complain, limit=limit, batch=batch, delay=delay) for make in makers
    ]
    for outbox in outboxes:
        provider.add_span_processor(outbox)
    return Pipeline(provider, count, ids=ids, outboxes=outboxes)


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
