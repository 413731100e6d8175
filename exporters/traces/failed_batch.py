"""Which batch it was that failed, and when it began: Spark sends no progress event for it. Pure."""

from __future__ import annotations

from msgspec import Struct

from streamgauge.model.events import Progress
from streamgauge.model.local_path import find_local
from streamgauge.model.observations import CheckpointNames, PlannedBatch, QueryStatus
from streamgauge.model.query import Query

_RUN_BATCH = "runBatch"  # Spark's method, in the stack of whatever fails in a batch


class SeenOfRun(Struct):
    """What was seen of one run, for its traces. Written by the worker alone."""

    started_at: float | None = None
    last: Progress | None = None
    status: QueryStatus | None = None
    active_since: float | None = None
    idle_at: float | None = None  # the newest moment at which no batch was running

    def see_idle(self, moment: float | None) -> None:
        """Note a moment at which no batch was running."""
        if moment is not None:
            self.idle_at = moment if self.idle_at is None else max(moment, self.idle_at)


def find_planned(query: Query, run_id: str) -> PlannedBatch | None:
    """What the checkpoint of a failed run had planned and not committed; None when that is unknown.

    On this host it was read at the run's end, elsewhere the last poll counts. When a next run has
    begun already, the checkpoint is that run's: unknown.
    """
    if query.run_id != run_id:
        return None
    if find_local(query.location) is None:
        return recall_planned(query.checkpoint)
    planned = query.planned
    return planned if planned is not None and planned.run_id == run_id else None


def recall_planned(names: CheckpointNames | None) -> PlannedBatch | None:
    """The batch that was planned and not committed when the checkpoint's names were last read."""
    if names is None or max(names.offsets, default=-1) <= max(names.commits, default=-1):
        return None
    return PlannedBatch(
        query_id=names.query_id, run_id=names.run_id, batch_id=max(names.offsets), at=None
    )


def find_failed(seen: SeenOfRun, planned: PlannedBatch | None, exception: str = "") -> int | None:
    """Number of the batch that failed; None when none had begun in this run, as far as is known."""
    following = seen.last.batch_id + 1 if seen.last else None
    status = seen.status
    running = status.batch_id if status is not None and status.trigger_active else None
    known = max((number for number in (following, running) if number is not None), default=None)
    if planned is None or (following is not None and planned.batch_id < following):
        return known
    begun = known is not None or _has_begun(seen, planned, exception)
    return planned.batch_id if begun else None


def _has_begun(seen: SeenOfRun, planned: PlannedBatch, exception: str) -> bool:
    """Whether this run got as far as the batch, which an earlier one may have planned."""
    if seen.started_at is None:
        return True
    written = planned.at is not None and planned.at >= seen.started_at
    return written or _RUN_BATCH in exception


def find_start(seen: SeenOfRun, batch_id: int, end: float) -> tuple[float, bool]:
    """When the failed batch began, and whether that is an estimate."""
    status = seen.status
    if status is not None and status.batch_id == batch_id and seen.active_since is not None:
        return min(seen.active_since, end), status.trigger_started_at is None
    return min(end if seen.idle_at is None else seen.idle_at, end), True
