"""What a listener needs of the process's agent: the seam between Spark's side and the composition."""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol

from .inbox import Inbox
from .registrations import Registrations


class SparkKind(Enum):
    """How the application reaches Spark; decided before anything that polls is built."""

    CLASSIC = "classic"
    CONNECT = "connect"


class Host(Protocol):
    """The agent, as a listener sees it. Safe on any thread; nothing raises."""

    @property
    def kind(self) -> SparkKind:
        """The kind of Spark that it was made for."""

    @property
    def inbox(self) -> Inbox:
        """Where events go."""

    @property
    def registrations(self) -> Registrations:
        """Our listeners on Spark's buses."""

    @property
    def closed(self) -> bool:
        """Whether the agent has ended."""

    def follow(self, stoppable: Any, listener: Any, *, everywhere: bool = False) -> None:
        """See a context or Connect session through to its end, and the application to its next one."""
