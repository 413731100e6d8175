"""Whether a query falls behind or catches up, from its last batches. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from .query import Backlog, Moment
from .thresholds import default_number
from .wording import rates

_MARGIN = 1.05  # rates wobble; a few percent are no trend
_CHANCE = 2.4  # so many times what chance makes of values without a trend: one time in a hundred
_BUSY_SHARE = default_number("busy_ratio")
_UNITS = ("rows", "files", "versions", "bytes")

Trend = tuple[str, str]  # in words with numbers, and in words that don't change


def find_growth(window: Sequence[Moment], idle_at: float | None) -> Trend | None:
    """More than a batch behind, and worse with the batches of `window`; `idle_at`: the last idle trigger.

    Rates are compared only where no source tells its backlog, and only of a query that hardly waits between
    batches: a batch by itself reads in a moment what took minutes to arrive.
    """
    if not window:
        return None
    last = window[-1]
    backlogs = [moment.backlog for moment in window if moment.backlog is not None]
    if len(backlogs) == len(window):
        return _growth_of_rows(window, backlogs)
    if idle_at is not None and idle_at >= window[0].at:
        return None
    for backlog in sorted(last.backlogs, key=lambda each: _UNITS.index(each.unit)):
        amounts = list(_amounts(window, backlog))
        if len(amounts) == len(window) and _grows(amounts, backlog.unit, last.rows):
            words = f"backlog grew from {amounts[0]:.0f} to {amounts[-1]:.0f} {backlog.unit}"
            return f"{words} in source {backlog.source}", _cause(backlog)
    if last.complete or not _is_busy(window):
        return None
    pairs = [(moment.input_rate, moment.processed_rate) for moment in window]
    if all(i is not None and p is not None and i > p * _MARGIN for i, p in pairs):
        arriving, processed = pairs[-1]
        return rates(
            arriving or 0.0, processed or 0.0
        ), "rows arrive faster than they are processed"
    return None


def find_drain(moments: Sequence[Moment], batches: int) -> str | None:
    """Behind by more than a batch, and less so with each of the last batches."""
    recent = [m.backlog for m in moments[-batches:] if m.backlog is not None]
    if len(recent) < 3:
        return None
    first, last = recent[0], recent[-1]
    if last <= (moments[-1].rows or 0) or last * _MARGIN >= first or not rises(recent[::-1]):
        return None
    return f"backlog fell from {first:.0f} to {last:.0f} rows"


def rises(values: Sequence[float]) -> bool:
    """Whether later values are higher more often than chance has it, by Mann's and Kendall's test.

    Two ends alone would call every other wobble a trend. Of five values or fewer, all must rise.
    """
    number = len(values)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    by_chance = math.sqrt(number * (number - 1) * (2 * number + 5) / 18)
    return score >= min(_CHANCE * by_chance, number * (number - 1) / 2)


def _growth_of_rows(window: Sequence[Moment], backlogs: Sequence[float]) -> Trend | None:
    first, last = backlogs[0], backlogs[-1]
    if last <= max(first * _MARGIN, window[-1].rows or 0) or not rises(backlogs):
        return None
    words = f"backlog grew from {first:.0f} to {last:.0f} rows"
    most = max(
        (each for each in window[-1].backlogs if each.unit == "rows"),
        key=lambda each: each.amount - next(_amounts(window, each), 0.0),
        default=None,
    )
    return words, _cause(most) if most else "its backlog grows"


def _amounts(window: Sequence[Moment], like: Backlog) -> Iterator[float]:
    """The backlogs of the same source in the same unit, where they are known."""
    for moment in window:
        for each in moment.backlogs:
            if each.source == like.source and each.unit == like.unit:
                yield each.amount


def _grows(amounts: Sequence[float], unit: str, rows: int | None) -> bool:
    """Whether a backlog grows; of files and versions by one with each batch, or it is no more than chance."""
    first, last = amounts[0], amounts[-1]
    least = {"rows": rows or 0, "bytes": 0}.get(unit, first + len(amounts) - 2)
    return last > max(first * _MARGIN, least) and rises(amounts)


def _is_busy(window: Sequence[Moment]) -> bool:
    """Whether nearly all of the time went into batches."""
    first, last = window[0], window[-1]
    return last.busy - first.busy >= _BUSY_SHARE * (last.at - first.at)


def _cause(backlog: Backlog) -> str:
    return f"the backlog of source {backlog.source} grows ({backlog.unit})"
