"""PromQL of a dashboard as a tree: Grafana's variables filled in, every node reachable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import promql_parser

# A duration that nobody writes by hand stands for $__rate_interval, so that it can be found again.
RATE_INTERVAL = timedelta(seconds=7777)
_FILLED = {"__rate_interval": "7777s", "__interval": "15s", "__range": "3h"}
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?::\w+)?\}")


def fill(expr: str, **values: str) -> str:
    """The expression as Grafana sends it; a variable that is not given matches everything."""
    known = {**_FILLED, **values}
    return _VARIABLE.sub(lambda match: known.get(match[1] or match[2], ".+"), expr)


def parse(expr: str) -> Any:
    """The tree; raises where it is no PromQL."""
    return promql_parser.parse(fill(expr))


def walk(node: Any, parents: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every node with its parents, the nearest last."""
    yield node, parents
    inside = (*parents, node)
    for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
        child = getattr(node, name, None)
        if child is not None and not isinstance(child, (str, int, float)):
            yield from walk(child, inside)
    for child in getattr(node, "args", None) or ():
        yield from walk(child, inside)


def selectors(expr: str) -> list[tuple[Any, tuple[Any, ...]]]:
    """Every selector of the expression with its parents."""
    return [
        (node, parents)
        for node, parents in walk(parse(expr))
        if isinstance(node, promql_parser.VectorSelector)
    ]


def labels_of(selector: Any) -> set[str]:
    """Labels that the selector asks for."""
    return {matcher.name for matcher in selector.matchers.matchers}
