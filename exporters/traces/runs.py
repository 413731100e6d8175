"""Bookkeeping of the tracer: the runs that go on, and the newest root span of each run."""

from __future__ import annotations

from msgspec import Struct, field
from opentelemetry.trace import SpanContext

from streamgauge.model.query import Query
from streamgauge.model.update import TraceIds

from .failed_batch import SeenOfRun
from .ids import to_hex
from .pipeline import Key

_MOST_LATE_RUNS = 4  # runs of one query after which the end of an older one is not awaited any more
_MOST_ENDED_RUNS = 16  # whose ids are kept for their last log lines


class Run(SeenOfRun):
    """One run, and the spans that later ones point to."""

    query_id: str = ""
    pending: bool = False  # it began, and its start is not yet written
    start: SpanContext | None = None  # only what was sampled
    previous: SpanContext | None = None
    # batch id → its start, of batches that only a span `running` tells of so far
    overdue: dict[int, float] = field(default_factory=dict)

    @property
    def next_batch_id(self) -> int | None:
        """The batch after the last one that was seen; None before the first."""
        return self.last.batch_id + 1 if self.last else None


class Runs:
    """The runs that have not ended, by run id. The worker alone calls it."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def of(self, run_id: str, query: Query) -> Run:
        """The record of a run, made when there is none."""
        if run_id not in self._runs:
            self._runs[run_id] = Run(query_id=query.query_id)
        return self._runs[run_id]

    def end(self, run_id: str) -> Run:
        """Let go of a run; returns what was known of it."""
        return self._runs.pop(run_id, None) or Run()

    def find_lost(self, query_id: str) -> list[tuple[str, Run]]:
        """The runs of a query of which no end came, although others have followed."""
        runs = [(key, run) for key, run in self._runs.items() if run.query_id == query_id]
        return runs[:-_MOST_LATE_RUNS]


class _Root(Struct, frozen=True):
    key: Key
    context: SpanContext
    sampled: bool


class NewestRoots:
    """The newest root span of each run: what log lines and exemplars refer to."""

    def __init__(self) -> None:
        self._roots: dict[str, _Root] = {}  # by run id

    def remember(self, key: Key, context: SpanContext | None, *, sampled: bool) -> None:
        """Take a root for the newest of its run; None when its ids are unknown."""
        self._roots.pop(key[0], None)
        if context is not None:
            self._roots[key[0]] = _Root(key, context, sampled)

    def ids_of(self, run_id: str, batch_id: int | None = None) -> TraceIds | None:
        """Ids of the newest root of a run; `sampled` only when it is this very batch's."""
        root = self._roots.get(run_id)
        if root is None:
            return None
        ids = to_hex(root.context.trace_id, root.context.span_id)
        sampled = root.sampled and batch_id is not None and root.key[1] == batch_id
        return TraceIds(trace_id=ids.trace_id, span_id=ids.span_id, sampled=sampled)

    def forget(self, run_id: str) -> None:
        """Let go of a run's root."""
        self._roots.pop(run_id, None)

    def trim(self, runs: Runs) -> None:
        """Keep only the newest of the runs that have ended."""
        ended = [run_id for run_id in self._roots if run_id not in runs]
        for run_id in ended[:-_MOST_ENDED_RUNS]:
            del self._roots[run_id]
