"""What can go wrong while a checkpoint is read: one tree of errors.

CheckpointError
├── CannotLookError      the place, or an input, can't be read at all
├── MissingFileError     a file is not there
├── RefusedError         a file that this package will not open
└── BadFileError         a file that can't be understood; `flaw` says how
"""

from __future__ import annotations

import enum

from streamgauge.errors import StreamgaugeError


class Flaw(enum.Enum):
    """How a file is wrong, as Spark's readers tell it apart."""

    MISSING = "missing"
    EMPTY = "empty"
    NO_METADATA = "has a version line and nothing else"
    BAD_VERSION = "has no version line"
    NEWER_VERSION = "is of a newer format"
    BAD_JSON = "holds broken JSON"
    BAD_LINE = "holds a line that can't be read"
    REFUSED = "was not opened"


class CheckpointError(StreamgaugeError):
    """Root of everything this package raises on purpose.

    `what` says what is wrong, `place` where (a file or a root), None when that is clear.
    """

    flaw = Flaw.REFUSED

    def __init__(self, what: str, *, place: str | None = None) -> None:
        super().__init__(what if place is None else f"{place}: {what}")
        self.what = what
        self.place = place


class CannotLookError(CheckpointError):
    """The place can't be read at all: not there, no rights, or an extra is not installed."""


class MissingFileError(CheckpointError):
    """A file that was asked for is not there (any more: a live checkpoint moves)."""

    flaw = Flaw.MISSING


class RefusedError(CheckpointError):
    """A file that this package will not open: outside the root, too large, or not a plain file."""


class BadFileError(CheckpointError):
    """A file of the checkpoint that can't be understood."""

    def __init__(self, flaw: Flaw, detail: str = "") -> None:
        super().__init__(f"{flaw.value}{': ' if detail else ''}{detail}")
        self.flaw = flaw
        self.detail = detail
