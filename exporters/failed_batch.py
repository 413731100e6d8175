"""Which batch it was that failed, and when it began: Spark sends no progress event for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from streamgauge.listener.events import Progress
from streamgauge.listener.looks import Sighting

_PATIENCE = 0.5  # a mount that hangs must not hold up the worker


class Traced(Struct):
    """What was seen of one run, for its traces. Written by the worker alone."""

    last: Progress | None = None
    look: Sighting | None = None
    active_since: float | None = None
    moments: tuple[float, ...] = ()  # ends of triggers, looks that found none: it began after these

    def see(self, moment: float | None) -> None:
        """Note a moment at which no batch was running."""
        if moment is not None:
            self.moments = (max((moment, *self.moments)),)


def find_failed(run: Traced, planned: int | None) -> int | None:
    """Number of the batch that failed; None when none had begun, as far as can be told.

    `planned` is the newest batch in the offset log without a commit.
    """
    seen = run.last.batch_id + 1 if run.last else None
    if planned is not None and (seen is None or planned >= seen):
        return planned
    look = run.look
    running = look.batch_id if look is not None and look.trigger_active else None
    return max((number for number in (seen, running) if number is not None), default=None)


def find_start(run: Traced, batch_id: int, end: float) -> tuple[float, bool]:
    """When the failed batch began, and whether that is an estimate."""
    look = run.look
    if look is not None and look.batch_id == batch_id and run.active_since is not None:
        return min(run.active_since, end), look.trigger_started_at is None
    return min(max(run.moments, default=end), end), True


def read_planned(checkpoint: str | None) -> int | None:
    """Number of the newest planned batch that was not committed, from a checkpoint on this host.

    None when there is none, or it can't be read, or not within half a second.
    """
    root = find_local(checkpoint)
    if root is None:
        return None
    found: list[int] = []
    reader = threading.Thread(target=_read, args=(root, found), daemon=True)
    reader.start()
    reader.join(_PATIENCE)
    return found[0] if found else None


def find_local(checkpoint: str | None) -> Path | None:
    """A path on this host, from `/a/b`, `file:/a/b` or `file:///a/b`; others need Hadoop."""
    if not checkpoint:
        return None
    path = checkpoint.removeprefix("file:")
    return Path("/" + path.lstrip("/")) if path.startswith("/") else None


def _read(root: Path, found: list[int]) -> None:
    try:
        planned = _newest(file.name for file in (root / "offsets").iterdir())
        committed = _newest(file.name for file in (root / "commits").iterdir())
    except OSError:
        return
    if planned > committed:
        found.append(planned)


def _newest(names: Iterable[str]) -> int:
    return max((int(name) for name in names if name.isdecimal()), default=-1)
