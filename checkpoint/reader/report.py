"""What `show` shows: one record of everything a checkpoint says about its query."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.checkpoint.errors import CheckpointError

from .history import BatchReport, BatchStage, make_history, make_timeline
from .sources import (
    SourceKind,
    SourceRange,
    decode_offset,
    measure_range,
    parse_initial_offsets,
    recognise,
)
from .spark_lines import writer_line

if TYPE_CHECKING:
    from .checkpoint import Checkpoint, Mode
    from .state import Operator
    from .state_files import StoreFiles


class OperatorReport(msgspec.Struct, frozen=True):
    """One stateful operator on disk. `versions`: first and last that every store has."""

    operator: int
    name: str
    provider: str | None
    stores: tuple[str, ...]
    partitions: int
    versions: tuple[int, int] | None
    oldest_snapshot: int | None
    files: int
    bytes: int
    key_types: list[str] | None = None
    value_types: list[str] | None = None


class SourceReport(msgspec.Struct, frozen=True):
    """One source: its offset in the last planned and the last committed batch.

    `first`: where it began (Kafka's initial offsets, rate's start), where its folder keeps that.
    """

    source: str
    kind: SourceKind
    planned: Any
    committed: Any
    uncommitted: SourceRange | None = None
    first: Any = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint. Ages in seconds at the time of the look; None: it can't be known."""

    root: str
    query_id: str | None
    written_by: str | None
    mode: Mode
    last_planned: int | None
    last_committed: int | None
    planned_age: float | None
    committed_age: float | None
    uncommitted: list[int]
    planned_batches: int
    committed_batches: int
    offset_gaps: list[tuple[int, int]]
    commit_gaps: list[tuple[int, int]]
    offset_version: int | None
    commit_version: int | None
    sources: list[SourceReport]
    watermark_ms: int | None
    next_watermark_ms: int | None
    conf: dict[str, str]
    operators: list[OperatorReport]
    state_bytes: int
    leftovers: list[str]
    problems: dict[str, str]
    timeline: list[tuple[int, BatchStage]]
    batches: list[BatchReport] = []


def make_report(checkpoint: Checkpoint, now: float | None = None, batches: int = 0) -> Report:
    """Everything `show` tells. `now` is seconds since 1970, the clock's when not given.

    `batches`: how many of the last ones are told one by one.
    """
    now = time.time() if now is None else now
    latest, commit = checkpoint.latest, checkpoint.commit
    planned, committed = checkpoint.offsets.latest, checkpoint.commits.latest
    return Report(
        root=checkpoint.store.root,
        query_id=checkpoint.query_id,
        written_by=writer_line(
            latest.conf if latest else None, checksums=_has_checksums(checkpoint)
        ),
        mode=checkpoint.mode,
        last_planned=planned,
        last_committed=committed,
        planned_age=_age(checkpoint, "offsets", planned, now),
        committed_age=_age(checkpoint, "commits", committed, now),
        uncommitted=checkpoint.uncommitted,
        planned_batches=len(checkpoint.offsets.ids),
        committed_batches=len(checkpoint.commits.ids),
        offset_gaps=checkpoint.offsets.gaps(),
        commit_gaps=checkpoint.commits.gaps(),
        offset_version=latest.version if latest else None,
        commit_version=commit.version if commit else None,
        sources=_report_sources(checkpoint),
        watermark_ms=latest.watermark_ms if latest else None,
        next_watermark_ms=commit.next_watermark_ms if commit else None,
        conf=checkpoint.conf,
        operators=[_report_operator(checkpoint, each) for each in checkpoint.state.operators],
        state_bytes=checkpoint.state.bytes,
        leftovers=[
            f"{log.name}/{name}"
            for log in (checkpoint.offsets, checkpoint.commits)
            for name in log.leftovers
        ],
        problems={each.file: each.what for each in checkpoint.problems},
        timeline=make_timeline(checkpoint),
        batches=make_history(checkpoint, batches),
    )


def _age(checkpoint: Checkpoint, log: str, batch: int | None, now: float) -> float | None:
    if batch is None:
        return None
    written = checkpoint.store.modified(f"{log}/{batch}")
    latest = checkpoint.latest
    if written is None and log == "offsets" and latest and latest.timestamp_ms:
        written = latest.timestamp_ms / 1000
    return None if written is None else max(0.0, now - written)


def _has_checksums(checkpoint: Checkpoint) -> bool:
    """4.1 alone writes checksum files beside v1 state."""
    operators = checkpoint.state.operators
    commit = checkpoint.commit
    if not operators or not operators[0].stores or (commit and commit.version > 1):
        return False
    names = checkpoint.store.list(operators[0].stores[0].folder)
    return any(
        each.name.endswith((".delta.crc", ".zip.crc")) and each.name[0] != "." for each in names
    )


def _report_sources(checkpoint: Checkpoint) -> list[SourceReport]:
    latest = checkpoint.latest
    if latest is None:
        return []
    last = checkpoint.commits.latest
    done = checkpoint.offsets_of(last) if last is not None else None
    found = []
    for each in latest.sources:
        before = done.of(each.source) if done else None
        span = measure_range(each.source, before, each.offset)
        kind = recognise(each.offset)
        found.append(
            SourceReport(
                source=each.source,
                kind=kind,
                planned=span.end,
                committed=span.start,
                uncommitted=span if checkpoint.uncommitted else None,
                first=_read_first(checkpoint, each.source, kind),
            )
        )
    return found


def _read_first(checkpoint: Checkpoint, source: str, kind: SourceKind) -> Any:
    if kind not in (SourceKind.KAFKA, SourceKind.COUNTER) or source not in checkpoint.sources:
        return None
    try:
        return decode_offset(parse_initial_offsets(checkpoint.store.read(f"sources/{source}/0")))
    except CheckpointError:
        return None


def _report_operator(checkpoint: Checkpoint, operator: Operator) -> OperatorReport:
    snapshots = [store.last_snapshot for store in operator.stores]
    schema = operator.schema
    known = [each for each in snapshots if each is not None]
    return OperatorReport(
        operator=operator.operator,
        name=operator.name,
        provider=checkpoint.provider,
        stores=tuple(operator.store_names),
        partitions=len(operator.partitions),
        versions=_common_versions(operator.stores),
        oldest_snapshot=min(known, default=None) if len(known) == len(snapshots) else None,
        files=sum(store.files for store in operator.stores),
        bytes=sum(store.bytes for store in operator.stores),
        key_types=schema.types("key") if schema else None,
        value_types=schema.types("value") if schema else None,
    )


def _common_versions(stores: tuple[StoreFiles, ...]) -> tuple[int, int] | None:
    """From the newest of the first versions to the oldest of the last ones."""
    spans = [(versions[0], versions[-1]) for store in stores if (versions := store.versions)]
    if not spans or len(spans) < len(stores):
        return None
    return max(first for first, _ in spans), min(last for _, last in spans)
