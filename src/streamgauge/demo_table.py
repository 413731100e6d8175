"""The fleet as a table on a terminal, or as plain lines where there is none."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from streamgauge.exporters.metrics.rates import rates_of
from streamgauge.model.query import Query
from streamgauge.model.verdict import Verdict, judge
from streamgauge.steady import steady_time

_COLOURS = {
    "running": "green",
    "idle": "cyan",
    "starting": "blue",
    "catching_up": "yellow",
    "falling_behind": "dark_orange",
    "restarting": "dark_orange",
    "stalled": "bold red",
    "failed": "bold red",
    "blind": "bold magenta",
    "stopped": "grey62",
}
_PHASES = {
    "latest_offset": ("o", "blue"),
    "wal_commit": ("w", "magenta"),
    "query_planning": ("p", "yellow"),
    "add_batch": ("a", "green"),
    "commit_offsets": ("c", "cyan"),
}
_BAR = 16


class Table(Protocol):
    """Somewhere to show the fleet."""

    def say(self, text: str) -> None:
        """Show a few words above the table."""

    def draw(self, queries: Mapping[str, Query], age: float, told: str) -> None:
        """Show the fleet as it is now."""

    def __enter__(self) -> object: ...

    def __exit__(self, *error: object) -> None: ...


class PlainTable:
    """Lines of text, every few seconds; for logs and pipes."""

    def __init__(self, every: float = 5.0) -> None:
        self._every = every
        self._next = 0.0

    def __enter__(self) -> object:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to put back."""

    def say(self, text: str) -> None:
        """Write a line."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def draw(self, queries: Mapping[str, Query], age: float, told: str) -> None:
        """Write one line a query, when it is time again."""
        if age < self._next:
            return
        self._next = age + self._every
        self.say(f"-- {age:.0f} s: {told}")
        for query in _sorted(queries):
            row = _row(query)
            rate = f"{row['rows']} rows/s" if row["rows"] else ""
            self.say(
                f"   {query.label:<11} {row['state']:<14} {rate:>15}  batch {row['batch']:>7}"
                f"  state {row['state_rows']:>6}  in flight {row['inflight']:>6} {row['tasks']:>9}"
                f"  {row['reason']}"
            )


class LiveTable:
    """A table that redraws itself (rich)."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - an extra
        from rich.live import Live  # noqa: PLC0415

        self._console = Console()
        self._live = Live(console=self._console, auto_refresh=False, transient=False)

    def __enter__(self) -> object:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Print above the table; a name can't smuggle markup in."""
        self._console.print(text, markup=False, highlight=True)

    def draw(self, queries: Mapping[str, Query], age: float, told: str) -> None:
        """Redraw."""
        self._live.update(render(queries, age, told), refresh=True)


def render(queries: Mapping[str, Query], age: float, told: str) -> Any:
    """The table itself, for a terminal or a picture."""
    from rich import box  # noqa: PLC0415 - an extra
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    legend = Text("batch by phase:")
    for name, (letter, colour) in _PHASES.items():
        legend.append("  ").append(letter, style=_painted(colour)).append(f" {name}")
    table = RichTable(
        box=box.ROUNDED,
        title=f"streamgauge · {age:.0f} s · {told}",
        caption=legend,
        expand=True,
    )
    for name, right in (
        *(("query", 0), ("verdict", 0), ("rows/s", 1), ("batch", 1), ("by phase", 0)),
        *(("state rows", 1), ("in flight", 1), ("tasks", 1), ("why", 0)),
    ):
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "why")
    for query in _sorted(queries):
        row = _row(query)
        table.add_row(
            Text(query.label),
            Text(row["state"], style=_COLOURS[row["state"]]),
            row["rows"],
            row["batch"],
            _bar(query),
            row["state_rows"],
            row["inflight"],
            row["tasks"],
            Text(row["reason"]),
        )
    return table


def _sorted(queries: Mapping[str, Query]) -> list[Query]:
    return sorted(queries.values(), key=lambda query: query.label)


def _row(query: Query) -> dict[str, str]:
    now = steady_time()
    verdict: Verdict = judge(query, now)
    last = query.last if query.live else None
    rows = rates_of(query, verdict, now).input
    since = query.inflight_since(now)
    age = now - since if since is not None else 0.0
    state = sum(o.rows or 0 for o in last.operators) if last and last.operators else None
    tasks = query.status.tasks if query.status and since is not None else None
    return {
        "state": verdict.state,
        "reason": verdict.reason,
        "rows": "" if rows is None else f"{rows:,.0f}",
        "batch": f"{last.seconds:.2f} s" if last and last.seconds is not None else "",
        "state_rows": "" if state is None else f"{state:,}",
        "inflight": f"{age:.0f} s" if age >= 2 else "",
        "tasks": f"{tasks.completed} done" if tasks else "",
    }


def _bar(query: Query) -> Any:
    """The last batch's phases, each as long as its share."""
    from rich.text import Text  # noqa: PLC0415 - an extra

    text = Text()
    last = query.last if query.live else None
    if last is None:
        return text
    whole = sum(last.phases.get(name, 0.0) for name in _PHASES) or 1.0
    for name, (letter, colour) in _PHASES.items():
        length = round(_BAR * last.phases.get(name, 0.0) / whole)
        text.append(letter * length, style=_painted(colour))
    return text


def _painted(colour: str) -> str:
    """A piece of a bar; its letter stands for it where there are no colours."""
    return f"black on {colour}"
