"""Why a forecast says what it says: causes, notes and assumptions as values. No sentences here.

A fact without data is a member of an enum, a fact with data a record. `wording` makes sentences of
them; nothing else may, and no decision is taken from those sentences.
"""

from __future__ import annotations

import enum

import msgspec

from streamgauge.checkpoint.reader.sources import SourceKind
from streamgauge.checkpoint.reader.state_files import LiveFileUnknown, NoSnapshotFound

from .failures import Failure


class Doubt(enum.Enum):
    """What the files do not tell, and no data goes with it."""

    OUTPUT_MODE = enum.auto()
    EARLIER_RUN = enum.auto()
    OUTPUT_LOG = enum.auto()


class FileNotRead(msgspec.Struct, frozen=True):
    """A file that decides the start was not read; `error` is what the store said."""

    file: str
    error: str


class SchemaElsewhere(msgspec.Struct, frozen=True):
    """The operators name a schema file that is not of this checkpoint: it was moved or copied."""

    path: str


class FilesNotOpened(msgspec.Struct, frozen=True):
    """More state files than are opened; the first `opened` were."""

    opened: int


class SinkUnknown(msgspec.Struct, frozen=True):
    """A batch runs again, and nobody said what the sink is."""

    batch: int | None


StateDoubt = LiveFileUnknown | NoSnapshotFound | FilesNotOpened
Unknown = Doubt | FileNotRead | SchemaElsewhere | SinkUnknown | StateDoubt


class Note(enum.Enum):
    """What a person should know of a start, and no data goes with it."""

    NEW_QUERY_ID = enum.auto()
    STATE_LEFT = enum.auto()
    READS_EVERYTHING = enum.auto()
    FAILS_WITHOUT_SCHEMA = enum.auto()
    TWO_APPLICATIONS = enum.auto()
    ACTIVE_RUN_STOPS = enum.auto()


class BatchesTakenForDone(msgspec.Struct, frozen=True):
    """Batches without a commit that Spark never looks at; the last planned one follows them."""

    first: int
    last: int


class SourceGoesBack(msgspec.Struct, frozen=True):
    """A source without an offset in the last batch: it goes on from the batch before."""

    source: str
    batch: int


AnyNote = Note | BatchesTakenForDone | SourceGoesBack


class FirstStart(msgspec.Struct, frozen=True):
    """Nothing ran before."""


class LostIdentity(msgspec.Struct, frozen=True):
    """A new query id: a sink that remembers batches by query does not know those of the old one."""

    sink: str = "delta"


class BatchesSkipped(msgspec.Struct, frozen=True):
    """The file sink's log is ahead: it takes these new batches for old ones."""

    first: int
    last: int


class BatchAgain(msgspec.Struct, frozen=True):
    """A batch that may have been written already; `skipped` when the sink knows it."""

    batch: int | None
    sink: str
    skipped: bool


Cause = Failure | Unknown | AnyNote | FirstStart | LostIdentity | BatchesSkipped | BatchAgain


class Premise(enum.Enum):
    """What a forecast takes for granted, and no data goes with it."""

    NO_STATEFUL_OPERATOR = enum.auto()
    OPERATORS_MEAN_THE_SAME = enum.auto()
    ASYNC_AGAIN = enum.auto()
    CONTINUOUS_AGAIN = enum.auto()


class SourceServes(msgspec.Struct, frozen=True):
    """A source can still give what the replayed batch reads."""

    source: str
    kind: SourceKind


class SameSources(msgspec.Struct, frozen=True):
    """The code still has this many sources, in this order."""

    count: int


Assumption = Premise | SourceServes | SameSources


class SinkEffect(enum.Enum):
    """What the sink does with the first batch, where that is more than writing it once."""

    AS_ON_REPLAY = enum.auto()
    WRITTEN_NOW = enum.auto()
