"""What the offsets of each kind of source mean: one reader a file, found by Spark's description.

To add one: a file with a `Reader` in it, and its name in `_READERS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamgauge.listener.kinds import class_name

from . import delta, file, kafka, rate, rate_micro_batch, unknown
from .reader import Reader

_READERS = (
    kafka.READER,
    file.READER,
    file.CLOUD_FILES,
    rate.READER,
    rate_micro_batch.READER,
    delta.READER,
    *unknown.NAMED,
)


def find_reader(description: str) -> Reader:
    """The reader for a source; one of an unknown source knows its class and nothing else."""
    for reader in _READERS:
        if description.startswith(reader.beginnings):
            return reader
    return Reader(kind=class_name(description), beginnings=())


def parse(offset: Any) -> Any:
    """An offset as JSON; some Spark versions give it as text, and null as the word."""
    if not isinstance(offset, str):
        return offset
    if offset in {"null", "None", ""}:
        return None
    try:
        return json.loads(offset)
    except (ValueError, RecursionError):
        return offset


def read_count(metrics: Mapping[str, Any], name: str) -> float | None:
    """A count that a source reports among its metrics, which are text."""
    try:
        number = float(metrics[name])
    except (KeyError, TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None
