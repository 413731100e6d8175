"""The user's own work joins in: spans and log lines of `foreachBatch` below the batch's own span."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streamgauge.model.timeshift import shift_query
from streamgauge.steady import wall_offset

from .agent import Agent

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext


@contextmanager
def batch_span(df: Any, batch_id: int) -> Iterator[Span]:
    """Make what is done inside belong to this batch's trace.

        def write(df, batch_id):
            with streamgauge.batch_span(df, batch_id):
                ...

    OpenTelemetry's current span is the batch's inside, so spans of the user's own tracer are its
    children, and log lines that carry the current span (OpenTelemetry's logging instrumentation)
    or structlog's context variables name its trace. The span itself is written when Spark reports
    the batch. Works in the thread that Spark calls; without traces, or where the run can't be told
    (Spark Connect), it does nothing. Raises nothing of its own.
    """
    import structlog  # noqa: PLC0415 - a driver without traces needs neither
    from opentelemetry import context, trace  # noqa: PLC0415

    found = _find(df, batch_id)
    if found is None:
        yield trace.INVALID_SPAN
        return
    span = trace.NonRecordingSpan(found)
    names = {"trace_id": f"{found.trace_id:032x}", "span_id": f"{found.span_id:016x}"}
    token = context.attach(trace.set_span_in_context(span))
    try:
        with structlog.contextvars.bound_contextvars(**names):
            yield span
    finally:
        context.detach(token)


def _find(df: Any, batch_id: int) -> SpanContext | None:
    """Context of the batch's root; None without traces, or when the run can't be told."""
    agent = Agent.current()
    if agent is None or agent.traces is None:
        return None
    try:
        spark = df.sparkSession.sparkContext
        # Spark sets these on the thread that runs the batch; the group is the run's id.
        run_id = spark.getLocalProperty("spark.jobGroup.id")
        query_id = spark.getLocalProperty("sql.streaming.queryId")
        if not run_id or not query_id:
            return None
        query = agent.queries.get(query_id)
        shown = None if query is None else shift_query(query, wall_offset())
        return agent.traces.context_of(run_id, int(batch_id), shown)
    except Exception as error:  # noqa: BLE001 - the user's batch must not notice
        agent.guard.report_error("traces", error)
        return None
