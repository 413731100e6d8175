"""Which version of a Delta table a batch made: neither Spark's event nor Delta tells, the table's log does.

Delta writes the query's id and the batch's number into the commit (`txn`), by which it also knows a
replayed batch. Only tables on this host are read, a few commits a batch, and never for long.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

import msgspec
from msgspec import Struct

from streamgauge.model.events import Progress

from .failed_batch import find_local

_SINK = re.compile(r"DeltaSink\[(.+)\]")
_PATIENCE = 0.3  # a mount that hangs must not hold up the worker, and is not asked again
_COMMITS = 20  # others write to the table too
_BEGINNING = 64 * 1024  # `txn` comes before the files
_TABLES = 64


class _Txn(Struct, rename="camel"):
    app_id: str = ""
    version: int = -1


class _Action(Struct):
    txn: _Txn | None = None


class DeltaCommits:
    """Remembers how far each table's log was read. The worker alone calls it."""

    def __init__(self) -> None:
        self._read: dict[str, int | None] = {}  # table → newest version that was looked at

    def find(self, batch: Progress) -> int | None:
        """The version that this batch made; None when it made none, or it can't be known."""
        named = _SINK.fullmatch(batch.sink.description)
        root = find_local(named[1]) if named else None
        if root is None:
            return None
        after = self._read.get(str(root), -1)
        if after is None or (len(self._read) >= _TABLES and str(root) not in self._read):
            return None
        log, found = root / "_delta_log", list[tuple[int, int | None]]()
        reader = threading.Thread(
            target=lambda: found.append(_search(log, after, batch)), daemon=True
        )
        reader.start()
        reader.join(_PATIENCE)
        self._read[str(root)], version = found[0] if found else (None, None)
        return version


def _search(log: Path, after: int, batch: Progress) -> tuple[int, int | None]:
    """Newest version there is, and the one of this batch, if it is among the last."""
    newest = _newest(log, after)
    for version in range(newest, max(-1, newest - _COMMITS), -1):
        if _made(log / f"{version:020d}.json", batch):
            return newest, version
    return newest, None


def _newest(log: Path, after: int) -> int:
    """One after the other from where we know of; the whole list only the first time."""
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
            lines = file.read(_BEGINNING).splitlines()
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
