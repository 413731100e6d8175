"""Which traces are kept: OpenTelemetry's own samplers, and what must never be lost."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState, get_current_span
from opentelemetry.util.types import Attributes

from .attributes import BATCH_SECONDS, ERROR_TYPE, OVERDUE, REPLAYED, START_KIND


class KeepSampler(Sampler):
    """Keeps failed, replayed, overdue and slow batches and every start; of the rest, another decides.

    A span below another follows it, so that no trace is kept in part. With a negative
    `keep_seconds` the other sampler alone decides.
    """

    def __init__(self, other: Sampler, keep_seconds: float) -> None:
        self._other = other
        self._keep_seconds = keep_seconds

    def should_sample(  # noqa: PLR0917 - OpenTelemetry's signature
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Decide; all attributes of the span are known by now."""
        parent = get_current_span(parent_context).get_span_context()
        if parent.is_valid and not parent.trace_flags.sampled:
            return SamplingResult(Decision.DROP)
        if parent.is_valid or self._keeps(attributes):
            return SamplingResult(Decision.RECORD_AND_SAMPLE, attributes)
        return self._other.should_sample(parent_context, trace_id, name, kind, attributes, links)

    def get_description(self) -> str:
        """Name the sampler and what it asks."""
        return f"KeepSampler{{{self._keep_seconds:g} s,{self._other.get_description()}}}"

    def _keeps(self, attributes: Attributes) -> bool:
        if self._keep_seconds < 0 or not attributes:
            return False
        marked = (ERROR_TYPE in attributes, OVERDUE in attributes, START_KIND in attributes)
        if any(marked) or attributes.get(REPLAYED) is True:
            return True
        seconds = attributes.get(BATCH_SECONDS)
        return isinstance(seconds, (int, float)) and seconds >= self._keep_seconds
