"""What is known of one query at one moment: an immutable record, replaced whole.

Pure; any thread may hold on to one. The `Fleet` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .events import Progress
from .lag import SourceLag
from .observations import (
    CheckpointNames,
    GoneCause,
    PlannedBatch,
    QueryStatus,
    RunDetails,
    TableVersion,
    Unseen,
)

EVENTS_MISSING = "events of its batches do not arrive"


class Backlog(Struct, frozen=True):
    """What one source has not processed yet."""

    source: str  # its label
    unit: str  # rows, files, bytes or versions
    amount: float


class Moment(Struct, frozen=True, kw_only=True):
    """How far behind a query was after one of its batches."""

    at: float
    rows: int | None
    backlog: float | None  # rows over all sources; unknown when one of them is
    backlogs: tuple[Backlog, ...] = ()  # of each source, in each unit that is known
    complete: bool = True  # each source tells its backlog in some unit
    busy: float = 0.0  # seconds spent in batches, since the run began
    input_rate: float | None = None
    processed_rate: float | None = None


class Recovery(Struct, frozen=True, kw_only=True):
    """Signs of a query come again after a time without; the query is blind until they keep coming."""

    why: str  # what hid it, in words that don't change
    since: float  # the first of the signs
    signs: int = 1
    sight: bool = False  # it could not be reached at all, and now it can


class End(Struct, frozen=True, kw_only=True):
    """How a run ended."""

    at: float
    outcome: str  # stopped, failed, unknown
    gone: GoneCause | None = None  # how that is known, where no event said it
    why: str = ""
    error_class: str | None = None  # of the outermost exception
    cause_class: str | None = None  # of the innermost; None when that is the same, or unknown
    message: str = ""  # first line of the innermost, masked, at most 200 characters
    exception: str | None = None

    @property
    def clean(self) -> bool:
        """Whether somebody wanted this end: the query, its session or its application was stopped."""
        return self.outcome == "stopped" or (self.outcome == "unknown" and self.gone in _WANTED)


_WANTED = frozenset(
    {
        *(GoneCause.APPLICATION_STOPPED, GoneCause.SESSION_STOPPED),
        *(GoneCause.PROCESS_ENDED, GoneCause.PROCESS_TERMINATED),
    }
)


class Query(Struct, frozen=True, kw_only=True):
    """Everything known of one query at one moment. Times are those of the steady clock."""

    query_id: str
    run_id: str
    label: str  # value of the label `query`
    name: str | None = None
    first_seen_at: float
    last_event_at: float  # at receipt
    silence_floor: float
    watch_seconds: float = 5.0
    started_at: float | None = None
    starts: tuple[float, ...] = ()
    unclean_starts: tuple[float, ...] = ()  # the first, and those after an end that was not clean
    end: End | None = None
    last_end: End | None = None  # how the run before this one ended
    last_trigger: str = "unknown"  # of the run before this one: most likely this one's too
    replaced_query_id: str | None = None  # another query had this name before: a new checkpoint
    last_idle_at: float | None = None
    idle_trigger_at: float | None = None  # start of the trigger that was idle
    idle_since: float | None = None
    read_data: bool = False  # a batch of this run had something to read
    last: Progress | None = None
    committed: Progress | None = None  # the newest batch of any run
    backwards: bool = False  # a batch id below one that was committed before: an old checkpoint
    details: RunDetails | None = None
    location: str | None = None  # of its checkpoint, masked; known from an earlier run too
    planned: PlannedBatch | None = None  # of a failed run: planned, and not committed
    table_version: TableVersion | None = None  # that its last batch made, of a Delta table
    checkpoint: CheckpointNames | None = None
    status: QueryStatus | None = None
    unseen: Unseen | None = None  # what hides it, until an event or a look finds it again
    recovery: Recovery | None = None  # it was hidden, and is not long enough back
    first_batch: int | None = None  # the batch that the first look of this run found
    active_since: float | None = None
    data_since: float | None = None
    tasks_changed_at: float | None = None
    inactive_at: float | None = None
    waits_since: float | None = None  # since when each look found it waiting for its trigger
    ahead_since: float | None = None
    missed: int = 0
    counted_to: int = -1  # the newest batch that was seen or counted as missed, of any run
    lags: Mapping[str, SourceLag] = {}  # by the source's label; outlives the run
    moments: tuple[Moment, ...] = ()
    gaps: tuple[float, ...] = ()
    longest: tuple[tuple[int, float], ...] = ()  # (minute, longest batch in it), of the last hour
    longest_ever: float = 0.0  # longest batch that was seen, of any run

    @property
    def live(self) -> bool:
        """Whether the present run goes on, as far as we know."""
        return self.end is None

    @property
    def has_batch(self) -> bool:
        """Whether the present run has finished a batch."""
        return self.last is not None and self.last.run_id == self.run_id

    @property
    def did_nothing_new(self) -> bool:
        """Whether this run is known to have had nothing to read, from its start."""
        return self.started_at is not None and not self.read_data and not self.missed

    @property
    def trigger(self) -> str:
        """Kind of trigger: processing_time, available_now, once, continuous, real_time, unknown."""
        return self.details.trigger if self.details else self.last_trigger

    @property
    def by_itself_over(self) -> bool:
        """Whether it ends when all is read, and is meant to be started again and again."""
        return self.trigger in {"available_now", "once"}

    @property
    def continuous(self) -> bool:
        """Whether it runs without batches; its status tells where the trigger is not known."""
        epochs = self.status is not None and self.status.phase == "epochs"
        return self.trigger == "continuous" or epochs

    @property
    def trigger_seconds(self) -> float | None:
        """Trigger interval; 0 = as fast as possible; None when unknown or not periodic."""
        return self.details.trigger_seconds if self.details else None

    @property
    def batch_limit_seconds(self) -> float:
        """Longest batch of the last hour in which there were any: idling does not forget the pace."""
        return max((seconds for _, seconds in self.longest), default=0.0)

    def longest_batch(self, now: float) -> float | None:
        """Longest batch that ended in the last hour; None when none did."""
        oldest = int(now // 60) - 60
        return max((seconds for minute, seconds in self.longest if minute > oldest), default=None)

    @property
    def silence_budget(self) -> float:
        """How long this query may be silent before that is wrong, from its own pace.

        Where the interval is not known (Connect), it is as long as the longest wait for a trigger so
        far, the one that goes on included: who waits for a trigger is not silent, but not due.
        """
        interval = 0.0 if self.by_itself_over else self.trigger_seconds
        if interval is None:
            interval = max(*self.gaps, self.trigger_wait, 0.0)
        idle = self.details.idle_seconds if self.details else None
        return max(
            self.silence_floor,
            3 * interval + self.batch_limit_seconds + (10.0 if idle is None else idle),
        )

    @property
    def trigger_wait(self) -> float:
        """How long it has been seen to wait for its trigger."""
        look, since = self.status, self.waits_since
        return 0.0 if look is None or since is None else look.at - since

    def fresh_status(self, now: float) -> QueryStatus | None:
        """The last look, while it still tells of the present; a sick JVM does not let us look."""
        look = self.status
        fresh = look is not None and now - look.at <= 6 * self.watch_seconds + 30
        return look if fresh and self.unseen is None else None

    def inflight_since(self, now: float) -> float | None:
        """When the trigger that runs now began; None when none does, or when it can't be seen."""
        look = self.fresh_status(now)
        if not self.live or look is None or self.continuous:
            return None
        return self.active_since if look.trigger_active else None
