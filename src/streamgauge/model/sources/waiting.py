"""What waits in a source that tells no latest offset, as far as its own names and log tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct


class Waiting(Struct, frozen=True, kw_only=True):
    """What was not read at one moment; what can't be told is None."""

    versions: int | None = None
    files: int | None = None
    bytes: int | None = None


class Place(NamedTuple):
    """Where a source of a running query reads, and where it keeps its own log."""

    path: str
    log: str  # its folder in the checkpoint
    options: str | None  # of such readers in the query, as one text in lower case


class File(NamedTuple):
    """One entry of a folder."""

    name: str
    folder: bool
    length: int
    modified: float  # seconds since the epoch


class Files(Protocol):
    """A file system that is only read; it raises when it can't be asked."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""

    def list(self, path: str) -> Sequence[File] | None:
        """A folder; None when it is not there, or holds more than is worth listing."""

    def read(self, path: str, most: int) -> str | None:
        """A file's text; None when it has more bytes than that."""
