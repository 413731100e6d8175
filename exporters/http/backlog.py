"""What a query has not read yet, in whatever its sources count: rows, files, bytes, versions. Pure."""

from __future__ import annotations

from msgspec import Struct

from streamgauge.model.lag import SourceLag
from streamgauge.model.query import Query

UNITS = ("rows", "files", "bytes", "versions")


class Backlog(Struct, frozen=True):
    """Sums over the sources that count in a unit; `unknown`: sources that tell nothing."""

    parts: tuple[tuple[str, float], ...] = ()  # unit, number
    unknown: int = 0

    @property
    def whole(self) -> tuple[tuple[str, float], ...]:
        """The parts; none when a source is missing from them."""
        return () if self.unknown else self.parts


def backlog_of(query: Query, now: float) -> Backlog:
    """The backlog as the series `source_backlog_*` have it; of an ended query only what a probe sees."""
    sums: dict[str, float] = {}
    unknown = 0
    for lag in query.lags.values():
        known = _of_source(lag, now) if query.live or lag.looked_at is not None else {}
        unknown += not known
        for unit, number in known.items():
            sums[unit] = sums.get(unit, 0.0) + number
    return Backlog(tuple((unit, sums[unit]) for unit in UNITS if unit in sums), unknown)


def _of_source(lag: SourceLag, now: float) -> dict[str, float]:
    """Rows where the source counts them, else all that it tells."""
    if lag.backlog is not None:
        return {"rows": float(lag.backlog)}
    seen = lag.waiting if now < lag.waiting_until else None
    found = {
        "files": lag.files if lag.files is not None or seen is None else seen.files,
        "bytes": lag.bytes if lag.bytes is not None or seen is None else seen.bytes,
        "versions": lag.versions if lag.versions is not None or seen is None else seen.versions,
    }
    return {unit: float(number) for unit, number in found.items() if number is not None}
