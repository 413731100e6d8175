"""Which version of a Delta table a batch made: neither Spark's event nor Delta says, the table's log does.

Delta writes the query's id and the batch's number into the commit (`txn`), by which it also detects a
replayed batch. Only tables on this host are read, a few commits per batch, and never for long.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from msgspec import Struct

from streamgauge.model.events import Progress
from streamgauge.model.local_path import find_local

from .bounded import read_bounded

_SINK = re.compile(r"DeltaSink\[(.+)\]")
READ_SECONDS = 0.3  # a mount that hangs must not hold up the worker, and is not asked again
_MOST_COMMITS = 20  # others write to the table too
_READ_BYTES = 64 * 1024  # `txn` comes before the files
_MOST_TABLES = 64


class _Txn(Struct, rename="camel"):
    app_id: str = ""
    version: int = -1


class _Action(Struct):
    txn: _Txn | None = None


class DeltaCommits:
    """Remembers how far each table's log was read. The worker alone calls it."""

    def __init__(self) -> None:
        # table → newest version that was found; None: it hung, and is not asked again
        self._read: dict[str, int | None] = {}

    def find(self, batch: Progress) -> int | None:
        """The version that this batch made; None when it made none, or that is unknown."""
        named = _SINK.fullmatch(batch.sink.description)
        table = find_local(named[1]) if named else None
        if table is None:
            return None
        after = self._read.get(str(table), -1)
        if after is None or (len(self._read) >= _MOST_TABLES and str(table) not in self._read):
            return None
        found = read_bounded(lambda: _search(table / "_delta_log", after, batch), READ_SECONDS)
        self._read[str(table)], version = found[0] if found else (None, None)
        return version


def _search(log: Path, after: int, batch: Progress) -> tuple[int, int | None]:
    """Newest version there is, and the one of this batch, if it is among the last."""
    newest = _newest(log, after)
    for version in range(newest, max(-1, newest - _MOST_COMMITS), -1):
        if _made(log / f"{version:020d}.json", batch):
            return newest, version
    return newest, None


def _newest(log: Path, after: int) -> int:
    """Step on from the version that is known; list the whole log only the first time."""
    try:
        if after < 0:
            names = (file.name.partition(".") for file in log.iterdir())
            after = max(
                (int(n) for n, _, end in names if n.isdecimal() and end == "json"), default=-1
            )
        while (log / f"{after + 1:020d}.json").exists():
            after += 1
    except OSError:
        return after
    return after


def _made(commit: Path, batch: Progress) -> bool:
    """Whether a commit is this batch's."""
    try:
        with commit.open("rb") as file:
            lines = file.read(_READ_BYTES).splitlines()
    except OSError:
        return False
    for line in lines:
        if line.startswith(b'{"txn"'):
            try:
                txn = msgspec.json.decode(line, type=_Action).txn
            except msgspec.DecodeError:
                return False
            if txn and txn.app_id == batch.query_id and txn.version == batch.batch_id:
                return True
    return False
