"""Series that rules remember for a day, sampled: a day of scrapes is read once, not at every evaluation.

A rule that looks back at a series for a day reads 5,760 samples per query, every 30 seconds. So what rules look
back at is recorded every `memory_interval`, and they read that. Where the last or the largest value counts, the last
`memory_recent` is read as it was scraped: right to the scrape, also after a Prometheus that was away for a while.
The table of rules is written without all this; `with_memory` rewrites it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from .rule import Alert, Group, Recording

if TYPE_CHECKING:
    from collections.abc import Callable

_Rule = TypeVar("_Rule", Alert, Recording)

# Windows that are long, and in which every five minutes are enough.
_LONG = "memory_window|reset_memory|stuck_baseline|evict_window"
_LOOK_BACK = re.compile(
    r"(?P<function>[a-z_]+)\("
    r"(?P<series>(?:[a-z_]+:)?streamgauge_[a-z_0-9:]+)(?P<matchers>\{[^}]*\})?"
    rf"\[\$(?P<window>{_LONG})\](?P<offset> offset \$[a-z_]+)?\)"
)


def sampled(series: str) -> str:
    """The name of a series' samples."""
    return f"{series}_last5m" if ":" in series else f"instance:{series}:last5m"


def with_memory(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups with every long look back at samples, and in front of them the group that records those."""
    seen: dict[str, dict[str, None]] = {}

    def note(match: re.Match[str]) -> str:
        seen.setdefault(match["series"], {})[match["matchers"] or ""] = None
        return _read(match)

    rewritten = tuple(
        replace(
            group,
            recordings=tuple(_with(rule, note) for rule in group.recordings),
            alerts=tuple(_with(alert, note) for alert in group.alerts),
        )
        for group in groups
    )
    samples = tuple(_record(series, tuple(matchers)) for series, matchers in sorted(seen.items()))
    return (Group("memory", recordings=samples, interval="memory_interval"), *rewritten)


def _with(rule: _Rule, note: Callable[[re.Match[str]], str]) -> _Rule:
    return replace(rule, expr=_LOOK_BACK.sub(note, rule.expr))


def _read(match: re.Match[str]) -> str:
    """The look back at the samples, and at what is newer than they are where that makes a difference."""
    series, matchers, offset = match["series"], match["matchers"] or "", match["offset"] or ""
    function = match["function"]
    far = f"{function}({sampled(series)}{matchers}[${match['window']}]{offset})"
    near = f"{function}({series}{matchers}[$memory_recent])"
    if offset:
        return far
    if function == "last_over_time":
        return f"({near} or {far})"
    if function == "max_over_time":
        return f"({near} > {far} or {far} or {near})"
    return far


def _record(series: str, matchers: tuple[str, ...]) -> Recording:
    kinds = ("",) if "" in matchers else matchers
    return Recording(
        sampled(series),
        "\nor ".join(f"last_over_time({series}{kind}[$memory_interval])" for kind in kinds),
        f"`{series}`, sampled for the rules that look back a day",
    )
