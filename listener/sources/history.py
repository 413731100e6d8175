"""The agent's own memory of how far a source reached at which time; from it, the age of a row.

Bounded: of many points, those go first whose neighbours are near each other for their age, so that
the last minute is known to the second and the last day to the hour. Pure; time is passed in.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from operator import gt, lt
from typing import NamedTuple

from .marks import Frame, Marks, Values, project

_POINTS = 128
_NUMBERS = 400_000  # of all points together: 3 MB, however many partitions there are
_FEWEST = 8


class Point(NamedTuple):
    """The ends of all partitions at one moment."""

    at: float
    values: Values
    total: int


class History(NamedTuple):
    """Points in the order of time, all in one frame; no partition ever goes backwards in them."""

    frame: Frame
    points: tuple[Point, ...]

    @property
    def newest(self) -> Point:
        """The last point."""
        return self.points[-1]

    @property
    def marks(self) -> Marks:
        """How far the source reached at the last point."""
        return Marks(self.frame, self.newest.values)

    def add(self, at: float, values: Values) -> History:
        """One more point, in this frame, after all others; in the place of one of the same time."""
        before = self.points[:-1] if at == self.newest.at else self.points
        points = (*before, Point(at, values, sum(values)))
        most = max(_FEWEST, min(_POINTS, _NUMBERS // max(1, len(values))))
        return History(self.frame, _thin(points) if len(points) > most else points)

    def reach_back(self, at: float, values: Values) -> History:
        """One more point before all others; unchanged when it does not fit them."""
        if at >= self.points[0].at or any(map(gt, values, self.points[0].values)):
            return self
        return History(self.frame, (Point(at, values, sum(values)), *self.points))

    def move(self, frame: Frame, latest: Marks) -> History:
        """The same points for other partitions, as `latest` has them now.

        A new partition of a known topic was empty before. A new topic may have been there for
        long: it counts as never having been different, so that the age of its rows is unknown.
        """
        known = self.frame.topics
        fresh = {k: v for k, v in latest.by_key().items() if k[0] not in known}
        points = []
        for point in self.points:
            values = project(Marks(self.frame, point.values), frame, fresh)
            points.append(Point(point.at, values, sum(values)))
        return History(frame, tuple(points))

    def went_back(self, values: Values) -> bool:
        """Whether a partition is before where it was: the topic was made anew."""
        return any(map(lt, values, self.newest.values))

    def produced_at(self, read: Values, topic: str) -> float | None:
        """When the first row of a topic past `read` came in; None when it was before all points.

        The topic must have such a row at the newest point. Rows are taken to have come in evenly
        between two points.
        """
        low, high = self.frame.topics[topic]
        read = read[low:high]
        first = _first(self.points, read, low, high)
        if first == 0:
            return None
        before, after = self.points[first - 1], self.points[first]
        share = min(_shares(before.values[low:high], after.values[low:high], read))
        return before.at + share * (after.at - before.at)

    def rate_since(self, at: float) -> float | None:
        """Rows that came in a second, from the point at or before `at` to the newest."""
        index = max(0, bisect_right(self.points, at, key=lambda point: point.at) - 1)
        first, last = self.points[index], self.newest
        if last.at <= first.at:
            return None
        return (last.total - first.total) / (last.at - first.at)


def _first(points: tuple[Point, ...], read: Values, low: int, high: int) -> int:
    """Index of the first point with a row past `read`: offsets only grow, so half by half."""
    left, right = 0, len(points) - 1
    while left < right:
        middle = (left + right) // 2
        if any(map(gt, points[middle].values[low:high], read)):
            right = middle
        else:
            left = middle + 1
    return left


def _shares(before: Values, after: Values, read: Values) -> Iterator[float]:
    """For each partition with unread rows, how far between two points its first one came in."""
    for old, new, next_row in zip(before, after, read, strict=True):
        if new > next_row:
            yield (next_row - old + 0.5) / (new - old)


def _thin(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Without the point that is missed least: the gap it leaves is small for its age."""
    now = points[-1].at
    _, least = min(
        ((points[i + 1].at - points[i - 1].at) / (now - points[i].at + 1.0), i)
        for i in range(1, len(points) - 1)
    )
    return points[:least] + points[least + 1 :]


def begin(marks: Marks, at: float) -> History:
    """A history of one point."""
    return History(marks.frame, (Point(at, marks.values, sum(marks.values)),))


def difference(latest: Values, read: Values) -> Values:
    """Rows from one to the other, by partition."""
    return array("q", [a - b for a, b in zip(latest, read, strict=True)])
