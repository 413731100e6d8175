"""What the first batch reads of each source, in exact offsets where the logs have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.checkpoint.reader.sources import (
    MOST_PATHS,
    SourceKind,
    SourceRange,
    log_offset,
    measure_range,
    read_paths,
)

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint

    from .start import Start


def find_ranges(checkpoint: Checkpoint, start: Start) -> tuple[SourceRange, ...]:
    """What a replayed batch reads; for a new one, where each source goes on from."""
    if start.batch is None or checkpoint.latest is None:
        return ()
    before = checkpoint.offsets_of(start.previous) if start.previous is not None else None
    if not start.replayed:
        return tuple(
            measure_range(each.source, _resume_offset(checkpoint, each.source, each.offset), None)
            for each in checkpoint.latest.sources
        )
    ranges = []
    for each in checkpoint.latest.sources:
        first = before.of(each.source) if before else None
        ranges.append(_with_paths(checkpoint, measure_range(each.source, first, each.offset)))
    return tuple(ranges)


def _resume_offset(checkpoint: Checkpoint, source: str, offset: str | None) -> str | None:
    if offset is not None or checkpoint.offsets.latest is None:
        return offset
    before = checkpoint.entries.get(checkpoint.offsets.latest - 1)
    return before.of(source) if before else None


def _with_paths(checkpoint: Checkpoint, found: SourceRange) -> SourceRange:
    """Name the files of a file source's range."""
    log = checkpoint.sources.get(found.source)
    if found.kind is not SourceKind.FILE or log is None or found.empty:
        return found
    first, last = (_number(each) for each in (found.start, found.end))
    paths, _ = read_paths(checkpoint.store, log, first + 1, last)
    return msgspec.structs.replace(
        found, paths=tuple(paths[:MOST_PATHS]), paths_left_out=max(0, len(paths) - MOST_PATHS)
    )


def _number(offset: Any) -> int:
    return log_offset(None if offset is None else msgspec.json.encode(offset).decode())
