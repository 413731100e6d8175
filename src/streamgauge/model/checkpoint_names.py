"""What the names in `offsets/` and `commits/` tell, and nothing more: cheap enough for a timer.

For the agent, which lists both directories through Spark's own file system. Pure; any thread.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class NamesSummary(msgspec.Struct, frozen=True):
    """The two logs in four numbers. `findings`: rule (as in `lint.RULES`) to one sentence."""

    last_offset: int | None
    last_commit: int | None
    uncommitted: int
    findings: dict[str, str]


def batch_id(name: str) -> int | None:
    """The batch a file name stands for; Spark takes any name that parses as a Java long."""
    if name.isascii() and name.isdigit() and len(name) < 19:
        return int(name)
    if re.fullmatch(r"[+-]?\d{1,19}", name, re.ASCII) is None:
        return None
    number = int(name)
    return number if -(2**63) <= number < 2**63 else None


def look_at_names(offsets: Iterable[str], commits: Iterable[str]) -> NamesSummary:
    """Summarise the names of both directories; names that are no batch are ignored."""
    planned, committed = _batches(offsets), _batches(commits)
    last_planned = planned[-1] if planned else None
    last_committed = committed[-1] if committed else None
    floor = -1 if last_committed is None else last_committed
    open_batches = [each for each in planned if each > floor]
    return NamesSummary(
        last_planned,
        last_committed,
        len(open_batches),
        dict(_find(planned, committed, open_batches)),
    )


def _batches(names: Iterable[str]) -> list[int]:
    found = {batch_id(name.rsplit("/", 1)[-1]) for name in names}
    return sorted(each for each in found if each is not None)


def _find(
    planned: list[int], committed: list[int], open_batches: list[int]
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    sparse = bool(planned) and set(planned) - set(open_batches) == {
        each for each in committed if each >= planned[0]
    }
    for rule, name, ids in (
        ("offset-gap", "offsets", planned),
        ("commit-gap", "commits", committed),
    ):
        gap = next((low + 1 for low, high in pairwise(ids) if high > low + 1), None)
        if gap is not None and not (sparse and len(ids) > 2):
            found.append((rule, f"{name}/{gap} is missing between batches that are there"))
    if committed and not planned:
        found.append(("no-offsets", "commits/ has batches and offsets/ has none"))
    elif committed and committed[-1] > planned[-1]:
        text = f"commits/{committed[-1]} is ahead of offsets/{planned[-1]}"
        found.append(("commit-ahead", text))
    if len(open_batches) > 1:
        text = f"{len(open_batches)} batches are planned and not committed"
        found.append(("uncommitted", text))
    return found
