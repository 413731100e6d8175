"""What a dashboard is: plain records, from which the JSON, the docs and the checks are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "bargauge",
    "heatmap",
    "stat",
    "state-timeline",
    "status-history",
    "table",
    "timeseries",
    "traces",  # a table of the trace store's answer: its one target is TraceQL
]
Step = tuple[float | None, str]
COLUMNS = 24


@dataclass(frozen=True)
class Target:
    """One query of a panel."""

    expr: str
    legend: str = ""
    instant: bool = False
    exemplar: bool = False


@dataclass(frozen=True)
class Override:
    """Properties of the fields whose name matches; `pattern` is a regular expression."""

    pattern: str
    properties: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Link:
    """A way from a value to another page; the URL may hold Grafana's own variables."""

    title: str
    url: str


@dataclass(frozen=True)
class Panel:
    """One panel.

    `bad` says what bad looks like, `alerts` which rules watch it (without the prefix), `empty` what
    it means when there is nothing to show, and `condition` when there is something, where that is
    not always.
    """

    title: str
    kind: Kind
    unit: str
    bad: str
    empty: str
    targets: tuple[Target, ...]
    alerts: tuple[str, ...] = ()
    condition: str = ""
    width: int = 12
    height: int = 8
    axis: str = ""  # what is counted, where the unit can't say it
    steps: tuple[Step, ...] = ()  # thresholds; the first has no value
    line: bool = False  # draw the thresholds as lines
    stack: bool = False
    fill: int = 8
    minimum: float | None = 0
    maximum: float | None = None
    decimals: int | None = None
    log: Literal[0, 2, 10] = 0  # a scale on which a line and its forecast can both be read
    legend: Literal["list", "table", "none"] = "list"
    mappings: dict[str, tuple[str, str]] = field(default_factory=dict)  # value: (text, colour)
    overrides: tuple[Override, ...] = ()
    columns: tuple[str, ...] = ()  # of a table: labels, then one a target
    sort: tuple[
        str, ...
    ] = ()  # columns that the table is sorted by, largest first unless with a minus
    links: tuple[Link, ...] = ()
    name: str = (
        ""  # of a bar: from its labels; Grafana leaves out the name of a single bar otherwise
    )

    @property
    def is_value(self) -> bool:
        """Whether it shows values and nothing else: what is missing is a grey value there."""
        return self.kind in {"bargauge", "stat"}

    @property
    def is_timeline(self) -> bool:
        """Whether its colours are those of the value mappings alone."""
        return self.kind in {"state-timeline", "status-history"}


@dataclass(frozen=True)
class Row:
    """Panels under one heading, placed from left to right.

    Grafana asks nothing for the panels of a `collapsed` row until it is opened.
    """

    title: str
    panels: tuple[Panel, ...]
    collapsed: bool = False


@dataclass(frozen=True)
class Board:
    """One dashboard; `many` lets several queries be chosen at once."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]
    many: bool = True
    since: str = "now-3h"

    @property
    def uid(self) -> str:
        """The contract's."""
        return f"streamgauge-{self.name}"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels, in order."""
        return tuple(panel for row in self.rows for panel in row.panels)


@dataclass(frozen=True)
class Place:
    """Where a panel stands on the grid of 24 columns."""

    x: int
    y: int
    w: int
    h: int


def places(board: Board) -> list[tuple[Row | Panel, Place]]:
    """Each row's heading and its panels with their places: left to right, then the next line."""
    found: list[tuple[Row | Panel, Place]] = []
    y = 0
    for row in board.rows:
        found.append((row, Place(0, y, COLUMNS, 1)))
        x, y, height = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            found.append((panel, Place(x, y, panel.width, panel.height)))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return found
