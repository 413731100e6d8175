"""Where a start begins: which batch, replayed or new, or which error, from the logs alone.

The rules follow the order in which Spark itself looks: identity, source logs, the last two offsets,
the last commit. `find_start` gives the first thing that stops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streamgauge.checkpoint.errors import Flaw
from streamgauge.checkpoint.reader.checkpoint import PARTITIONS, Mode
from streamgauge.checkpoint.reader.sources import SourceKind
from streamgauge.checkpoint.reader.spark_lines import at_least

from . import failures
from .causes import AnyNote, BatchesTakenForDone, FileNotRead, Note, SourceGoesBack, Unknown
from .failures import Failure
from .source_checks import check_range, check_source_log, last_offsets

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint
    from streamgauge.checkpoint.reader.problems import Problem


MOST_BATCHES = 100


class Start(msgspec.Struct, frozen=True):
    """The first batch of a start. `written` are batches the sink gets before `failure`."""

    batch: int | None = None
    replayed: bool = False
    previous: int | None = None
    written: tuple[int, ...] = ()
    failure: Failure | None = None
    unknown: Unknown | None = None
    notes: tuple[AnyNote, ...] = ()
    duplicates: bool = False
    new_identity: bool = False


def find_start(checkpoint: Checkpoint, line: str, *, async_progress: bool = False) -> Start:
    """What the logs say of a start on a Spark line."""
    stopped = _look_at_identity(checkpoint, line)
    if stopped:
        return stopped
    fresh_identity = checkpoint.problem("metadata") is not None
    if checkpoint.offsets.latest is None:
        return _start_from_nothing(checkpoint, line)
    start = _start_from_offsets(checkpoint, line, async_progress=async_progress)
    if not fresh_identity:
        return start
    notes = (Note.NEW_QUERY_ID, *start.notes)
    return msgspec.structs.replace(start, notes=notes, new_identity=True)


def _look_at_identity(checkpoint: Checkpoint, line: str) -> Start | None:
    problem = checkpoint.problem("metadata")
    if problem is None:
        return None
    if problem.flaw is Flaw.REFUSED:
        return _not_read(problem)
    ran_before = bool(checkpoint.offsets.ids or checkpoint.commits.ids)
    if problem.flaw is Flaw.MISSING and not (ran_before and at_least(line, "4.2")):
        return None
    return Start(failure=failures.bad_metadata(problem.flaw))


def _start_from_nothing(checkpoint: Checkpoint, line: str) -> Start:
    """No offsets: batch 0, over whatever else is there."""
    commits = checkpoint.commits.ids
    if commits and at_least(line, "4.1"):
        return Start(failure=failures.no_offsets_but_commits(line))
    if commits:
        return Start(
            batch=0,
            written=_span(0, commits[0]),
            failure=failures.concurrent_update(commits[0]),
            duplicates=True,
        )
    if checkpoint.state.operators and at_least(line, "4.1"):
        return Start(failure=failures.state_not_empty())
    notes = []
    if checkpoint.state.operators:
        notes.append(Note.STATE_LEFT)
    if any(log.latest is not None for log in checkpoint.sources.values()):
        notes.append(Note.READS_EVERYTHING)
    return Start(batch=0, notes=tuple(notes), duplicates=bool(notes))


def _span(first: int, last: int) -> tuple[int, ...]:
    """Batches from first to last; no more than anybody would read."""
    return tuple(range(first, min(last, first + MOST_BATCHES - 1) + 1))


def _start_from_offsets(checkpoint: Checkpoint, line: str, *, async_progress: bool) -> Start:
    last = checkpoint.offsets.latest
    assert last is not None  # noqa: S101 - the caller looked
    return (
        _look_at_sources(checkpoint, line)
        or _look_at_offsets(checkpoint, line, last)
        or _look_at_previous(checkpoint, line, last, async_progress=async_progress)
        or _look_at_commit(checkpoint, line)
        or _look_at_range(checkpoint, line, last)
        or _look_at_partitions(checkpoint, line, last)
        or _choose_batch(checkpoint, last)
    )


def _stop(failure: Failure | None) -> Start | None:
    return Start(failure=failure) if failure else None


def _not_read(problem: Problem) -> Start:
    return Start(unknown=FileNotRead(problem.file, problem.what))


def _look_at_sources(checkpoint: Checkpoint, line: str) -> Start | None:
    for source, log in checkpoint.sources.items():
        if source not in last_offsets(checkpoint, SourceKind.FILE):
            continue
        found = check_source_log(checkpoint.store, log, line)
        if isinstance(found, Failure):
            return Start(failure=found)
        if found:
            return Start(unknown=found)
    return None


def _look_at_offsets(checkpoint: Checkpoint, line: str, last: int) -> Start | None:
    file = f"offsets/{last}"
    problem = checkpoint.problem(file)
    if problem:
        if problem.flaw is Flaw.REFUSED:
            return _not_read(problem)
        return Start(failure=failures.bad_log_file(file, problem.flaw, line))
    entry = checkpoint.entries[last]
    if entry.version > (2 if at_least(line, "4.2") else 1):
        return Start(failure=failures.bad_log_file(file, Flaw.NEWER_VERSION, line))
    if not entry.sources:
        return Start(failure=failures.source_count(0, None))
    if entry.conf is None and checkpoint.mode is not Mode.CONTINUOUS:
        return Start(failure=failures.no_watermark())
    return None


def _look_at_previous(
    checkpoint: Checkpoint, line: str, last: int, *, async_progress: bool
) -> Start | None:
    if last == 0 or async_progress or checkpoint.mode is Mode.CONTINUOUS:
        return None
    file = f"offsets/{last - 1}"
    uncommitted = checkpoint.commits.latest is None or checkpoint.commits.latest < last
    if last - 1 not in checkpoint.offsets.ids:
        return _stop(failures.missing_batch(last - 1, line, uncommitted=uncommitted))
    problem = checkpoint.problem(file)
    if problem is None:
        return None
    if problem.flaw is Flaw.REFUSED:
        return _not_read(problem)
    return Start(failure=failures.bad_log_file(file, problem.flaw, line))


def _look_at_commit(checkpoint: Checkpoint, line: str) -> Start | None:
    last = checkpoint.commits.latest
    if last is None:
        return None
    file = f"commits/{last}"
    problem = checkpoint.problem(file)
    if problem and problem.flaw is Flaw.REFUSED:
        return _not_read(problem)
    if problem:
        return Start(failure=failures.bad_log_file(file, problem.flaw, line, commit=True))
    newest = 3 if at_least(line, "4.3") else 2 if at_least(line, "4.0") else 1
    if checkpoint.commit and checkpoint.commit.version > newest:
        return Start(failure=failures.bad_log_file(file, Flaw.NEWER_VERSION, line, commit=True))
    return None


def _look_at_range(checkpoint: Checkpoint, line: str, last: int) -> Start | None:
    """The file source is asked for the last batch's files even when it is committed."""
    entry, before = checkpoint.entries[last], checkpoint.entries.get(last - 1)
    for each in entry.sources:
        start = before.of(each.source) if before else None
        failure = check_range(checkpoint, each.source, start, each.offset, line)
        if failure:
            return Start(failure=failure)
    return None


