"""The words of `query_reason_info`: why a query is in its state. Any thread."""

from __future__ import annotations

import threading

from streamgauge.model.causes import one_line
from streamgauge.model.query import Query
from streamgauge.model.verdict import Verdict

_EXPLAINED = frozenset({"falling_behind", "stalled", "restarting", "failed", "blind"})


class ReasonWords:
    """Keeps the words with which a query's state began.

    A reason has ages and counts in it. As a label, each scrape's words would be a series of their own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered: tuple[str, str] | None = None  # run id and state
        self._words = ""

    def of(self, query: Query, verdict: Verdict) -> str | None:
        """The words to show now, masked and bounded; None where the state needs none."""
        unknown_end = query.end is not None and query.end.outcome == "unknown"
        explained = verdict.state in _EXPLAINED or unknown_end
        state = (query.run_id, verdict.state) if explained else None
        with self._lock:
            if state != self._entered:
                self._entered, self._words = state, one_line(verdict.reason)
            return self._words if explained else None
