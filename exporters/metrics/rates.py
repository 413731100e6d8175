"""Rows per second of a query at one moment: Spark's figures while they still tell of the present. Pure."""

from __future__ import annotations

from msgspec import Struct

from streamgauge.model.query import Query
from streamgauge.model.verdict import Verdict

_PATIENCE_SECONDS = 30.0
_BLANK = frozenset({"stalled", "blind", "failed", "stopped"})


class Rates(Struct, frozen=True):
    """Rows per second; None: unknown."""

    input: float | None = None
    processed: float | None = None


def rates_of(query: Query, verdict: Verdict, now: float) -> Rates:
    """Spark's figures of the last batch, which hold until something else is known.

    A trigger that found nothing to read makes the input 0, and leaves nothing to process. Of a query that
    hangs or is hidden nothing is known; nor once the next batch should have ended and has not.
    """
    if not query.live or verdict.state in _BLANK:
        return Rates()
    if query.idle_since is not None:
        return Rates(input=0.0) if verdict.state == "idle" else Rates()
    last = query.last
    if last is None or not query.has_batch or _is_overdue(query, now):
        return Rates()
    return Rates(last.input_rate, last.processed_rate)


def _is_overdue(query: Query, now: float) -> bool:
    """Whether the next batch takes longer than any of the last hour, or does not come."""
    longest = query.batch_limit_seconds
    since = query.inflight_since(now)
    if since is not None:
        return now - since > max(_PATIENCE_SECONDS, longest)
    interval = query.trigger_seconds
    if interval is None:
        interval = max(query.gaps, default=0.0)
    return now - query.last_event_at > max(_PATIENCE_SECONDS, interval + longest)
