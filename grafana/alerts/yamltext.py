"""YAML from plain data, so that the rules need no YAML library on a user's machine.

Only what the rules hold is written: mappings, lists, strings, numbers, booleans. Strings that YAML
could misread are quoted as JSON, which YAML reads; those of several lines become literal blocks.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def dump(data: Any) -> str:
    """The data as a YAML document: block style, keys in the order given."""
    return "\n".join(_lines(data)) + "\n"


def _lines(data: Any) -> Iterator[str]:
    """Lines of a mapping or a list, not indented."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _entry(f"{_scalar(key)}:", value)
    else:
        for value in data:
            yield from _item(value)


def _entry(head: str, value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)) and value:
        yield head
        yield from (f"  {line}" for line in _lines(value))
    elif isinstance(value, str) and "\n" in value:
        yield f"{head} |-"
        yield from (f"  {line}" if line else "" for line in value.split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _item(value: Any) -> Iterator[str]:
    """A list's item: its first line starts with a dash, the others stand under it."""
    if not isinstance(value, (dict, list)) or not value:
        yield f"- {_scalar(value)}"
        return
    for number, line in enumerate(_lines(value)):
        yield f"- {line}" if number == 0 else f"  {line}" if line else ""


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
