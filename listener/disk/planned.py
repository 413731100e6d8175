"""The batch that a checkpoint on this host has planned and not committed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .bounded import read_bounded

READ_SECONDS = 0.5  # a mount that hangs must not hold up the worker


class Planned(NamedTuple):
    """The newest batch of an offset log, when it was not committed."""

    batch_id: int
    at: float  # when it was planned


def read_planned(checkpoint: Path) -> Planned | None:
    """The newest batch that was planned and not committed.

    None when there is none, or it can't be read, or not within half a second.
    """
    found = read_bounded(lambda: _read(checkpoint), READ_SECONDS)
    return found[0] if found else None


def _read(checkpoint: Path) -> Planned | None:
    planned = _newest(file.name for file in (checkpoint / "offsets").iterdir())
    committed = _newest(file.name for file in (checkpoint / "commits").iterdir())
    if planned <= committed:
        return None
    return Planned(planned, (checkpoint / "offsets" / str(planned)).stat().st_mtime)


def _newest(names: Iterable[str]) -> int:
    return max((int(name) for name in names if name.isdecimal()), default=-1)
