"""The agent's own memory of how far a source reached at which time; from it, the age of a row.

Bounded: of many points, those go first whose neighbours are near each other for their age, so that
the last minute is known to the second and the last day to the hour. Pure; time is passed in.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import gt, lt
from typing import NamedTuple

from .marks import Frame, Marks, Values, project

_POINTS = 128
_NUMBERS = 400_000  # of all points together: 3 MB, however many partitions there are
_FEWEST = 8
_NONE = 1e-9  # rows: too few to be one


class Point(NamedTuple):
    """The ends of all partitions at one moment."""

    at: float
    values: Values
    totals: tuple[int, ...]  # of each topic

    @property
    def total(self) -> int:
        """Rows of all partitions."""
        return sum(self.totals)


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
        return Marks(self.frame, self.newest.values, self.newest.total)

    def add(self, at: float, values: Values) -> History:
        """One more point, in this frame, after all others; in the place of one of the same time."""
        before = self.points[:-1] if at == self.newest.at else self.points
        return self._with((*before, _point(self.frame, at, values)))

    def insert(self, at: float, values: Values) -> History:
        """One more point before the newest; unchanged when it does not fit between its neighbours."""
        index = bisect_left(self.points, at, key=lambda point: point.at)
        later = self.points[index]
        if later.at == at or any(map(gt, values, later.values)):
            return self
        if index and any(map(lt, values, self.points[index - 1].values)):
            return self
        new = _point(self.frame, at, values)
        return self._with((*self.points[:index], new, *self.points[index:]))

    def _with(self, points: tuple[Point, ...]) -> History:
        most = max(_FEWEST, min(_POINTS, _NUMBERS // max(1, len(self.frame.keys))))
        return History(self.frame, _thin(points) if len(points) > most else points)

    def move(self, frame: Frame, latest: Marks) -> History:
        """The same points for other partitions, as `latest` has them now.

        A new partition of a known topic was empty before. A new topic may have been there for
        long: it counts as never having been different, so that the age of its rows is unknown.
        """
        known = self.frame.topics
        fresh = {k: v for k, v in latest.by_key().items() if k[0] not in known}
        points = []
        for point in self.points:
            values = project(Marks(self.frame, point.values, 0), frame, fresh)
            points.append(_point(frame, point.at, values))
        return History(frame, tuple(points))

    def went_back(self, values: Values) -> bool:
        """Whether a partition is before where it was: the topic was recreated."""
        return any(map(lt, values, self.newest.values))

    def produced_at(self, read: Values, topic: str) -> float | None:
        """When the first row of a topic past `read` came in; None when it was before all points.

        The topic must have such a row at the newest point. Rows are taken to have come in evenly
        between two points.
        """
        low, high = self.frame.topics[topic]
        read = read[low:high]
        first = self._first(list(self.frame.topics).index(topic), low, high, read)
        if first == 0:
            return None
        before, after = self.points[first - 1], self.points[first]
        between = zip(before.values[low:high], after.values[low:high], read, strict=True)
        # Of a partition without such a row in between the share is above 1.
        share = min([(row - old + 0.5) / (new - old or _NONE) for old, new, row in between])
        return float(before.at + share * (after.at - before.at))

    def _first(self, topic: int, low: int, high: int, read: Values) -> int:
        """Index of the first point with a row past `read`: offsets only grow, so half by half.

        Where there are more rows in all, there is one; mostly the point before that has none.
        """
        total = sum(read)
        right = bisect_right(self.points, total, key=lambda point: point.totals[topic])
        right = min(right, len(self.points) - 1)
        left, middle = 0, right - 1
        while left < right:
            if any(map(gt, self.points[middle].values[low:high], read)):
                right = middle
            else:
                left = middle + 1
            middle = (left + right) // 2
        return left

    def rate_since(self, at: float) -> float | None:
        """Rows that came in a second, from the point at or before `at` to the newest."""
        index = max(0, bisect_right(self.points, at, key=lambda point: point.at) - 1)
        first, last = self.points[index], self.newest
        if last.at <= first.at:
            return None
        return (last.total - first.total) / (last.at - first.at)


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
    return History(marks.frame, (_point(marks.frame, at, marks.values),))


def _point(frame: Frame, at: float, values: Values) -> Point:
    return Point(at, values, tuple(sum(values[low:high]) for low, high in frame.topics.values()))
