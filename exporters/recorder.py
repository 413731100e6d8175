"""The flight recorder: the last events of each query on local disk, for whoever comes afterwards.

Off by default. One bounded file per query and a bounded number of files, readable by their owner only,
masked. Only the worker calls it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import IO

from streamgauge.masking import mask_all

MOST_EVENTS = 200
MOST_FILES = 200
_MOST_EVENT_CHARACTERS = 256 * 1024
_OURS = re.compile(r".-[0-9a-f]{8}\.jsonl")


class FlightRecorder:
    """Appends events to `<directory>/<query>-<start of its id>.jsonl`, and keeps the last 200."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._lines: dict[Path, int] = {}

    def record(self, label: str, query_id: str, text: str) -> None:
        """Write one event as Spark sent it; one that is too long is left out."""
        if len(text) > _MOST_EVENT_CHARACTERS:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        safe = re.sub(r"[^\w.\-]", "_", label)[:80]
        path = self._directory / f"{safe}-{query_id[:8]}.jsonl"
        line = json.dumps(mask_all(json.loads(text)))
        with open_private(path, os.O_APPEND) as file:
            file.write(line + "\n")
        if path not in self._lines:
            self._remove_oldest()
        self._lines[path] = self._lines.get(path, MOST_EVENTS) + 1
        if self._lines[path] >= 2 * MOST_EVENTS:
            self._shorten(path)

    def _shorten(self, path: Path) -> None:
        """Keep the newest lines; whole or not at all."""
        kept = path.read_text(encoding="utf-8").splitlines()[-MOST_EVENTS:]
        part = path.with_suffix(".part")
        with open_private(part, os.O_TRUNC) as file:
            file.write("\n".join(kept) + "\n")
        part.replace(path)
        self._lines[path] = len(kept)

    def _remove_oldest(self) -> None:
        """Make room for a new query: those that wrote last longest ago go, whichever run they are of."""
        ours = [each for each in self._directory.iterdir() if _OURS.search(each.name)]
        ours.sort(key=lambda path: path.lstat().st_mtime_ns, reverse=True)
        for path in ours[MOST_FILES:]:
            path.unlink(missing_ok=True)
            self._lines.pop(path, None)


def open_private(path: Path, how: int) -> IO[str]:
    """Open a file to write that is its owner's alone, also when it was there.

    A link is refused, and so is a pipe, which would hold us until somebody reads.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | how
    file = os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8")
    os.fchmod(file.fileno(), 0o600)
    return file
