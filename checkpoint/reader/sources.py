"""The sources of a query, as far as a checkpoint knows them: offsets, source logs, ranges.

What kind a source is follows from the shape of its offsets and from its folder in `sources/`;
where the files don't tell, the kind is `unknown` and the offsets are shown as they are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.checkpoint.errors import BadFileError, CheckpointError, Flaw
from streamgauge.model.checkpoint_names import batch_id

from .logs import parse_version
from .text_enum import TextEnum

if TYPE_CHECKING:
    from .store import Store

MOST_PATHS = 200
MOST_LOG_FILES = 1000
COMPACT = ".compact"


class SourceKind(TextEnum):
    """Kinds of source that the shape of an offset gives away."""

    FILE = "file"
    KAFKA = "kafka"
    DELTA = "delta"
    ICEBERG = "iceberg"
    RATE_MICRO_BATCH = "rate-micro-batch"
    RATE_CONTINUOUS = "rate (continuous)"
    COUNTER = "counter"  # rate and socket both write a bare integer
    UNKNOWN = "unknown"


class PartitionRange(msgspec.Struct, frozen=True):
    """What one partition gives: from `start` (None: its beginning) up to `end`; `rows` if known."""

    partition: str
    start: Any
    end: Any
    rows: int | None = None


class SourceRange(msgspec.Struct, frozen=True):
    """What one batch reads of one source."""

    source: str
    kind: SourceKind
    start: Any
    end: Any
    empty: bool
    partitions: tuple[PartitionRange, ...] = ()
    rows: int | None = None
    paths: tuple[str, ...] = ()
    paths_left_out: int = 0


class SourceLog(msgspec.Struct, frozen=True):
    """The names in `sources/<id>/`: plain entries and compact files, by id."""

    folder: str
    plain: frozenset[int] = frozenset()
    compact: frozenset[int] = frozenset()

    @property
    def latest(self) -> int | None:
        """Newest id, None for an empty log."""
        return max(self.plain | self.compact, default=None)

    def has(self, number: int) -> bool:
        """Whether there is an entry of this id, compacted or not."""
        return number in self.plain or number in self.compact

    def name(self, number: int) -> str:
        """The file of an entry."""
        return f"{self.folder}/{number}{COMPACT if number in self.compact else ''}"

    def needed(self, upto: int) -> list[int]:
        """The ids that are there of those Spark reads: the newest compact and what follows it."""
        first = self.first_needed(upto)
        return sorted(each for each in self.plain | self.compact if first <= each <= upto)

    def first_needed(self, upto: int) -> int:
        """Where reading begins: at the newest compact file, or at 0."""
        return max((each for each in self.compact if each <= upto), default=0)

    def first_missing(self, first: int, last: int) -> int | None:
        """The first id of a range that is not there; asks at most once for each that is."""
        number = first
        while number <= last:
            if not self.has(number):
                return number
            number += 1
        return None


class LoggedFile(msgspec.Struct, frozen=True):
    """One file that the file source has taken in."""

    path: str
    timestamp: int
    batch: int = msgspec.field(name="batchId")


def read_source_log(store: Store, source: str) -> SourceLog:
    """List `sources/<id>/` without opening anything."""
    folder = f"sources/{source}"
    plain: set[int] = set()
    compact: set[int] = set()
    for entry in store.list(folder):
        if entry.is_dir:
            continue
        number = batch_id(entry.name.removesuffix(COMPACT))
        if number is not None:
            (compact if entry.name.endswith(COMPACT) else plain).add(number)
    return SourceLog(folder, frozenset(plain), frozenset(compact))


def parse_file_log(data: bytes) -> list[LoggedFile]:
    """One file of a file source's log; raises BadFileError."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise BadFileError(Flaw.BAD_LINE, "it is not text") from error
    if lines and lines[-1] == "":
        lines.pop()
    parse_version(lines, newest=1)
    try:
        return [_FILE.decode(line) for line in lines[1:]]
    except msgspec.DecodeError as error:
        raise BadFileError(Flaw.BAD_JSON, str(error)[:80]) from error


_FILE = msgspec.json.Decoder(LoggedFile)


def parse_initial_offsets(data: bytes) -> str:
    """Kafka's `sources/<id>/0`: a zero byte, `v1`, then JSON. Others leave the zero byte out."""
    body = data[1:] if data[:1] == b"\0" else data
    try:
        version, _, rest = body.decode().partition("\n")
    except UnicodeDecodeError as error:
        raise BadFileError(Flaw.BAD_LINE, "it is not text") from error
    if not rest:
        version, rest = version[:2], version[2:]
    parse_version([version], newest=1)
    return rest.strip()


