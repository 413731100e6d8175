"""Which batch it was that failed, and when it began: Spark sends no progress event for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from streamgauge.model.events import Progress
from streamgauge.model.observations import CheckpointNames, QueryStatus

_PATIENCE = 0.5  # a mount that hangs must not hold up the worker
_RUN_BATCH = "runBatch"  # Spark's method, in the stack of whatever fails in a batch


class Planned(Struct, frozen=True):
    """The newest batch of an offset log, when it was not committed."""

    batch_id: int
    at: float | None = None  # when it was planned; None when that can't be told


class Traced(Struct):
    """What was seen of one run, for its traces. Written by the worker alone."""

    started_at: float | None = None
    last: Progress | None = None
    look: QueryStatus | None = None
    active_since: float | None = None
    moments: tuple[float, ...] = ()  # ends of triggers, looks that found none: it began after these

    def see(self, moment: float | None) -> None:
        """Note a moment at which no batch was running."""
        if moment is not None:
            self.moments = (max((moment, *self.moments)),)


def find_failed(run: Traced, planned: Planned | None, exception: str = "") -> int | None:
    """Number of the batch that failed; None when none had begun in this run, as far as can be told."""
    seen = run.last.batch_id + 1 if run.last else None
    look = run.look
    running = look.batch_id if look is not None and look.trigger_active else None
    known = max((number for number in (seen, running) if number is not None), default=None)
    if planned is None or (seen is not None and planned.batch_id < seen):
        return known
    begun = known is not None or _has_begun(run, planned, exception)
    return planned.batch_id if begun else None


def _has_begun(run: Traced, planned: Planned, exception: str) -> bool:
    """Whether this run got as far as the batch, which an earlier one may have planned."""
    if run.started_at is None:
        return True
    written = planned.at is not None and planned.at >= run.started_at
    return written or _RUN_BATCH in exception


def find_start(run: Traced, batch_id: int, end: float) -> tuple[float, bool]:
    """When the failed batch began, and whether that is an estimate."""
    look = run.look
    if look is not None and look.batch_id == batch_id and run.active_since is not None:
        return min(run.active_since, end), look.trigger_started_at is None
    return min(max(run.moments, default=end), end), True


def read_planned(checkpoint: str | None) -> Planned | None:
    """The newest planned batch that was not committed, from a checkpoint on this host.

    None when there is none, or it can't be read, or not within half a second.
    """
    root = find_local(checkpoint)
    if root is None:
        return None
    found: list[Planned] = []
    reader = threading.Thread(target=_read, args=(root, found), daemon=True)
    reader.start()
    reader.join(_PATIENCE)
    return found[0] if found else None


def recall_planned(look: CheckpointNames | None) -> Planned | None:
    """The same from the last look at a checkpoint that is not on this host."""
    if look is None or max(look.offsets, default=-1) <= max(look.commits, default=-1):
        return None
    return Planned(max(look.offsets))


def find_local(checkpoint: str | None) -> Path | None:
    """A path on this host, from `/a/b`, `file:/a/b` or `file:///a/b`; others need Hadoop."""
    if not checkpoint:
        return None
    path = checkpoint.removeprefix("file:")
    return Path("/" + path.lstrip("/")) if path.startswith("/") else None


def _read(root: Path, found: list[Planned]) -> None:
    try:
        planned = _newest(file.name for file in (root / "offsets").iterdir())
        committed = _newest(file.name for file in (root / "commits").iterdir())
        if planned > committed:
            at = (root / "offsets" / str(planned)).stat().st_mtime
            found.append(Planned(planned, at))
    except OSError:
        return


def _newest(names: Iterable[str]) -> int:
    return max((int(name) for name in names if name.isdecimal()), default=-1)
