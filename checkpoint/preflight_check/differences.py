"""Differences between new code and a checkpoint, as values. No sentences here."""

from __future__ import annotations

import enum

import msgspec

from streamgauge.checkpoint.restart.forecast import Override


class Untold(enum.Enum):
    """What the description leaves out, and the checkpoint has."""

    SOURCES = enum.auto()
    OPERATORS = enum.auto()


class SourceCount(msgspec.Struct, frozen=True):
    """Another number of sources; `by_name`: Spark matches them by name, not by position."""

    before: int
    now: int
    by_name: bool = False


class KindChange(msgspec.Struct, frozen=True):
    """A source of another kind; `before` holds every kind that the offset may be of."""

    source: str
    before: tuple[str, ...]
    now: str


class PlaceUnknown(msgspec.Struct, frozen=True):
    """The old or the new folder of a file source is not known."""

    source: str


class PlaceChange(msgspec.Struct, frozen=True):
    """A file source's folder that does not hold a file of the last batch."""

    source: str
    folder: str
    outside: str


class TopicsUnknown(msgspec.Struct, frozen=True):
    """A Kafka source whose topics are not a plain list."""

    source: str


class TopicsDropped(msgspec.Struct, frozen=True):
    """Topics that are no longer subscribed."""

    source: str
    topics: tuple[str, ...]


class TopicsAdded(msgspec.Struct, frozen=True):
    """New topics, which start from their beginning."""

    source: str
    topics: tuple[str, ...]


class OperatorNames(msgspec.Struct, frozen=True):
    """Other stateful operators, by name."""

    before: tuple[str, ...]
    now: tuple[str, ...]


class OperatorCount(msgspec.Struct, frozen=True):
    """Another number of stateful operators, where the checkpoint has no names."""

    before: int
    now: int


class KeyTypesUnknown(msgspec.Struct, frozen=True):
    """The description does not give the types of an operator's key."""

    operator: str


class TypesChange(msgspec.Struct, frozen=True):
    """Other types in the key or value (`part`) of an operator's state."""

    part: str
    operator: str
    before: tuple[str, ...]
    now: tuple[str, ...]


class NamesChange(msgspec.Struct, frozen=True):
    """Other names and the same types: a rename, or another meaning."""

    part: str
    operator: str
    before: tuple[str, ...]
    now: tuple[str | None, ...]


class SinkNamed(msgspec.Struct, frozen=True):
    """The sink of the new code; Spark does not compare sinks."""

    sink: str
    output_mode: str | None


Difference = (
    Untold
    | SourceCount
    | KindChange
    | PlaceUnknown
    | PlaceChange
    | TopicsUnknown
    | TopicsDropped
    | TopicsAdded
    | OperatorNames
    | OperatorCount
    | KeyTypesUnknown
    | TypesChange
    | NamesChange
    | SinkNamed
    | Override
)
