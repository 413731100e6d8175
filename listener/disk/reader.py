"""What files on this host add to an event: read when it is taken in, for its trace."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.model.events import Event, Progress, Terminated
from streamgauge.model.local_path import find_local
from streamgauge.model.observations import Gone, Observation, PlannedBatch, TableVersion
from streamgauge.model.query import Query

from .delta_commits import DeltaCommits
from .planned import read_planned


class DiskReader:
    """Reads checkpoints and Delta tables on this host. The worker alone calls it.

    No read takes longer than half a second. A failure is passed to `failed`, and never raised.
    """

    def __init__(self, failed: Callable[[BaseException], None] = lambda _: None) -> None:
        self._failed = failed
        self._commits = DeltaCommits()

    def collect(self, cause: Event | Observation, query: Query | None) -> list[Observation]:
        """What can be read for an event, or for the loss of a run; `query` is as it is now."""
        try:
            if isinstance(cause, Progress):
                return self._read_version(cause)
            if isinstance(cause, Terminated | Gone) and cause.exception and query is not None:
                return _read_plan(query, cause.run_id)
        except Exception as error:  # noqa: BLE001 - no disk may cost an event
            self._failed(error)
        return []

    def _read_version(self, batch: Progress) -> list[Observation]:
        version = self._commits.find(batch)
        if version is None:
            return []
        return [
            TableVersion(
                query_id=batch.query_id,
                run_id=batch.run_id,
                batch_id=batch.batch_id,
                version=version,
            )
        ]


def _read_plan(query: Query, run_id: str) -> list[Observation]:
    if query.run_id != run_id:
        return []  # a late end of an older run: the next run is at work in the checkpoint
    checkpoint = find_local(query.location)
    planned = read_planned(checkpoint) if checkpoint is not None else None
    if planned is None:
        return []
    return [
        PlannedBatch(
            query_id=query.query_id, run_id=run_id, batch_id=planned.batch_id, at=planned.at
        )
    ]
