"""Which runs were seen, which have ended, and which were replaced before their end was heard of.

Bounded: a query that fails every second must not fill the memory. Only the `Fleet` uses it, in the
worker's thread.
"""

from __future__ import annotations

from collections.abc import Iterable

_RUNS_KEPT = 64
_ENDS_KEPT = 256
# How long the end of a run may come after the start of the next.
LATE_END_SECONDS = 60.0


class RunLog:
    """Newest batch per run, runs that ended, and runs that were replaced without an end."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}  # run id → newest batch id seen in it
        self._ended: dict[str, None] = {}
        self._replaced: dict[str, tuple[str, float]] = {}  # run id → query id, when replaced

    def knows(self, run_id: str) -> bool:
        """Whether the run was seen to begin or to commit a batch."""
        return run_id in self._newest

    def newest_batch(self, run_id: str) -> int | None:
        """The newest batch seen in a run; -1 before its first, None for an unknown run."""
        return self._newest.get(run_id)

    def has_ended(self, run_id: str) -> bool:
        """Whether the end of the run was seen."""
        return run_id in self._ended

    def note_batch(self, run_id: str, batch_id: int, live: Iterable[str]) -> None:
        """A run began (-1) or committed a batch; `live` are the runs that must be kept."""
        self._newest.pop(run_id, None)
        self._newest[run_id] = batch_id
        if len(self._newest) > _RUNS_KEPT:
            kept = set(live)
            for old in [r for r in self._newest if r not in kept][:-_RUNS_KEPT]:
                del self._newest[old]

    def note_replaced(self, run_id: str, query_id: str, now: float) -> None:
        """A new run of the query began before the end of this one was heard of."""
        self._replaced[run_id] = (query_id, now)
        for old in list(self._replaced)[:-_ENDS_KEPT]:
            del self._replaced[old]

    def note_end(self, run_id: str) -> None:
        """The run has ended."""
        self._replaced.pop(run_id, None)
        self._ended[run_id] = None
        for old in list(self._ended)[:-_ENDS_KEPT]:
            del self._ended[old]

    def overdue_end(self, query_id: str, now: float) -> tuple[str, float] | None:
        """A replaced run of this query whose end will not come any more, and when it was replaced."""
        for run_id, (owner, at) in self._replaced.items():
            if owner == query_id and now - at > LATE_END_SECONDS:
                return run_id, at
        return None
