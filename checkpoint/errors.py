"""What can go wrong while looking at a checkpoint. Three errors, one root."""

from __future__ import annotations


class CheckpointError(Exception):
    """Root of everything this package raises on purpose."""


class CannotLookError(CheckpointError):
    """The place can't be read at all: not there, no rights, or an extra is not installed."""


class MissingFileError(CheckpointError):
    """A file that was asked for is not there (any more: a live checkpoint moves)."""


class RefusedError(CheckpointError):
    """A file that this package will not open: outside the root, too large, or not a plain file."""
