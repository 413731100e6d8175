"""Sentences for what a forecast found. For render, JSON and the records' text properties alone."""

from __future__ import annotations

from streamgauge.checkpoint.reader.sources import SourceKind
from streamgauge.checkpoint.reader.state_files import LiveFileUnknown, NoSnapshotFound
from streamgauge.model.sinks import SINKS, Sink

from .causes import (
    AnyNote,
    Assumption,
    BatchAgain,
    BatchesSkipped,
    BatchesTakenForDone,
    Cause,
    Doubt,
    FileNotRead,
    FilesNotOpened,
    FirstStart,
    LostIdentity,
    Note,
    Premise,
    SameSources,
    SchemaElsewhere,
    SinkEffect,
    SinkUnknown,
    SourceGoesBack,
    SourceServes,
    StateDoubt,
    Unknown,
)
from .failures import Failure, Moment
from .state_flaws import BrokenFile, StateFlaw

_MOMENTS = {
    Moment.BEFORE_WRITING: "before anything is written",
    Moment.AFTER_OFFSETS: "after the offsets of the batch were written",
    Moment.AFTER_NEXT_OFFSETS: "after the offsets of the next batch were written",
    Moment.TASKS: "in the tasks",
    Moment.TASKS_AFTER_OFFSETS: "in the tasks, after the offsets of the batch were written",
    Moment.TASKS_AT_END: "in the tasks, at the end of the batch",
}
_DOUBTS = {
    Doubt.OUTPUT_MODE: "the output mode (--output-mode)",
    Doubt.EARLIER_RUN: (
        "whether an earlier run has written to the sink: everything is read from the start"
    ),
    Doubt.OUTPUT_LOG: "whether the output has a `_spark_metadata` of an earlier run (--output)",
}
_NOTES = {
    Note.NEW_QUERY_ID: "a new query id will be made up: the old identity is lost",
    Note.STATE_LEFT: (
        "state/ of an earlier run is left; its versions will be overwritten from 1 on"
    ),
    Note.READS_EVERYTHING: (
        "no batch is planned, so everything is read again, a file source's files at once"
    ),
    Note.FAILS_WITHOUT_SCHEMA: "the start fails with FileNotFoundException when it is gone",
    Note.TWO_APPLICATIONS: (
        "two applications on one checkpoint: both run the batch, then one of them fails"
    ),
    Note.ACTIVE_RUN_STOPS: "the run that is active now will be stopped first",
}
_PREMISES = {
    Premise.NO_STATEFUL_OPERATOR: (
        "the query has no stateful operator (there is no state in the checkpoint)"
    ),
    Premise.OPERATORS_MEAN_THE_SAME: (
        "the stateful operators mean the same: Spark compares names and types alone"
    ),
    Premise.ASYNC_AGAIN: "async progress tracking is on again; without it the start fails",
    Premise.CONTINUOUS_AGAIN: "the continuous trigger is used again",
}
_FLAWS = {
    StateFlaw.EMPTY: "is empty",
    StateFlaw.CUT_OFF: "is cut off",
    StateFlaw.NOT_ITS_CODEC: "is not what its codec writes",
    StateFlaw.NO_SNAPSHOT: "is no zip with a metadata entry",
}


def say_moment(failure: Failure) -> str:
    """When the start fails."""
    if failure.moment is Moment.AFTER_BATCH:
        batch = failure.batch
        return f"after batch {batch} was written to the sink; on every further attempt again"
    return _MOMENTS[failure.moment]


def say_broken(broken: BrokenFile) -> str:
    """A state file and what is wrong with it."""
    if broken.flaw is StateFlaw.MISSING_SST:
        what = f"needs {broken.sst}, which is missing"
    elif broken.flaw is StateFlaw.WRONG_SIZE:
        what = f"has a checksum of {broken.recorded_bytes} bytes and has {broken.actual_bytes}"
    elif broken.flaw is StateFlaw.UNREADABLE:
        what = broken.error
    else:
        what = _FLAWS[broken.flaw]
    return f"{broken.file}: {what}"


def say_state_doubt(doubt: StateDoubt) -> str:
    """What the state files do not tell."""
    match doubt:
        case LiveFileUnknown(folder, version):
            return f"{folder}: which file of version {version} is live (no commit says it)"
        case NoSnapshotFound(folder, versions):
            return f"{folder}: no snapshot in {versions} versions"
        case FilesNotOpened(opened):
            return f"only the first {opened} state files were opened"


def say_unknown(unknown: Unknown) -> str:
    """What would have to be known for a verdict."""
    match unknown:
        case Doubt():
            return _DOUBTS[unknown]
        case FileNotRead(file, error):
            return f"{file}: {error}"
        case SchemaElsewhere(path):
            return f"whether {path} is still there: the checkpoint was moved or copied from there"
        case SinkUnknown(batch):
            return f"what the sink does with batch {batch} again (--sink)"
        case _:
            return say_state_doubt(unknown)


def say_note(note: AnyNote) -> str:
    """What a person should know of the start."""
    match note:
        case Note():
            return _NOTES[note]
        case BatchesTakenForDone(first, last):
            span = f"{first}" if first == last else f"{first} to {last}"
            done = f"Spark takes everything before batch {last + 1} for done"
            return f"no commit for batch {span}, yet {done}: if they never ran, their data is lost"
        case SourceGoesBack(source, batch):
            before = f"it goes on from batch {batch - 1}"
            return f"source {source} has no offset in batch {batch}: {before}"


def say_cause(cause: Cause | None) -> str:
    """Why the verdict is what it is; nothing for a plain safe start."""
    match cause:
        case None:
            return ""
        case Failure():
            return cause.error
        case Note() | BatchesTakenForDone() | SourceGoesBack():
            return say_note(cause)
        case FirstStart():
            return "a first start"
        case LostIdentity(sink):
            return f"the new query id defeats {sink.capitalize()}'s memory of its batches"
        case BatchesSkipped(first, last):
            return f"the file sink has batches up to {last} and silently skips {first} to {last}"
        case BatchAgain():
            return _say_again(cause)
        case _:
            return say_unknown(cause)


def _say_again(cause: BatchAgain) -> str:
    sink = SINKS[cause.sink]
    subject = "the sink" if cause.skipped else sink.name
    return f"batch {cause.batch} may have been written already; {subject} {sink.replay}"


def say_assumption(assumption: Assumption) -> str:
    """What the forecast takes for granted."""
    match assumption:
        case Premise():
            return _PREMISES[assumption]
        case SourceServes(source, kind):
            return f"source {source}: {_say_serves(kind)}"
        case SameSources(count):
            return f"the code still has {count} source(s), in this order"


def _say_serves(kind: SourceKind) -> str:
    if kind is SourceKind.FILE:
        return "its files are still there; a file that is gone is read as empty, without an error"
    if kind is SourceKind.KAFKA:
        return "Kafka still holds these offsets (retention)"
    if kind is SourceKind.ICEBERG:
        return (
            "the table still has these snapshots; one that was expired fails the batch "
            '("the snapshot was expired or removed")'
        )
    return "it can still serve this range"


def say_sink_effect(effect: SinkEffect | None, sink: Sink | None, batch: int | None) -> str:
    """What the sink does with the first batch; nothing where it just writes it."""
    if effect is SinkEffect.WRITTEN_NOW:
        return f"The output does not have batch {batch} yet: it is written now."
    return sink.sentence if sink and effect else ""
