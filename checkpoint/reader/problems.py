"""Files of a checkpoint that are not as they should be."""

from __future__ import annotations

import msgspec

from streamgauge.checkpoint.errors import CheckpointError, Flaw


class Problem(msgspec.Struct, frozen=True):
    """One file that could not be read. Code decides by `flaw`; `what` is for people."""

    file: str
    flaw: Flaw
    what: str


def problem_of(file: str, error: CheckpointError) -> Problem:
    """The problem that an error makes of a file."""
    return Problem(file, error.flaw, error.what)
