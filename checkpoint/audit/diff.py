"""Two checkpoints, or one at two times: what moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.checkpoint.reader.sources import measure_range

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint
    from streamgauge.checkpoint.reader.report import Report
    from streamgauge.checkpoint.reader.sources import SourceRange


class Change(msgspec.Struct, frozen=True):
    """One thing that is not the same; `before` or `after` None where it is not there."""

    what: str
    before: Any
    after: Any
    field: str = ""  # its name in the report, where it has one


class Difference(msgspec.Struct, frozen=True):
    """What changed, and what each source read in between."""

    same_query: bool
    changes: tuple[Change, ...]
    ranges: tuple[SourceRange, ...]

    @property
    def same(self) -> bool:
        """Whether nothing at all moved."""
        return not self.changes


_FIELDS = (
    "query_id",
    "written_by",
    "mode",
    "last_planned",
    "last_committed",
    "uncommitted",
    "planned_batches",
    "committed_batches",
    "offset_version",
    "commit_version",
    "watermark_ms",
    "next_watermark_ms",
    "state_bytes",
)


def diff(before: Checkpoint, after: Checkpoint, reports: tuple[Report, Report]) -> Difference:
    """Compare two checkpoints by their reports; offsets are measured where both have the source."""
    old, new = reports
    changes = [
        Change(name.replace("_", " "), getattr(old, name), getattr(new, name), name)
        for name in _FIELDS
        if getattr(old, name) != getattr(new, name)
    ]
    changes += _compare_conf(old.conf, new.conf)
    changes += _compare_operators(old, new)
    changes += [
        Change(f"problem in {file}", old.problems.get(file), new.problems.get(file))
        for file in sorted(old.problems.keys() ^ new.problems.keys())
    ]
    return Difference(
        old.query_id is not None and old.query_id == new.query_id,
        tuple(changes),
        tuple(_compare_sources(before, after)),
    )


def _compare_conf(old: dict[str, str], new: dict[str, str]) -> list[Change]:
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return [Change(key, old.get(key), new.get(key)) for key in keys]


def _compare_operators(old: Report, new: Report) -> list[Change]:
    before = {each.operator: each for each in old.operators}
    after = {each.operator: each for each in new.operators}
    changes = []
    for number in sorted(before.keys() | after.keys()):
        one, other = before.get(number), after.get(number)
        for name in ("name", "provider", "partitions", "versions", "oldest_snapshot", "bytes"):
            values = (getattr(one, name, None), getattr(other, name, None))
            if values[0] != values[1]:
                what = f"operator {number} {name.replace('_', ' ')}"
                changes.append(Change(what, *values, name))
    return changes


def _compare_sources(before: Checkpoint, after: Checkpoint) -> list[SourceRange]:
    if before.latest is None or after.latest is None:
        return []
    known = {each.source for each in before.latest.sources}
    ranges = [
        measure_range(each.source, before.latest.of(each.source), each.offset)
        for each in after.latest.sources
        if each.source in known
    ]
    return [each for each in ranges if not each.empty]
