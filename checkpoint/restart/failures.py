"""Spark's errors at a restart, as a person will meet them in the log, for each Spark line.

One function per error, so that a rule says *what* is wrong and this module says what Spark calls it.
`error` is Spark's error condition where it has one, else the Java exception's name.
"""

from __future__ import annotations

import enum

import msgspec

from streamgauge.checkpoint.errors import Flaw
from streamgauge.checkpoint.reader.spark_lines import at_least

CONCURRENT = "CONCURRENT_STREAM_LOG_UPDATE"


class Moment(enum.Enum):
    """When a start fails, from the first look at the logs to the end of a batch."""

    BEFORE_WRITING = enum.auto()
    AFTER_OFFSETS = enum.auto()
    AFTER_NEXT_OFFSETS = enum.auto()
    TASKS = enum.auto()
    TASKS_AFTER_OFFSETS = enum.auto()
    TASKS_AT_END = enum.auto()
    AFTER_BATCH = enum.auto()

    @property
    def in_tasks(self) -> bool:
        """Whether the plan is made by then, and the tasks run."""
        return self in (Moment.TASKS, Moment.TASKS_AFTER_OFFSETS, Moment.TASKS_AT_END)


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """How a start fails: the error's name, words its message holds, and the file to look at.

    `batch`: the batch of `Moment.AFTER_BATCH`. `instead`: names that the same fault may have, where
    tasks race for the first error.
    """

    error: str
    message: str = ""
    file: str | None = None
    moment: Moment = Moment.BEFORE_WRITING
    batch: int | None = None
    instead: tuple[str, ...] = ()


def concurrent_update(batch: int) -> Failure:
    """A commit that is already there: Spark takes it for a second writer."""
    return Failure(
        error=CONCURRENT,
        message=f"Multiple streaming jobs detected for {batch}",
        file=f"commits/{batch}",
        moment=Moment.AFTER_BATCH,
        batch=batch,
    )


def missing_batch(batch: int, line: str, *, uncommitted: bool) -> Failure:
    """The offsets before the last are gone."""
    file = f"offsets/{batch}"
    if uncommitted and at_least(line, "4.2"):
        text = f"Previous batch {batch} not found in offset log"
        return Failure(error="IllegalArgumentException", message=text, file=file)
    text = f"batch {batch} doesn't exist"
    return Failure(error="IllegalStateException", message=text, file=file)


def bad_log_file(file: str, flaw: Flaw, line: str, *, commit: bool = False) -> Failure:
    """A log file that can't be read."""
    if flaw in (Flaw.BAD_VERSION, Flaw.NEWER_VERSION):
        return _bad_version(file, flaw, line, commit=commit)
    if flaw is Flaw.EMPTY:
        text = "Incomplete log file in the offset commit log" if commit else "Incomplete log file"
        return Failure(error="IllegalStateException", message=text, file=file)
    if flaw is Flaw.NO_METADATA:
        return Failure(error="NoSuchElementException", message="next on empty iterator", file=file)
    if flaw is Flaw.BAD_JSON:
        return Failure(error="JsonParseException", file=file)
    if flaw is Flaw.BAD_LINE:
        return Failure(error="IllegalStateException", file=file)
    return Failure(error="an error while reading", file=file)


def _bad_version(file: str, flaw: Flaw, line: str, *, commit: bool) -> Failure:
    if flaw is Flaw.BAD_VERSION:
        error = "MALFORMED_LOG_FILE" if at_least(line, "4.0") else "IllegalStateException"
        return Failure(error=error, message="Log file was malformed", file=file)
    if commit and line in ("4.0", "4.1"):
        return Failure(error="INVALID_LOG_VERSION.EXACT_MATCH_VERSION", file=file)
    if at_least(line, "4.0"):
        error = "INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION"
        return Failure(error=error, message="Unsupported", file=file)
    return Failure(error="IllegalStateException", message="UnsupportedLogVersion", file=file)


def bad_metadata(flaw: Flaw) -> Failure:
    """The query's identity can't be read."""
    if flaw is Flaw.MISSING:
        return Failure(error="STREAMING_CHECKPOINT_MISSING_METADATA_FILE", file="metadata")
    if flaw is Flaw.EMPTY:
        text = "No content to map"
        return Failure(error="MismatchedInputException", message=text, file="metadata")
    return Failure(error="JsonParseException", file="metadata")


def no_offsets_but_commits(line: str) -> Failure:
    """`offsets/` is gone, `commits/` is there (4.1 and later)."""
    if at_least(line, "4.2"):
        return Failure(error="AssertionError", message="assertion failed", file="offsets")
    return state_not_empty()


def state_not_empty() -> Failure:
    """Batch 0 over a `state/` that is not empty (4.1 and later)."""
    error = "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
    return Failure(error=error, message="should be empty", file="state")


def source_count(logged: int, now: int | None) -> Failure:
    """Another number of sources; `now` is None when the new code is not known."""
    text = f"There are [{logged}] sources in the checkpoint offsets and now there are ["
    text += f"{now}]" if now is not None else ""
    return Failure(error="AssertionError", message=text, file="offsets")


