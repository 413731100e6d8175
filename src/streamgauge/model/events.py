"""Spark's four events as frozen records.

Past here there is no camelCase and no Spark version. What Spark did not say is None: unknown, never
0. Times are seconds since the epoch, durations are seconds, texts are masked.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .sources.marks import Marks


class Source(Struct, frozen=True, kw_only=True):
    """One source of a batch."""

    label: str  # index and kind, such as "0-kafka"
    kind: str
    description: str
    start: str | None  # offsets as Spark wrote them: JSON, or a text of the source's own
    end: str | None
    latest: str | None
    moved: bool  # the end is not the start
    rows: int | None
    input_rate: float | None
    processed_rate: float | None
    began: Marks | None  # start, end and latest by partition, where offsets count rows
    reached: Marks | None
    available: Marks | None
    backlog: float | None  # rows from the end to the latest
    fixed: bool  # reads the partitions that it names, and no others
    files: float | None  # what waits, where the source reports it
    bytes: float | None
    versions: float | None
    version: int | None  # of a table, the newest that was begun
    metrics: Mapping[str, str]


class Operator(Struct, frozen=True, kw_only=True):
    """One stateful operator of a batch."""

    label: str  # index and name, such as "0-stateStoreSave": Spark gives no id
    name: str
    rows: int | None
    memory: int | None
    instances: int | None
    partitions: int | None
    updated: int | None
    removed: int | None
    dropped: int | None
    commit_seconds: float | None
    update_seconds: float | None
    removal_seconds: float | None
    custom: Mapping[str, float]
    snapshot_versions: Mapping[str, int]  # of the stores that lag most; not of all


class Sink(Struct, frozen=True, kw_only=True):
    """The sink of a batch."""

    kind: str
    description: str
    rows: int | None


class Started(Struct, frozen=True, kw_only=True):
    """A run of a query began."""

    query_id: str
    run_id: str
    name: str | None
    at: float | None


class Progress(Struct, frozen=True, kw_only=True):
    """A batch of a query ended well (or, from `lastProgress`, a trigger found nothing to do)."""

    query_id: str
    run_id: str
    name: str | None
    at: float  # start of the trigger
    batch_id: int
    seconds: float | None  # the whole trigger
    input_rows: int | None
    input_rate: float | None
    processed_rate: float | None
    phases: Mapping[str, float]
    watermark: float | None
    event_min: float | None
    event_avg: float | None
    event_max: float | None
    operators: tuple[Operator, ...]
    sources: tuple[Source, ...]
    sink: Sink
    observed: Mapping[str, Mapping[str, float]]
    has_data: bool  # some source's end offset differs from its start
    replayed: bool  # run again from the offset log after a restart

    @property
    def ended_at(self) -> float:
        """When the trigger ended, which is when its commit was on disk."""
        return self.at + (self.seconds or 0.0)

    @property
    def lag(self) -> float | None:
        """Seconds from the newest event time in the batch to its commit; unknown without a watermark."""
        return None if self.event_max is None else self.ended_at - self.event_max

    @property
    def backlog(self) -> float | None:
        """Rows behind over all sources; unknown when one of them is."""
        known = [source.backlog for source in self.sources]
        return None if not known or None in known else sum(b for b in known if b is not None)


class Idle(Struct, frozen=True, kw_only=True):
    """A trigger found nothing to do."""

    query_id: str
    run_id: str
    at: float | None


class Terminated(Struct, frozen=True, kw_only=True):
    """A run of a query ended."""

    query_id: str
    run_id: str
    exception: str | None
    error_class: str | None


Event = Started | Progress | Idle | Terminated


def kind_of(event: Event) -> str:
    """Name of an event's kind, as it is counted: started, progress, idle, terminated."""
    return type(event).__name__.lower()
