"""The verdict that was last told of each query, so that a change is told once. Safe on any thread."""

from __future__ import annotations

import threading

from .verdict import Verdict


class VerdictLog:
    """Verdicts by the label of the query. The worker records them; the watchdog when that is stuck."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, Verdict] = {}

    def record(self, label: str, verdict: Verdict) -> Verdict | None:
        """Note a verdict; return the one before it, None for a query that is new here.

        Of a state that goes on the first verdict is kept: its reason is why the state began.
        """
        with self._lock:
            before = self._last.get(label)
            if before is None or before.state != verdict.state:
                self._last[label] = verdict
            return before

    def forget(self, label: str) -> None:
        """Let go of a query that has left the fleet."""
        with self._lock:
            self._last.pop(label, None)
