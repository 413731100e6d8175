"""Whether the source logs can serve what the offsets ask of them (file sources keep such a log)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import failures
from .errors import CheckpointError, RefusedError
from .logs import BadFileError, Flaw
from .sources import SourceLog, decode_offset, parse_file_log, recognise

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .failures import Failure
    from .store import Store

MOST_ENTRIES = 50


def last_offsets(checkpoint: Checkpoint, kind: str) -> dict[str, str | None]:
    """The sources of this kind in the last offsets (or the ones before, where those are broken)."""
    found: dict[str, str | None] = {}
    for number in sorted(checkpoint.entries):
        for each in checkpoint.entries[number].sources:
            if recognise(each.offset) == kind:
                found[each.source] = each.offset
    return found


def check_source_log(store: Store, log: SourceLog, line: str) -> tuple[Failure | None, str | None]:
    """What stops a file source from reading its own log at the start: (error, not knowable)."""
    latest = log.latest
    if latest is None:
        return None, None
    lost = log.first_missing(log.first_needed(latest), latest)
    if lost is not None:
        return failures.missing_source_entry(log.name(lost), lost, line, latest=latest), None
    for number in log.needed(latest)[-MOST_ENTRIES:]:
        file = log.name(number)
        try:
            parse_file_log(store.read(file))
        except BadFileError as error:
            return failures.bad_log_file(file, error.flaw, line), None
        except RefusedError:
            continue  # a compact file too large to read: its names are enough here
        except CheckpointError as error:
            return None, str(error)
    return None, None


def check_range(
    checkpoint: Checkpoint, source: str, start: str | None, end: str | None, line: str
) -> Failure | None:
    """Whether a file source's log has every entry between two offsets."""
    if recognise(end) != "file":
        if (
            end is not None
            and recognise(start) != "unknown"
            and isinstance(decode_offset(end), str)
        ):
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
    return failures.Failure("IllegalStateException", "don't", log.name(lost))


def log_offset(offset: str | None) -> int:
    """The number in `{"logOffset":n}`, -1 for none."""
    value = decode_offset(offset)
    number = value.get("logOffset") if isinstance(value, dict) else None
    return number if isinstance(number, int) else -1
