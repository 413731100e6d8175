"""What the offsets of each kind of source mean: one reader a file, found by Spark's description.

To add one: a file with a `Reader` in it, and its name in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from streamgauge.model.kinds import class_name

from . import delta, file, kafka, python, rate, rate_micro_batch, unknown
from .marks import Marks
from .reader import Reader

_READERS = (
    kafka.READER,
    file.READER,
    file.CLOUD_FILES,
    rate.READER,
    rate_micro_batch.READER,
    delta.READER,
    python.READER,
    *unknown.NAMED,
)
_LONGEST_CHARACTERS = 64 * 1024  # characters of an offset that is worth remembering


def find_reader(description: str) -> Reader:
    """The reader for a source; one of an unknown source knows its class and nothing else."""
    for reader in _READERS:
        if description.startswith(reader.beginnings):
            return reader
    return Reader(kind=class_name(description), beginnings=())


class Offset(NamedTuple):
    """An offset, understood."""

    marks: Marks | None
    version: int | None


_NOTHING = Offset(None, None)


def parse(text: str | None) -> Any:
    """An offset as JSON; else its text."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def read_offset(reader: Reader, text: str | None) -> Offset:
    """An offset of this kind of source; what can't be told is None."""
    if text is None:
        return _NOTHING
    return (
        _read(reader, text) if len(text) <= _LONGEST_CHARACTERS else _read.__wrapped__(reader, text)
    )


@lru_cache(maxsize=256)
def _read(reader: Reader, text: str) -> Offset:
    """Remembered: a batch begins where the last one ended, and mostly ends at the latest offset."""
    offset = parse(text)
    return Offset(reader.marks(offset), reader.version(offset))


def read_count(metrics: Mapping[str, Any], name: str) -> float | None:
    """A count that a source reports among its metrics, which are text."""
    try:
        number = float(metrics[name])
    except (KeyError, TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None
