"""What a look at a source itself finds, asked apart from Spark: a frozen record, no client in it.

The seam of the probe: a timer puts one on the inbox (`Item("look", SourceLook(…), at)`), and every
query that reads these topics is measured anew, whether it runs, hangs or has ended.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Positions: TypeAlias = dict[
    tuple[str, str], int
]  # (topic, partition) → offset, where it counts rows


class SourceLook(Struct, frozen=True, kw_only=True):
    """The ends of some topics at one moment."""

    kind: str  # "kafka"
    topics: frozenset[str]  # all that were asked for, also those that are not there
    earliest: Positions
    latest: Positions
    retention: dict[str, float]  # seconds by topic; absent: unknown or unlimited
    at: float  # seconds since the epoch, when the answer came
