"""What the agent knows of itself: counted here, shown by the exporters. Safe on any thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping


class Stats:
    """Counts by (what, which), such as ("errors", "prometheus")."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, what: str, which: str = "", by: float = 1) -> None:
        """Add to one count."""
        with self._lock:
            self._counts[what, which] += by  # type: ignore[assignment]

    def of(self, what: str) -> Mapping[str, float]:
        """All counts of one thing, by which."""
        with self._lock:
            return {which: n for (name, which), n in self._counts.items() if name == what}
