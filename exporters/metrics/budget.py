"""How many series there may be."""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """How many series there may be. The worker alone writes it."""

    def __init__(self, limit: int, refuse: Callable[[], None]) -> None:
        self.limit = limit
        self.used = 0
        self._asked = 0
        self._refuse = refuse

    def admit(self, known: bool, series: int = 1) -> bool:
        """Whether so many series may be shown; new ones only within the budget."""
        if known:
            return True
        if self.used + self._asked + series > self.limit:
            self._refuse()
            return False
        self._asked += series
        return True

    def has_room(self, series: int) -> bool:
        """Whether so many more may be shown."""
        if self.used + series <= self.limit:
            return True
        self._refuse()
        return False

    def take(self, series: int) -> None:
        """Note what was really published; what was asked for is in it."""
        self._asked = 0
        self.used += series
