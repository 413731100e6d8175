"""The labels of the info series: what is known of a query, and why it failed, for joins. Pure."""

from __future__ import annotations

from hashlib import sha256

from streamgauge.config import QueryConfig
from streamgauge.masking import LONGEST_NAME, clean
from streamgauge.model.query import End, Query

from .table import INFO


def info_of(query: Query, settings: QueryConfig) -> tuple[str, ...]:
    """Label values of `query_info`, in the order of `INFO`; what is not known is empty."""
    details = query.details
    stateful = query.committed is not None and bool(query.committed.operators)
    known = {
        "query_id": query.query_id,
        "run_id": query.run_id,
        "app_id": details and details.app_id,
        "spark_version": details and details.spark_version,
        "sink": sink_of(query),
        "output_mode": details and details.output_mode,
        "trigger": query.trigger,
        "state_provider": details and details.state_provider if stateful else None,
        "checkpoint": details and details.checkpoint and _label_of(details.checkpoint),
        "code_version": settings.code_version,
        "team": settings.team,
        "env": settings.env,
        "tier": settings.tier,
    }
    return tuple(known[name] or "" for name in INFO)


def failure_of(end: End) -> tuple[str, str, str]:
    """Label values of `query_failure_info`: the failure's class, its innermost cause's, and words."""
    return end.error_class or "unknown", end.cause_class or "", end.message


def sink_of(query: Query) -> str | None:
    """Kind of the sink: as the last batch has it, else as the query's details do."""
    sink = query.committed.sink.kind if query.committed else None
    return sink or (query.details.sink if query.details else None)


def _label_of(path: str) -> str:
    """A path as a label: bounded, and still not that of another path."""
    if len(path) <= LONGEST_NAME:
        return clean(path)
    return f"{clean(path)[: LONGEST_NAME - 9]}…{sha256(path.encode()).hexdigest()[:8]}"
