"""The series of one source: what holds until something happens, and what depends on the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest

from streamgauge.masking import clean
from streamgauge.model.lag import SourceLag

LIVE = 3  # series that depend on the time: of a source that counts rows, or of one that doesn't
_LONGEST_TOPIC = 249  # characters, by Kafka's own rules


def gauges_of(lag: SourceLag, most: int) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Name, labels past the source's, and value; `most` partitions at most, -1: all."""
    latest = lag.history.marks if lag.history else None
    backlogs = lag.backlogs
    for name, value in (
        ("source_backlog_rows", lag.backlog),
        ("source_backlog_files", lag.files),
        ("source_backlog_bytes", lag.bytes),
        ("source_backlog_versions", lag.versions),
        ("source_partition_backlog_max_rows", max(backlogs.values) if backlogs else None),
        ("source_partitions", len(latest.values) if latest else None),
        ("source_partitions_stalled", lag.stalled),
        ("source_rate_limited", lag.limited),
    ):
        if value is not None:
            yield name, (), float(value)
    for kind, marks in (("start", lag.start), ("end", lag.end), ("latest", latest)):
        if marks is not None:
            yield "source_offset", (kind,), float(marks.total)
    if backlogs is None or not most:
        return
    keys, rows = backlogs.frame.keys, backlogs.values
    shown: Iterable[int] = range(len(rows))
    if 0 < most < len(rows):
        shown = nlargest(most, shown, key=rows.__getitem__)
    for index in shown:
        topic, partition = keys[index]
        labels = (clean(topic)[:_LONGEST_TOPIC], partition)
        yield "source_partition_backlog_rows", labels, float(rows[index])


def counters_of(lag: SourceLag) -> Iterator[tuple[str, float]]:
    """What was counted of a source whose offsets count rows, from the start."""
    if lag.end is None:
        return
    yield "source_partitions_added_total", lag.added
    yield "source_partitions_removed_total", lag.removed
    yield "source_offset_resets_total", lag.resets
    if lag.lost is not None:
        yield "source_rows_lost_total", lag.lost


def live_of(lag: SourceLag, now: float) -> Iterator[tuple[str, float]]:
    """What depends on the time."""
    for name, seconds in (
        ("source_lag_seconds", lag.seconds(now)),
        ("source_drain_seconds", lag.drain(now)),
        ("source_retention_headroom_seconds", lag.headroom(now)),
    ):
        if seconds is not None:
            yield name, seconds
    waiting = lag.waiting if now < lag.waiting_until else None
    if waiting is None:
        return
    for name, reported, seen in (
        ("source_backlog_files", lag.files, waiting.files),
        ("source_backlog_bytes", lag.bytes, waiting.bytes),
        ("source_backlog_versions", lag.versions, waiting.versions),
    ):
        if reported is None and seen is not None:
            yield name, float(seen)
