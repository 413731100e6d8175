"""What a source itself says when it is polled apart from Spark: a frozen record, no client in it.

A poller puts one on the inbox, and the lag of every query that reads these topics is measured again, whether
it runs, hangs or has ended. A whole answer or none: a partition that is missing counts as gone.

An observation may be of the past: Kafka's offsets for a time are what `latest` was then. It lengthens the
agent's history, so that rows from before its start get an age.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Positions: TypeAlias = dict[
    tuple[str, str], int
]  # (topic, partition) → offset, where it counts rows


class BrokerOffsets(Struct, frozen=True, kw_only=True):
    """The ends of some topics at one moment."""

    kind: str  # "kafka"
    topics: frozenset[str]  # all that were asked for, also those that are not there
    earliest: Positions
    latest: Positions
    retention: dict[str, float]  # seconds by topic; absent: unknown or unlimited
    at: float  # seconds since the epoch: when the answer came, or the past time that it is about
