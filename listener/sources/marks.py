"""How far each partition of a source is: one number a partition, in a fixed order.

Thousands of partitions come with every event, so the partitions themselves are kept once (`Frame`)
and only the numbers are new. Pure; any thread.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import lru_cache
from operator import lt
from typing import Any, NamedTuple

from .look import Positions

Values = Any  # array("q"): eight bytes an offset; its generic form is not there at run time


class Frame:
    """Partitions in their order, topic by topic. Made once for each set: compare with `is`."""

    __slots__ = ("keys", "topics")

    def __init__(self, topics: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
        self.topics: dict[str, tuple[int, int]] = {}  # where each topic's partitions lie in `keys`
        keys: list[tuple[str, str]] = []
        for topic, partitions in topics:
            self.topics[topic] = (len(keys), len(keys) + len(partitions))
            keys.extend((topic, partition) for partition in partitions)
        self.keys = tuple(keys)


class Marks(NamedTuple):
    """A number for each partition."""

    frame: Frame
    values: Values

    def by_key(self) -> Positions:
        """The same as a mapping."""
        return dict(zip(self.frame.keys, self.values, strict=True))


@lru_cache(maxsize=256)
def _frame(topics: tuple[tuple[str, tuple[str, ...]], ...]) -> Frame:
    return Frame(topics)


def read_marks(offset: Any) -> Marks | None:
    """Marks of `{"topic": {"0": 7}}`; None for anything else, in whole or in part."""
    if not isinstance(offset, dict) or not offset:
        return None
    numbers: list[Any] = []
    topics: list[tuple[str, tuple[str, ...]]] = []
    for topic, partitions in offset.items():
        if not isinstance(partitions, dict):
            return None
        topics.append((topic, tuple(partitions)))
        numbers.extend(partitions.values())
    if not numbers or set(map(type, numbers)) != {int} or min(numbers) < 0:
        return None
    frame = _frame(tuple(topics))
    if len(frame.keys) != len(numbers) or not _are_numbered(frame):
        return None
    try:
        return Marks(frame, array("q", numbers))
    except OverflowError:
        return None


@lru_cache(maxsize=256)
def _are_numbered(frame: Frame) -> bool:
    return all(partition.isdecimal() for _, partition in frame.keys)


def marks_of(positions: Positions, like: Frame | None = None) -> Marks | None:
    """Marks of a mapping, in the order of `like` where it has the same partitions; None if empty."""
    if not positions:
        return None
    if like is None or positions.keys() != set(like.keys):
        grouped: dict[str, list[str]] = {}
        for topic, partition in sorted(positions, key=_order):
            grouped.setdefault(topic, []).append(partition)
        like = _frame(tuple((topic, tuple(parts)) for topic, parts in grouped.items()))
    return Marks(like, array("q", [positions[key] for key in like.keys]))


def _order(key: tuple[str, str]) -> tuple[str, int, str]:
    topic, partition = key
    return topic, int(partition) if partition.isdecimal() else 0, partition


def project(marks: Marks, frame: Frame, missing: Mapping[tuple[str, str], int]) -> Values:
    """The numbers in the order of `frame`; a partition that `marks` lacks is in `missing`, or at 0."""
    if marks.frame is frame:
        return marks.values
    known = marks.by_key()
    return array("q", [known.get(key, missing.get(key, 0)) for key in frame.keys])


def rows_between(start: Marks | None, end: Marks | None) -> float | None:
    """Rows from one to the other; None when a partition is missing or went backwards."""
    if start is None or end is None:
        return None
    if start.frame is not end.frame and set(end.frame.keys) - set(start.frame.keys):
        return None
    before = project(start, end.frame, {})
    if any(map(lt, end.values, before)):
        return None
    return float(sum(end.values) - sum(before))