def recognise(offset: str | None) -> SourceKind:
    """The kind of source that writes such an offset: its shape is all there is."""
    value = decode_offset(offset)
    if isinstance(value, bool) or value is None:
        return SourceKind.UNKNOWN
    if isinstance(value, int):
        return SourceKind.COUNTER
    if isinstance(value, dict):
        keys = set(value)
        if keys == {"logOffset"}:
            return SourceKind.FILE
        if keys == {"offset", "timestamp"}:
            return SourceKind.RATE_MICRO_BATCH
        if {"sourceVersion", "reservoirId", "reservoirVersion", "index"} <= keys:
            return SourceKind.DELTA
        if keys == {"version", "snapshot_id", "position", "scan_all_files"}:
            return SourceKind.ICEBERG
        if keys and all(_is_kafka_topic(each) for each in value.values()):
            return SourceKind.KAFKA
        if keys and all(_is_rate_partition(each) for each in value.values()):
            return SourceKind.RATE_CONTINUOUS
    return SourceKind.UNKNOWN


def _is_kafka_topic(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            key.isdigit() and isinstance(each, int) and not isinstance(each, bool)
            for key, each in value.items()
        )
    )


def _is_rate_partition(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"value", "runTimeMs"}


def decode_offset(offset: str | None) -> Any:
    """The offset as JSON, as text where it is none, None where there is none."""
    if offset is None:
        return None
    try:
        return json.loads(offset)
    except (ValueError, RecursionError):
        return offset


def log_offset(offset: str | None) -> int:
    """The number in `{"logOffset":n}`, -1 for none."""
    value = decode_offset(offset)
    number = value.get("logOffset") if isinstance(value, dict) else None
    return number if isinstance(number, int) else -1


def measure_range(source: str, start: str | None, end: str | None) -> SourceRange:
    """What lies between two offsets of a source, with rows where the offsets count rows."""
    kind = recognise(end if end is not None else start)
    first, last = decode_offset(start), decode_offset(end)
    partitions: tuple[PartitionRange, ...] = ()
    rows: int | None = None
    if kind is SourceKind.KAFKA and end is not None:
        partitions = tuple(_kafka_partitions(first if isinstance(first, dict) else {}, last))
        rows = _total(partitions)
    elif kind is SourceKind.RATE_MICRO_BATCH:
        rows = _difference(_member(first, "offset", 0), _member(last, "offset", None))
    return SourceRange(source, kind, first, last, start == end, partitions, rows)


def _kafka_partitions(first: dict[str, Any], last: dict[str, Any]) -> list[PartitionRange]:
    ranges = []
    for topic, partitions in sorted(last.items()):
        before = first.get(topic) if isinstance(first.get(topic), dict) else {}
        for partition, end in sorted(partitions.items(), key=lambda item: int(item[0])):
            start = before.get(partition) if before else None
            ranges.append(
                PartitionRange(f"{topic}-{partition}", start, end, _difference(start, end))
            )
    return ranges


def _member(value: Any, key: str, otherwise: Any) -> Any:
    return value.get(key, otherwise) if isinstance(value, dict) else otherwise


def _difference(start: Any, end: Any) -> int | None:
    known = all(isinstance(each, int) and not isinstance(each, bool) for each in (start, end))
    return end - start if known else None


def _total(partitions: tuple[PartitionRange, ...]) -> int | None:
    """The sum, withheld when a part is missing."""
    rows = [each.rows for each in partitions]
    return None if None in rows else sum(each for each in rows if each is not None)


def read_paths(store: Store, log: SourceLog, first: int, last: int) -> tuple[list[str], list[str]]:
    """Paths taken in by the entries `first`…`last` of a file source's log, and what was wrong.

    Entries that were compacted away are found in the newest compact file.
    """
    wanted = {each for each in log.plain if first <= each <= last}
    files = {log.name(each) for each in wanted}
    if log.compact and max(log.compact) >= first:
        files.add(log.name(max(log.compact)))
    found: dict[str, int] = {}
    wrong: list[str] = []
    for name in sorted(files)[:MOST_LOG_FILES]:
        try:
            entries = parse_file_log(store.read(name))
        except BadFileError as error:
            wrong.append(f"{name}: {error}")
        except CheckpointError as error:
            wrong.append(str(error))
        else:
            found |= {each.path: each.batch for each in entries if first <= each.batch <= last}
    return sorted(found, key=lambda path: (found[path], path)), wrong
