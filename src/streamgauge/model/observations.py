"""What polling between events finds: frozen records, no Spark in them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from .sources.broker_offsets import BrokerOffsets
from .sources.waiting import Waiting


class Word(str, Enum):
    """A word of a fixed set: equal to its value, and written as its value everywhere."""

    __str__ = str.__str__  # the default of an enum differs between Python's versions


class Phase(Word):
    """What a query was doing, from Spark's own status message."""

    WAITING_FOR_DATA = "waiting_for_data"
    WAITING_FOR_TRIGGER = "waiting_for_trigger"
    OFFSETS = "offsets"  # asks the sources for their newest offsets
    PROCESSING = "processing"
    EPOCHS = "epochs"  # continuous processing
    OTHER = "other"


class UnseenCause(Word):
    """What keeps the agent from seeing its queries."""

    SERVER_GONE = "server_gone"
    NETWORK_CUT = "network_cut"
    SESSION_DEAD = "session_dead"
    LISTENER_CLEARED = "listener_cleared"
    LISTENER_REMOVED = "listener_removed"
    JVM_SILENT = "jvm_silent"
    JVM_REFUSES = "jvm_refuses"

    @property
    def sentence(self) -> str:
        """The cause for people to read, without what changes from poll to poll."""
        return _UNSEEN_SENTENCES[self]


_UNSEEN_SENTENCES = {
    UnseenCause.SERVER_GONE: "the Connect server is gone: nothing answers at its address",
    UnseenCause.NETWORK_CUT: "the Connect server does not answer",
    UnseenCause.SESSION_DEAD: "its Connect session is dead; the application needs a new one",
    UnseenCause.LISTENER_CLEARED: "Connect has cleared this session's listeners",
    UnseenCause.LISTENER_REMOVED: "the listener was removed from this query's session",
    UnseenCause.JVM_SILENT: "the JVM of the driver does not answer",
    UnseenCause.JVM_REFUSES: "the JVM of the driver refuses connections",
}


class GoneCause(Word):
    """How it is known that a run is over, although no Terminated event came."""

    INACTIVE = "inactive"
    APPLICATION_STOPPED = "application_stopped"
    SESSION_STOPPED = "session_stopped"
    SESSION_DIED = "session_died"
    PROCESS_ENDED = "process_ended"
    PROCESS_TERMINATED = "process_terminated"
    JVM_GONE = "jvm_gone"

    @property
    def sentence(self) -> str:
        """The cause for people to read."""
        return _GONE_SENTENCES[self]


_GONE_SENTENCES = {
    GoneCause.INACTIVE: "it is not active any more, and no Terminated event came",
    GoneCause.APPLICATION_STOPPED: "the Spark application was stopped",
    GoneCause.SESSION_STOPPED: "the application stopped its Connect session",
    GoneCause.SESSION_DIED: "its Connect session died; the application has a new one",
    GoneCause.PROCESS_ENDED: "the process ended",
    GoneCause.PROCESS_TERMINATED: "the process was told to end by SIGTERM",
    GoneCause.JVM_GONE: "the JVM of the driver is gone: connection refused",
}


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
    watermark_delay: float | None = None  # seconds, the largest in the plan


class Tasks(Struct, frozen=True, kw_only=True):
    """Tasks of the jobs of one batch."""

    running: int
    completed: int
    failed: int
    jobs: int = 0  # that the batch has begun
    failed_jobs: int = 0


class QueryStatus(Struct, frozen=True, kw_only=True):
    """One query at one moment."""

    query_id: str
    run_id: str
    at: float
    trigger_active: bool
    data_available: bool
    phase: Phase
    batch_id: int | None = None  # the batch that runs, or will run next
    trigger_started_at: float | None = (
        None  # as Spark says, by its wall clock: tells triggers apart
    )
    clock_offset: float = 0.0  # what that clock is ahead of the steady one
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
    cause: UnseenCause
    why: str  # the cause for people to read, with its details


class Gone(Struct, frozen=True, kw_only=True):
    """A run that is over although nobody said so."""

    query_id: str
    run_id: str
    at: float
    why: str  # the cause for people to read
    cause: GoneCause | None = None  # None: not one of ours
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
