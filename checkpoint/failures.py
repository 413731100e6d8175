"""Spark's errors at a restart, as a person will meet them in the log, for each Spark line.

One function an error, so that a rule says *what* is wrong and this module says what Spark calls it.
`error` is Spark's error condition where it has one, else the Java exception's name.
"""

from __future__ import annotations

import msgspec

from .lines import at_least
from .logs import Flaw

CONCURRENT = "CONCURRENT_STREAM_LOG_UPDATE"


class Failure(msgspec.Struct, frozen=True):
    """How a start fails: the error's name, words its message holds, and the file to look at.

    `instead`: names that the same fault may have, where tasks race for the first error.
    """

    error: str
    message: str = ""
    file: str | None = None
    when: str = "before anything is written"
    instead: tuple[str, ...] = ()


def concurrent_update(batch: int) -> Failure:
    """A commit that is already there: Spark takes it for a second writer."""
    return Failure(
        CONCURRENT,
        f"Multiple streaming jobs detected for {batch}",
        f"commits/{batch}",
        f"after batch {batch} was written to the sink; on every further attempt again",
    )


def missing_batch(batch: int, line: str, *, uncommitted: bool) -> Failure:
    """The offsets before the last are gone."""
    file = f"offsets/{batch}"
    if uncommitted and at_least(line, "4.2"):
        text = f"Previous batch {batch} not found in offset log"
        return Failure("IllegalArgumentException", text, file)
    return Failure("IllegalStateException", f"batch {batch} doesn't exist", file)


def bad_log_file(file: str, flaw: Flaw, line: str, *, commit: bool = False) -> Failure:
    """A log file that can't be read."""
    if flaw is Flaw.EMPTY:
        words = "Incomplete log file in the offset commit log" if commit else "Incomplete log file"
        return Failure("IllegalStateException", words, file)
    if flaw is Flaw.NO_METADATA:
        return Failure("NoSuchElementException", "next on empty iterator", file)
    if flaw is Flaw.BAD_VERSION:
        if at_least(line, "4.0"):
            return Failure("MALFORMED_LOG_FILE", "Log file was malformed", file)
        return Failure("IllegalStateException", "Log file was malformed", file)
    if flaw is Flaw.NEWER_VERSION and commit and line in ("4.0", "4.1"):
        return Failure("INVALID_LOG_VERSION.EXACT_MATCH_VERSION", "", file)
    if flaw is Flaw.NEWER_VERSION:
        if at_least(line, "4.0"):
            return Failure("INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION", "Unsupported", file)
        return Failure("IllegalStateException", "UnsupportedLogVersion", file)
    if flaw is Flaw.BAD_JSON:
        return Failure("JsonParseException", "", file)
    if flaw is Flaw.BAD_LINE:
        return Failure("IllegalStateException", "", file)
    return Failure("an error while reading", "", file)


def bad_metadata(flaw: Flaw) -> Failure:
    """The query's identity can't be read."""
    if flaw is Flaw.MISSING:
        return Failure("STREAMING_CHECKPOINT_MISSING_METADATA_FILE", "", "metadata")
    if flaw is Flaw.EMPTY:
        return Failure("MismatchedInputException", "No content to map", "metadata")
    return Failure("JsonParseException", "", "metadata")


def no_offsets_but_commits(line: str) -> Failure:
    """`offsets/` is gone, `commits/` is there (4.1 and later)."""
    if at_least(line, "4.2"):
        return Failure("AssertionError", "assertion failed", "offsets")
    return state_not_empty()


def state_not_empty() -> Failure:
    """Batch 0 over a `state/` that is not empty (4.1 and later)."""
    return Failure("STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY", "should be empty", "state")


def source_count(logged: int, now: int | None) -> Failure:
    """Another number of sources; `now` is None when the new code is not known."""
    text = f"There are [{logged}] sources in the checkpoint offsets and now there are ["
    text += f"{now}]" if now is not None else ""
    return Failure("AssertionError", text, "offsets")


def missing_source_entry(file: str, number: int, line: str, *, latest: int) -> Failure:
    """A file of a file source's log is gone: in the middle, or at its end."""
    if number < latest:
        error = "FileNotFoundException" if at_least(line, "4.2") else "IllegalStateException"
        return Failure(error, "doesn't exist (latestId", file)
    return Failure("IllegalStateException", f"batch {number} doesn't exist", file)


