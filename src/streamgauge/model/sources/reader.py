"""What a reader of one kind of source is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from .broker_offsets import Positions
from .marks import Marks
from .waiting import Files, Place, Waiting


def _unknown(_: Any) -> None:
    return None


class Reader(Struct, frozen=True, kw_only=True):
    """How the offsets of one kind of source are understood; what can't be told is None."""

    kind: str  # as labels call it
    beginnings: tuple[str, ...]  # how Spark's description of such a source begins
    marks: Callable[[Any], Marks | None] = _unknown  # where offsets count rows
    version: Callable[[Any], int | None] = _unknown  # where they count versions of a table
    waiting: Callable[[Files, Place, Any], Waiting | None] | None = None  # beyond an offset
    fixed: Callable[[str], bool] = lambda _: False  # reads only the partitions that it names

    def positions(self, offset: Any) -> Positions | None:
        """An offset as rows by partition."""
        marks = self.marks(offset)
        return None if marks is None else marks.by_key()
