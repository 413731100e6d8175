"""Our listeners on the buses of a classic application: what a poll looks for to see that we still hear.

Java objects are compared by `is`: `==` would ask the JVM. Safe on any thread: both fields are replaced
whole.
"""

from __future__ import annotations

from typing import Any


class Registrations:
    """The Java listeners that Spark should have, and our own bus for all sessions."""

    def __init__(self) -> None:
        self._listeners: tuple[Any, ...] = ()
        self._bus: Any = None

    def listeners(self) -> tuple[Any, ...]:
        """The Java objects of our listeners."""
        return self._listeners

    def bus(self) -> Any:
        """Our own bus, on which every session is heard; None when there is none."""
        return self._bus

    def has(self, java: Any) -> bool:
        """Whether this Java object is looked for on the buses."""
        return any(one is java for one in self._listeners)

    def add(self, java: Any) -> None:
        """Look for it from now on."""
        if not self.has(java):
            self._listeners = (*self._listeners, java)

    def remove(self, java: Any) -> None:
        """Look for it no more; the last one stays, so that a poll finds that it is gone."""
        if len(self._listeners) > 1:
            self._listeners = tuple(one for one in self._listeners if one is not java)

    def add_bus(self, bus: Any) -> None:
        """Know a bus on which a listener hears every session."""
        self._bus = bus

    def clear(self) -> None:
        """The application has ended, and its buses with it."""
        self._listeners, self._bus = (), None
