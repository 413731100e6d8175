"""How long a query that ended is kept: pure functions of the records and the time."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .query import Query

_QUERIES_KEPT = 5000  # past this, those that ended first are forgotten


def find_expired(
    queries: Iterable[Query], now: float, *, grace_seconds: float, failed_limit: int
) -> dict[str, Query]:
    """The queries to forget, by id: those that ended well longer than the grace period ago.

    A failed one stays until it starts again, but of too many the first to fail go: a job that
    makes a new query for each attempt must not fill the memory.
    """
    known = list(queries)
    ended = sorted((query for query in known if query.end), key=_ended_at)
    failed = [query for query in ended if _has_failed(query)]
    well = [query for query in ended if not _has_failed(query)]
    expired = (
        *(query for query in well if now - _ended_at(query) > grace_seconds),
        *failed[: max(0, len(failed) - failed_limit)],
        *ended[: max(0, len(known) - _QUERIES_KEPT)],
    )
    return {query.query_id: query for query in expired}


def find_faded(queries: Iterable[Query], now: float, *, grace_seconds: float) -> list[Query]:
    """The failed queries of which, after the grace period, only the last word is kept."""
    return [q for q in queries if _has_failed(q) and now - _ended_at(q) > grace_seconds]


def _ended_at(query: Query) -> float:
    return query.end.at if query.end else math.inf


def _has_failed(query: Query) -> bool:
    return query.end is not None and query.end.outcome == "failed"
