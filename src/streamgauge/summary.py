"""An agent in a few words, for `repr` and for notebooks: its address, its queries and their verdicts. Any thread."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Protocol

from streamgauge.model.query import Query
from streamgauge.model.verdict import Verdict, judge
from streamgauge.steady import steady_time

_MOST_IN_LINE, _MOST_IN_TABLE = 10, 100


class Watching(Protocol):
    """An agent, as far as it is described here."""

    closed: bool

    @property
    def address(self) -> str | None:
        """Where the page is served."""

    @property
    def queries(self) -> Mapping[str, Query]:
        """What is known of each query."""


class Summarized:
    """Shows itself in a few words, and as a table in notebooks."""

    def __repr__(self: Watching) -> str:
        return summarize(self)

    def _repr_html_(self: Watching) -> str:
        return to_html(self)


def summarize(agent: Watching, name: str = "Agent") -> str:
    """`<Agent http://127.0.0.1:9465: orders running, clicks stalled>`."""
    place = "closed" if agent.closed else agent.address or "not served"
    told = [f"{query.label} {verdict.state}" for query, verdict in _judged(agent)]
    left = len(told) - _MOST_IN_LINE
    more = [f"and {left} more"] if left > 0 else []
    return f"<{name} {place}: {', '.join(told[:_MOST_IN_LINE] + more) or 'no query yet'}>"


def to_html(agent: Watching) -> str:
    """A table for a notebook; names and reasons are others' words, and become text alone."""
    address = agent.address
    place = f'<a href="{escape(address)}/">{escape(address)}</a>' if address else "not served"
    judged = _judged(agent)
    rows = [
        f"<tr><td>{escape(query.label)}</td><td>{escape(verdict.state)}</td>"
        f'<td style="text-align: left">{escape(verdict.reason)}</td></tr>'
        for query, verdict in judged[:_MOST_IN_TABLE]
    ]
    left = len(judged) - _MOST_IN_TABLE
    rows += [f"<tr><td>and {left} more</td><td></td><td></td></tr>"] if left > 0 else []
    head = "<tr><th>query</th><th>verdict</th><th>why</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    state = " (closed)" if agent.closed else ""
    return f"<p>streamgauge: {place}{state}</p>{table if rows else '<p>no query yet</p>'}"


def _judged(agent: Watching) -> list[tuple[Query, Verdict]]:
    now = steady_time()
    queries = sorted(agent.queries.values(), key=lambda query: query.label)
    return [(query, judge(query, now)) for query in queries]
