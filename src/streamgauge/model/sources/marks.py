"""How far each partition of a source is: one number a partition, in a fixed order.

Thousands of partitions come with every event, so the partitions themselves are kept once (`Frame`)
and only the numbers are new. Pure; any thread.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from operator import lt
from typing import Any, NamedTuple

from .broker_offsets import Positions

Values = Any  # array("q"): eight bytes an offset; its generic form is not there at run time


class Frame:
    """Partitions in their order, topic by topic. Mostly one object for each set: `is` is a quick test."""

    __slots__ = ("keys", "numbered", "partitions", "topics")

    def __init__(self, names: Iterable[str], partitions: list[list[str]]) -> None:
        self.partitions = partitions
        self.keys = tuple((n, p) for n, own in zip(names, partitions, strict=True) for p in own)
        self.topics: dict[str, tuple[int, int]] = {}  # where each topic's partitions lie in `keys`
        begin = 0
        for name, own in zip(names, partitions, strict=True):
            self.topics[name] = (begin, begin := begin + len(own))
        self.numbered = all(partition.isdecimal() for _, partition in self.keys)


class Marks(NamedTuple):
    """A number for each partition."""

    frame: Frame
    values: Values
    total: int

    def by_key(self) -> Positions:
        """The same as a mapping."""
        return dict(zip(self.frame.keys, self.values, strict=True))


_frames: dict[tuple[tuple[str, int], ...], list[Frame]] = {}  # by topics and their sizes
_MOST_SHAPES, _MOST_ALIKE = 256, 4


def _find_frame(names: Iterable[str], partitions: list[list[str]]) -> Frame:
    """The frame of these partitions: one that is there, found by comparing and not by hashing."""
    shape = tuple((name, len(own)) for name, own in zip(names, partitions, strict=True))
    known = _frames.get(shape, [])
    for frame in known:
        if frame.partitions == partitions:
            return frame
    frame = Frame([name for name, _ in shape], partitions)
    if len(_frames) >= _MOST_SHAPES:
        _frames.clear()
    _frames[shape] = [frame, *known][:_MOST_ALIKE]
    return frame


def read_marks(offset: Any) -> Marks | None:
    """Marks of `{"topic": {"0": 7}}`; None for anything else, in whole or in part."""
    if not isinstance(offset, dict) or not offset:
        return None
    numbers: list[Any] = []
    for partitions in offset.values():
        if not isinstance(partitions, dict):
            return None
        numbers.extend(partitions.values())
    if set(map(type, numbers)) != {int} or min(numbers) < 0:
        return None
    frame = _find_frame(offset, [list(partitions) for partitions in offset.values()])
    try:
        return Marks(frame, array("q", numbers), sum(numbers)) if frame.numbered else None
    except OverflowError:
        return None


def marks_of(positions: Positions, like: Frame | None = None) -> Marks | None:
    """Marks of a mapping, in the order of `like` where it has the same partitions; None if empty."""
    if not positions:
        return None
    if like is None or positions.keys() != set(like.keys):
        grouped: dict[str, list[str]] = {}
        for topic, partition in sorted(positions, key=_order):
            grouped.setdefault(topic, []).append(partition)
        like = _find_frame(grouped, list(grouped.values()))
    numbers = [positions[key] for key in like.keys]
    return Marks(like, array("q", numbers), sum(numbers))


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
    return float(end.total - (start.total if start.frame is end.frame else sum(before)))
