"""Whether the source logs can serve what the offsets ask of them (file sources keep such a log)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.checkpoint.errors import BadFileError, CheckpointError, Flaw, RefusedError
from streamgauge.checkpoint.reader.sources import (
    SourceKind,
    SourceLog,
    decode_offset,
    log_offset,
    parse_file_log,
    recognise,
)

from . import failures
from .causes import FileNotRead

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint
    from streamgauge.checkpoint.reader.store import Store

    from .failures import Failure

MOST_ENTRIES = 50


def last_offsets(checkpoint: Checkpoint, kind: SourceKind) -> dict[str, str | None]:
    """The sources of this kind in the last offsets (or the ones before, where those are broken)."""
    found: dict[str, str | None] = {}
    for number in sorted(checkpoint.entries):
        for each in checkpoint.entries[number].sources:
            if recognise(each.offset) is kind:
                found[each.source] = each.offset
    return found


def check_source_log(store: Store, log: SourceLog, line: str) -> Failure | FileNotRead | None:
    """What stops a file source from reading its own log at the start, or what can't be known."""
    latest = log.latest
    if latest is None:
        return None
    lost = log.first_missing(log.first_needed(latest), latest)
    if lost is not None:
        return failures.missing_source_entry(log.name(lost), lost, line, latest=latest)
    for number in log.needed(latest)[-MOST_ENTRIES:]:
        file = log.name(number)
        try:
            parse_file_log(store.read(file))
        except BadFileError as error:
            return failures.bad_log_file(file, error.flaw, line)
        except RefusedError:
            continue  # a compact file too large to read: its names are enough here
        except CheckpointError as error:
            return FileNotRead(file, error.what)
    return None


def check_range(
    checkpoint: Checkpoint, source: str, start: str | None, end: str | None, line: str
) -> Failure | None:
    """Whether a file source's log has every entry between two offsets."""
    if recognise(end) is not SourceKind.FILE:
        known = end is not None and recognise(start) is not SourceKind.UNKNOWN
        if known and isinstance(decode_offset(end), str):
            return failures.bad_log_file("offsets", Flaw.BAD_JSON, line)
        return None
    first, last = log_offset(start) + 1, log_offset(end)
    log = checkpoint.sources.get(source) or SourceLog(f"sources/{source}")
    compacted = max(log.compact, default=-1)
    lost = log.first_missing(max(first, compacted + 1), last)
    if lost is None:
        return None
    if compacted < first and not any(first <= each <= last for each in log.plain):
        return failures.missing_source_entry(log.name(first), first, line, latest=first)
    return failures.missing_range_entry(log.name(lost))
