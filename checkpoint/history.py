"""The batches that a checkpoint still has: which are done, when, at which watermark, reading what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .sources import measure_range

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .logs import Offsets


class BatchSource(msgspec.Struct, frozen=True):
    """How far a batch read a source. `rows`: where offsets count rows and the batch before is kept."""

    source: str
    kind: str
    end: Any
    rows: int | None


class BatchReport(msgspec.Struct, frozen=True):
    """One batch. Times are milliseconds since 1970, None where no file tells them.

    `word` is that of the timeline; `committed_ms` is when the file in commits/ was written;
    `watermark_ms` is the one that the batch used, 0 when none was set yet.
    """

    batch: int
    word: str
    planned_ms: int | None
    committed_ms: int | None
    watermark_ms: int | None
    sources: list[BatchSource]


def make_timeline(checkpoint: Checkpoint, length: int = 20) -> list[tuple[int, str]]:
    """The last batches, each `done`, `planned`, `no commit`, `no offsets` or `missing`."""
    logs = [log.ids for log in (checkpoint.offsets, checkpoint.commits) if log.ids]
    if not logs:
        return []
    oldest, newest = min(ids[0] for ids in logs), max(ids[-1] for ids in logs)
    tell = _Words(checkpoint)
    return [(each, tell(each)) for each in range(max(oldest, newest - length + 1), newest + 1)]


def make_history(checkpoint: Checkpoint, length: int) -> list[BatchReport]:
    """The last `length` batches of which there is a file, oldest first; opens an offsets file of each."""
    ids = sorted({*checkpoint.offsets.ids, *checkpoint.commits.ids})
    last = ids[-length:] if length else []
    needed = {number for batch in last for number in (batch - 1, batch)}
    offsets = {number: checkpoint.offsets_of(number) for number in needed}
    tell = _Words(checkpoint)
    return [
        _report_batch(checkpoint, each, tell(each), offsets[each - 1], offsets[each])
        for each in last
    ]


class _Words:
    """What the two logs together say of a batch."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._offsets = set(checkpoint.offsets.ids)
        self._commits = set(checkpoint.commits.ids)

    def __call__(self, batch: int) -> str:
        if batch not in self._offsets:
            return "no offsets" if batch in self._commits else "missing"
        if batch in self._commits:
            return "done"
        return "planned" if batch > max(self._commits, default=-1) else "no commit"


def _report_batch(
    checkpoint: Checkpoint, batch: int, word: str, before: Offsets | None, planned: Offsets | None
) -> BatchReport:
    return BatchReport(
        batch,
        word,
        (planned.timestamp_ms if planned else None) or _written(checkpoint, f"offsets/{batch}"),
        _written(checkpoint, f"commits/{batch}"),
        planned.watermark_ms if planned else None,
        _report_sources(before, planned) if planned else [],
    )


def _report_sources(before: Offsets | None, planned: Offsets) -> list[BatchSource]:
    found = []
    for each in planned.sources:
        span = measure_range(each.source, before.of(each.source) if before else None, each.offset)
        found.append(BatchSource(each.source, span.kind, span.end, span.rows if before else None))
    return found


def _written(checkpoint: Checkpoint, file: str) -> int | None:
    seconds = checkpoint.store.modified(file)
    return None if seconds is None else round(seconds * 1000)
