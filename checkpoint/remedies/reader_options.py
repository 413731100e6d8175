"""Reader options, as code, that start and end where the batches of a checkpoint do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamgauge.checkpoint.reader.sources import (
    SourceKind,
    decode_offset,
    log_offset,
    read_paths,
    recognise,
)

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint

MOST_FILES = 20


def starting_options(
    checkpoint: Checkpoint, span: tuple[int, int] | None, *, end: bool = False
) -> tuple[str, ...] | None:
    """Reader options that start (and end) where the checkpoint's batches do; None when unknown."""
    if span is None:
        return None
    before = checkpoint.offsets_of(span[0] - 1) if span[0] > 0 else None
    after = checkpoint.offsets_of(span[1])
    if after is None or (before is None and span[0] > 0):
        return None
    lines: list[str] = []
    for each in after.sources:
        start = before.of(each.source) if before else None
        if recognise(each.offset) is SourceKind.FILE:
            lines += _list_files(checkpoint, each.source, start, each.offset)
        else:
            lines += _source_options(each.source, start, each.offset, end=end)
    return tuple(lines)


def _list_files(
    checkpoint: Checkpoint, source: str, start: str | None, stop: str | None
) -> list[str]:
    """The files of a range, for spark.read; a stream has no option for them."""
    first, last = log_offset(start) + 1, log_offset(stop)
    log = checkpoint.sources.get(source)
    paths = read_paths(checkpoint.store, log, first, last)[0] if log else []
    shown = [f"#   {path}" for path in paths[:MOST_FILES]]
    if len(paths) > MOST_FILES:
        shown.append(f"#   … and {len(paths) - MOST_FILES} files more")
    return [
        f"# source {source}: {len(paths)} file(s), entries {first} to {last} of its log",
        *shown,
    ]


def _source_options(source: str, start: str | None, stop: str | None, *, end: bool) -> list[str]:
    kind = recognise(stop)
    if kind is SourceKind.KAFKA:
        first = _quote(start) if start else "earliest"
        lines = [f".option(\"startingOffsets\", '{first}')  # source {source}"]
        if end:
            lines.append(f".option(\"endingOffsets\", '{_quote(stop)}')")
        return lines
    if kind is SourceKind.DELTA:
        version = _member(start, "reservoirVersion")
        lines = [
            f'.option("startingVersion", "{0 if version is None else version}")  # source {source}'
        ]
        if end:
            lines.append(f'.option("endingVersion", "{_member(stop, "reservoirVersion")}")')
        return lines
    return [f"# source {source} ({kind}): from {start or 'its beginning'} to {stop}"]


def _quote(offset: str | None) -> str:
    return json.dumps(decode_offset(offset), separators=(",", ":"), sort_keys=True)


def _member(offset: str | None, key: str) -> Any:
    value = decode_offset(offset)
    return value.get(key) if isinstance(value, dict) else None


def earliest_options(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Options that make each Kafka source start at its beginning."""
    return tuple(
        f'.option("startingOffsets", "earliest")  # source {each.source}'
        for each in (checkpoint.latest.sources if checkpoint.latest else ())
        if recognise(each.offset) is SourceKind.KAFKA
    )
