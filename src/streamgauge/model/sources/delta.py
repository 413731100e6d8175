"""Delta: `{"reservoirVersion": 5, "index": -1, …}`, a version of the table and a file in it.

An index of -1 (-100 before Delta 2.3) says that nothing of that version was read yet; who has read a
version whole stands at the next. Versions don't count rows. Open-source Delta tells neither a latest offset
nor metrics, but the table's log does; Databricks tells `numFilesOutstanding` and `numBytesOutstanding`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from .reader import Reader
from .waiting import Files, Place, Waiting

_MOST_VERSIONS, _MOST_BYTES = 20, 2 << 20  # of the log, to tell files and bytes
_OPTIONS = re.compile("excluderegex|readchange")  # with these not every file added is read


def _position(offset: Any) -> tuple[int, int] | None:
    if not isinstance(offset, dict):
        return None
    version, index = offset.get("reservoirVersion"), offset.get("index")
    if type(version) is not int or type(index) is not int or version < 0:
        return None
    return version, max(index, -1)


def _version(offset: Any) -> int | None:
    """The newest version that was begun."""
    position = _position(offset)
    if position is None:
        return None
    version, index = position
    return version - 1 if index < 0 else version


def _waiting(files: Files, place: Place, offset: Any) -> Waiting | None:
    position = _position(offset)
    if position is None:
        return None
    first, index = position

    def commit(version: int) -> str:
        return f"{place.path}/_delta_log/{version:020d}.json"

    newest = _find_newest(first, lambda version: files.exists(commit(version)))
    if newest is None:
        return None
    versions = range(first, newest + 1)
    snapshot = offset.get("isStartingVersion") is not False  # whose files no single commit lists
    if (versions and snapshot) or place.options is None or _OPTIONS.search(place.options):
        return Waiting(versions=len(versions))
    sizes = _added(files, [commit(version) for version in versions])
    if sizes is None:
        return Waiting(versions=len(versions))
    left = [size for at, each in enumerate(sizes) for size in (each if at else each[index + 1 :])]
    return Waiting(versions=len(versions), files=len(left), bytes=sum(left))


def _find_newest(first: int, exists: Callable[[int], bool]) -> int | None:
    """The newest version, in O(log n) questions: there are no gaps from the first unread one on."""
    if not exists(first):
        return first - 1 if first and exists(first - 1) else None
    low, step = first, 1
    while exists(low + step):
        low, step = low + step, step * 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exists(middle) else (low, middle)
    return low


class _File(msgspec.Struct, rename="camel"):
    data_change: bool
    size: int = 0


class _Action(msgspec.Struct):
    add: _File | None = None
    remove: _File | None = None
    cdc: msgspec.Raw | None = None


_ACTION = msgspec.json.Decoder(_Action)


def _added(files: Files, commits: list[str]) -> list[list[int]] | None:
    """Sizes of the files that each commit added; None past the bounds, or if it did more than add."""
    if len(commits) > _MOST_VERSIONS:
        return None
    sizes, room = [], _MOST_BYTES
    for commit in commits:
        text = files.read(commit, room)
        if text is None:
            return None
        room -= len(text)
        actions = [_ACTION.decode(line) for line in text.split("\n") if line]
        if any(a.cdc or (a.remove and a.remove.data_change) for a in actions):
            return None
        sizes.append([a.add.size for a in actions if a.add and a.add.data_change])
    return sizes


READER = Reader(kind="delta", beginnings=("DeltaSource[",), version=_version, waiting=_waiting)
