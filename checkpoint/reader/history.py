"""The batches that a checkpoint still has: which are done, when, at which watermark, reading what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .sources import SourceKind, measure_range
from .text_enum import TextEnum

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .logs import Offsets


class BatchStage(TextEnum):
    """How far a batch came, by the two logs together."""

    DONE = "done"
    PLANNED = "planned"
    NO_COMMIT = "no commit"
    NO_OFFSETS = "no offsets"
    MISSING = "missing"


class BatchSource(msgspec.Struct, frozen=True):
    """How far a batch read a source. `rows`: where offsets count rows and the batch before is kept."""

    source: str
    kind: SourceKind
    end: Any
    rows: int | None


class BatchReport(msgspec.Struct, frozen=True):
    """One batch. Times are milliseconds since 1970, None where no file tells them.

    `word` is the stage in the timeline; `committed_ms` is when the file in commits/ was written;
    `watermark_ms` is the one that the batch used, 0 when none was set yet.
    """

    batch: int
    word: BatchStage
    planned_ms: int | None
    committed_ms: int | None
    watermark_ms: int | None
    sources: list[BatchSource]


def make_timeline(checkpoint: Checkpoint, length: int = 20) -> list[tuple[int, BatchStage]]:
    """The last batches, each with its stage."""
    logs = [log.ids for log in (checkpoint.offsets, checkpoint.commits) if log.ids]
    if not logs:
        return []
    oldest, newest = min(ids[0] for ids in logs), max(ids[-1] for ids in logs)
    stage_of = _Stages(checkpoint)
    return [(each, stage_of(each)) for each in range(max(oldest, newest - length + 1), newest + 1)]


def make_history(checkpoint: Checkpoint, length: int) -> list[BatchReport]:
    """The last `length` batches of which there is a file, oldest first; opens an offsets file of each."""
    ids = sorted({*checkpoint.offsets.ids, *checkpoint.commits.ids})
    last = ids[-length:] if length else []
    needed = {number for batch in last for number in (batch - 1, batch)}
    offsets = {number: checkpoint.offsets_of(number) for number in needed}
    stage_of = _Stages(checkpoint)
    return [
        _report_batch(checkpoint, each, stage_of(each), offsets[each - 1], offsets[each])
        for each in last
    ]


class _Stages:
    """Gives the stage of any batch."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._offsets = set(checkpoint.offsets.ids)
        self._commits = set(checkpoint.commits.ids)

    def __call__(self, batch: int) -> BatchStage:
        if batch not in self._offsets:
            return BatchStage.NO_OFFSETS if batch in self._commits else BatchStage.MISSING
        if batch in self._commits:
            return BatchStage.DONE
        newest = max(self._commits, default=-1)
        return BatchStage.PLANNED if batch > newest else BatchStage.NO_COMMIT


def _report_batch(
    checkpoint: Checkpoint,
    batch: int,
    stage: BatchStage,
    before: Offsets | None,
    planned: Offsets | None,
) -> BatchReport:
    planned_ms = planned.timestamp_ms if planned else None
    return BatchReport(
        batch=batch,
        word=stage,
        planned_ms=planned_ms or _written(checkpoint, f"offsets/{batch}"),
        committed_ms=_written(checkpoint, f"commits/{batch}"),
        watermark_ms=planned.watermark_ms if planned else None,
        sources=_report_sources(before, planned) if planned else [],
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