def no_watermark() -> Failure:
    """Offsets without a metadata line in a micro-batch query."""
    return Failure("NullPointerException", "WatermarkTracker", "offsets")


def missing_state(file: str, line: str) -> Failure:
    """A state file that loading the needed version takes is not there."""
    when = "in the tasks, after the offsets of the batch were written"
    if at_least(line, "4.0"):
        kind = (
            "READ_DELTA_FILE_NOT_EXISTS" if file.endswith(".delta") else "READ_STREAMING_STATE_FILE"
        )
        return Failure(f"CANNOT_LOAD_STATE_STORE.CANNOT_{kind}", file, file, when)
    return Failure("FileNotFoundException", file, file, when)


def broken_state(
    file: str, line: str, *, lacks_sst: bool = False, checksum: bool = False
) -> Failure:
    """A state file that is there and can't be loaded, or a snapshot that lacks an SST file."""
    when = "in the tasks, after the offsets of the batch were written"
    if checksum and at_least(line, "4.1"):
        return Failure("CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED", "", file, when)
    if at_least(line, "4.0"):
        return Failure("CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", "", file, when)
    if lacks_sst:
        return Failure("FileNotFoundException", ".sst", file, when)
    error = "NoSuchFileException" if file.endswith(".zip") else "EOFException"
    return Failure(error, "", file, when)


def unfinished_repartition(batch: int) -> Failure:
    """A planned batch with another number of partitions: an offline repartition (4.2 and later)."""
    return Failure("STREAMING_UNFINISHED_REPARTITION_DETECTED", "", f"offsets/{batch}")


def missing_state_directory(line: str) -> Failure:
    """A stateful query over a checkpoint without its state."""
    if at_least(line, "4.2"):
        error = "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY"
        return Failure(error, "", "state", "after the offsets of the next batch were written")
    if at_least(line, "4.0"):
        return Failure("CANNOT_LOAD_STATE_STORE", "", "state", "in the tasks")
    return Failure("FileNotFoundException", "", "state", "in the tasks")


def format_mismatch(written: int, asked: int, line: str) -> Failure | None:
    """Checkpoint format v2, and a session that asks for another; 4.3 adopts what is there."""
    if written == asked or at_least(line, "4.3") or not at_least(line, "4.0"):
        return None
    if not at_least(line, "4.2"):
        return Failure("INVALID_LOG_VERSION.EXACT_MATCH_VERSION", "", "commits")
    if written < 2:
        when = "in the tasks, at the end of the batch"
        return Failure("CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT", "", "commits", when)
    return Failure("CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE", "", "state")


def already_active(query_id: str | None) -> Failure:
    """The same query id is running in this application, and it may not be stopped."""
    return Failure(
        "IllegalStateException", f"Cannot start query with id {query_id or ''}", "metadata"
    )


def memory_sink() -> Failure:
    """The memory sink in append or update mode never recovers."""
    words = "does not support recovering from checkpoint location"
    return Failure("AnalysisException", words, "offsets")


def operator_mismatch() -> Failure:
    """Other stateful operators than the state metadata names (4.0 and later)."""
    error = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
    return Failure(error, "", "state", "after the offsets of the batch were written")


def missing_operator_state(operator: int) -> Failure:
    """An operator that never wrote state (3.5 does not compare operators, it misses files)."""
    return Failure(
        "FileNotFoundException", f"state/{operator}/", f"state/{operator}", "in the tasks"
    )


def schema_mismatch(part: str, line: str) -> Failure:
    """Other types in the state's key or value."""
    file = "state/0/0/_metadata/schema"
    if at_least(line, "4.0"):
        return Failure(f"STATE_STORE_{part.upper()}_SCHEMA_NOT_COMPATIBLE", "", file)
    names = ("InvalidUnsafeRowException",)  # a task may meet a row before another meets the schema
    return Failure("StateSchemaNotCompatible", "", file, "in the tasks", names)


def other_source(now: str) -> Failure:
    """An offset that the new kind of source can't read; each kind has an error of its own."""
    if now == "rate-micro-batch":
        return Failure("MappingException", "No usable value", "offsets")
    return Failure("an error of the new source", "", "offsets")


def wrong_base_path() -> Failure:
    """Files of the last batch that are not under the source's folder."""
    return Failure("IllegalArgumentException", "Wrong basePath", "sources")
