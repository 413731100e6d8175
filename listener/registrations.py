"""Our listeners on the buses of a classic application: what a poll looks for to see that we still hear.

Java objects are compared by `is`: `==` would ask the JVM. Safe on any thread: all fields are replaced
whole.
"""

from __future__ import annotations

from typing import Any, Protocol


class EventQueue(Protocol):
    """Events that wait in the JVM for a thread of ours; safe on any thread, and nothing raises."""

    @property
    def connected(self) -> bool:
        """Whether its JVM is still the one that PySpark uses."""

    def make_listener(self) -> Any:
        """A Java listener that fills it."""

    def listen(self) -> None:
        """A listener goes on a bus: pass events on."""

    def drain(self, seconds: float) -> bool:
        """Wait until the events in it are in the inbox; whether they are, in that time."""


class Registrations:
    """The Java listeners that Spark should have, and our own bus for all sessions."""

    def __init__(self) -> None:
        self._listeners: tuple[Any, ...] = ()
        self._bus: Any = None
        self.queue: EventQueue | None = None  # None on a bridge that calls Python

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

    def is_disconnected(self) -> bool:
        """Whether our listeners are in a JVM that PySpark no longer uses."""
        return self.queue is not None and not self.queue.connected

    def listen(self) -> None:
        """A listener goes on a bus: what it hears is passed on from now."""
        if self.queue is not None:
            self.queue.listen()

    def drain(self, seconds: float) -> bool:
        """Wait until what our listeners have heard is in the inbox; whether it is, in that time."""
        return self.queue is None or self.queue.drain(seconds)

    def clear(self) -> None:
        """The application has ended, and its buses with it."""
        self._listeners, self._bus = (), None
