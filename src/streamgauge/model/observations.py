"""What a look at the driver between events finds: frozen records, no Spark in them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .sources.broker_offsets import BrokerOffsets
from .sources.waiting import Waiting


class RunDetails(Struct, frozen=True, kw_only=True):
    """How a run is configured; read once it has begun and again after its first batch."""

    query_id: str
    run_id: str
    name: str | None = None
    app_id: str | None = None
    spark_version: str | None = None
    checkpoint: str | None = None  # masked, and whole: cut, two of them could look like one
    trigger: str = "unknown"
    trigger_seconds: float | None = None  # 0: as fast as possible; None: unknown or not periodic
    idle_seconds: float | None = None
    output_mode: str | None = None
    sink: str | None = None
    state_provider: str | None = None


class Tasks(Struct, frozen=True, kw_only=True):
    """Tasks of the jobs of one batch."""

    running: int
    completed: int
    failed: int


class QueryStatus(Struct, frozen=True, kw_only=True):
    """One query at one moment."""

    query_id: str
    run_id: str
    at: float
    trigger_active: bool
    data_available: bool
    phase: str  # waiting_for_data, waiting_for_trigger, offsets, processing, epochs, other
    batch_id: int | None = None  # the batch that runs, or will run next
    trigger_started_at: float | None = None
    tasks: Tasks | None = None
    listening: bool | None = None  # is our listener on the bus of this query's session?


class CheckpointNames(Struct, frozen=True, kw_only=True):
    """The batches that a query's checkpoint holds, by the names of its files."""

    query_id: str
    run_id: str
    at: float
    offsets: tuple[int, ...]
    commits: tuple[int, ...]
    last_commit_at: float | None = None  # the newest commit file's own time
    state_bytes: float | None = None  # what state/ holds; asked for seldom, and only on demand


class SourceBacklog(Struct, frozen=True, kw_only=True):
    """What waits in the sources of a query that don't say it themselves."""

    query_id: str
    run_id: str
    until: float  # when it is too old to be shown
    waiting: Mapping[str, Waiting]  # by the source's label; absent: unknown


class Unseen(Struct, frozen=True, kw_only=True):
    """A query that can't be seen from here, though it may well go on."""

    query_id: str
    run_id: str
    at: float
    cause: str  # server_gone, network_cut, session_dead, listener_cleared, listener_removed
    why: str


class Gone(Struct, frozen=True, kw_only=True):
    """A run that is over although nobody said so."""

    query_id: str
    run_id: str
    at: float
    why: str
    exception: str | None = None  # it did fail, and this is what Spark still knows of it
    error_class: str | None = None


class ApplicationStatus(Struct, frozen=True, kw_only=True):
    """The driver as a whole at one moment."""

    at: float
    app_name: str | None = None
    spark_version: str | None = None
    bus_dropped: int | None = None
    ui_url: str | None = None


class ApplicationStopping(Struct, frozen=True, kw_only=True):
    """The application is about to be stopped: what its live runs fail with from now on means nothing."""

    at: float


class PlannedBatch(Struct, frozen=True, kw_only=True):
    """The newest batch of a failed run's offset log, when it was not committed."""

    query_id: str
    run_id: str
    batch_id: int
    at: float | None = None  # when it was planned; None when that is unknown


class TableVersion(Struct, frozen=True, kw_only=True):
    """The version of a Delta table that one batch made."""

    query_id: str
    run_id: str
    batch_id: int
    version: int


Observation = (
    RunDetails
    | QueryStatus
    | CheckpointNames
    | SourceBacklog
    | BrokerOffsets
    | PlannedBatch
    | TableVersion
    | Unseen
    | Gone
    | ApplicationStatus
    | ApplicationStopping
)
