"""Names of lines on the boards of one query, where several may be chosen all the same."""

from __future__ import annotations

from dataclasses import replace

from .board import Board, Override, Panel, Target

_QUERY = "{{query}}"


def name_queries(board: Board) -> Board:
    """The board with the query in the name of every line, and overrides that meet these names."""
    rows = tuple(replace(row, panels=tuple(map(_panel, row.panels))) for row in board.rows)
    return board if board.many else replace(board, rows=rows)


def _panel(panel: Panel) -> Panel:
    if panel.kind != "timeseries":
        return panel
    overrides = tuple(_override(override) for override in panel.overrides)
    return replace(panel, targets=tuple(map(_target, panel.targets)), overrides=overrides)


def _target(target: Target) -> Target:
    named = _QUERY in target.legend
    return target if named else replace(target, legend=f"{_QUERY} {target.legend}")


def _override(override: Override) -> Override:
    """Grafana puts `^` and `$` around a pattern: it has to meet the whole name."""
    if not override.pattern.startswith("^"):
        return override
    return replace(override, pattern=f".* {override.pattern.removeprefix('^')}")