def missing_source_entry(file: str, number: int, line: str, *, latest: int) -> Failure:
    """A file of a file source's log is gone: in the middle, or at its end."""
    if number < latest:
        error = "FileNotFoundException" if at_least(line, "4.2") else "IllegalStateException"
        return Failure(error=error, message="doesn't exist (latestId", file=file)
    text = f"batch {number} doesn't exist"
    return Failure(error="IllegalStateException", message=text, file=file)


def missing_range_entry(file: str) -> Failure:
    """Some entries of a range are in a file source's log, and this one is not."""
    return Failure(error="IllegalStateException", message="don't", file=file)


def no_watermark() -> Failure:
    """Offsets without a metadata line in a micro-batch query."""
    return Failure(error="NullPointerException", message="WatermarkTracker", file="offsets")


def missing_state(file: str, line: str) -> Failure:
    """A state file that loading the needed version takes is not there."""
    error = "FileNotFoundException"
    if at_least(line, "4.0"):
        delta = file.endswith(".delta")
        kind = "READ_DELTA_FILE_NOT_EXISTS" if delta else "READ_STREAMING_STATE_FILE"
        error = f"CANNOT_LOAD_STATE_STORE.CANNOT_{kind}"
    return Failure(error=error, message=file, file=file, moment=Moment.TASKS_AFTER_OFFSETS)


def broken_state(
    file: str, line: str, *, lacks_sst: bool = False, checksum: bool = False
) -> Failure:
    """A state file that is there and can't be loaded, or a snapshot that lacks an SST file."""
    moment = Moment.TASKS_AFTER_OFFSETS
    if checksum and at_least(line, "4.1"):
        error = "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"
        return Failure(error=error, file=file, moment=moment)
    if at_least(line, "4.0"):
        error = "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"
        return Failure(error=error, file=file, moment=moment)
    if lacks_sst:
        return Failure(error="FileNotFoundException", message=".sst", file=file, moment=moment)
    error = "NoSuchFileException" if file.endswith(".zip") else "EOFException"
    return Failure(error=error, file=file, moment=moment)


def unfinished_repartition(batch: int) -> Failure:
    """A planned batch with another number of partitions: an offline repartition (4.2 and later)."""
    error = "STREAMING_UNFINISHED_REPARTITION_DETECTED"
    return Failure(error=error, file=f"offsets/{batch}")


def missing_state_directory(line: str) -> Failure:
    """A stateful query over a checkpoint without its state."""
    if at_least(line, "4.2"):
        error = "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY"
        return Failure(error=error, file="state", moment=Moment.AFTER_NEXT_OFFSETS)
    error = "CANNOT_LOAD_STATE_STORE" if at_least(line, "4.0") else "FileNotFoundException"
    return Failure(error=error, file="state", moment=Moment.TASKS)


def format_mismatch(written: int, asked: int, line: str) -> Failure | None:
    """Checkpoint format v2, and a session that asks for another; 4.3 adopts what is there."""
    if written == asked or at_least(line, "4.3") or not at_least(line, "4.0"):
        return None
    if not at_least(line, "4.2"):
        return Failure(error="INVALID_LOG_VERSION.EXACT_MATCH_VERSION", file="commits")
    if written < 2:
        error = "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT"
        return Failure(error=error, file="commits", moment=Moment.TASKS_AT_END)
    error = "CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE"
    return Failure(error=error, file="state")


def already_active(query_id: str | None) -> Failure:
    """The same query id is running in this application, and it may not be stopped."""
    text = f"Cannot start query with id {query_id or ''}"
    return Failure(error="IllegalStateException", message=text, file="metadata")


def memory_sink() -> Failure:
    """The memory sink in append or update mode never recovers."""
    text = "does not support recovering from checkpoint location"
    return Failure(error="AnalysisException", message=text, file="offsets")


def operator_mismatch() -> Failure:
    """Other stateful operators than the state metadata names (4.0 and later)."""
    error = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
    return Failure(error=error, file="state", moment=Moment.AFTER_OFFSETS)


def missing_operator_state(operator: int) -> Failure:
    """An operator that never wrote state (3.5 does not compare operators, it misses files)."""
    return Failure(
        error="FileNotFoundException",
        message=f"state/{operator}/",
        file=f"state/{operator}",
        moment=Moment.TASKS,
    )


def schema_mismatch(part: str, line: str) -> Failure:
    """Other types in the state's key or value."""
    file = "state/0/0/_metadata/schema"
    if at_least(line, "4.0"):
        return Failure(error=f"STATE_STORE_{part.upper()}_SCHEMA_NOT_COMPATIBLE", file=file)
    return Failure(
        error="StateSchemaNotCompatible",
        file=file,
        moment=Moment.TASKS,
        # a task may meet a row before another meets the schema
        instead=("InvalidUnsafeRowException",),
    )


def other_source(now: str) -> Failure:
    """An offset that the new kind of source can't read; each kind has an error of its own."""
    if now == "rate-micro-batch":
        return Failure(error="MappingException", message="No usable value", file="offsets")
    return Failure(error="an error of the new source", file="offsets")


def wrong_base_path() -> Failure:
    """Files of the last batch that are not under the source's folder."""
    return Failure(error="IllegalArgumentException", message="Wrong basePath", file="sources")