def _look_at_partitions(checkpoint: Checkpoint, line: str, last: int) -> Start | None:
    """Another number of partitions in the last, uncommitted batch marks an offline repartition."""
    before = checkpoint.entries.get(last - 1)
    if before is None or last in checkpoint.commits.ids or not at_least(line, "4.2"):
        return None
    old, new = ((each.conf or {}).get(PARTITIONS) for each in (before, checkpoint.entries[last]))
    if old == new or None in (old, new):
        return None
    return _stop(failures.unfinished_repartition(last))


def _choose_batch(checkpoint: Checkpoint, last: int) -> Start:
    commits = checkpoint.commits
    earlier = [each for each in checkpoint.offsets.ids if each < last]
    previous = earlier[-1] if earlier else None
    if commits.latest == last:
        return Start(batch=last + 1, previous=last, notes=_void_notes(checkpoint, last))
    if commits.latest is not None and commits.latest > last:
        first = next(each for each in commits.ids if each >= last)
        return Start(
            batch=last,
            replayed=True,
            previous=previous,
            written=_span(last, first),
            failure=failures.concurrent_update(first),
            duplicates=True,
        )
    notes = _skipped_notes(checkpoint, last)
    return Start(batch=last, replayed=True, previous=previous, notes=notes, duplicates=True)


def _skipped_notes(checkpoint: Checkpoint, last: int) -> tuple[AnyNote, ...]:
    committed = checkpoint.commits.latest
    first = checkpoint.offsets.ids[0] if committed is None else committed + 1
    if checkpoint.mode is Mode.ASYNC or first >= last:
        return ()
    return (BatchesTakenForDone(first, last - 1),)


def _void_notes(checkpoint: Checkpoint, last: int) -> tuple[AnyNote, ...]:
    entry, before = checkpoint.entries[last], checkpoint.entries.get(last - 1)
    return tuple(
        SourceGoesBack(each.source, last)
        for each in entry.sources
        if each.offset is None and before is not None and before.of(each.source) is not None
    )
