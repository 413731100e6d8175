"""The flight recorder: the last events of each query on local disk, for whoever comes afterwards.

Off by default. A bounded file a query, readable by its owner only, masked. Only the worker calls it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from streamgauge.masking import mask_all

EVENTS = 200
_LONGEST = 256 * 1024


class FlightRecorder:
    """Appends events to `<directory>/<query>-<start of its id>.jsonl`, and keeps the last 200."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._lines: dict[Path, int] = {}

    def record(self, label: str, query_id: str, text: str) -> None:
        """Write one event as Spark sent it; one that is too long is left out."""
        if len(text) > _LONGEST:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        safe = re.sub(r"[^\w.\-]", "_", label)[:80]
        path = self._directory / f"{safe}-{query_id[:8]}.jsonl"
        line = json.dumps(mask_all(json.loads(text)))
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
            file.write(line + "\n")
        self._lines[path] = self._lines.get(path, EVENTS) + 1
        if self._lines[path] >= 2 * EVENTS:
            self._shorten(path)

    def _shorten(self, path: Path) -> None:
        """Keep the newest lines; whole or not at all."""
        kept = path.read_text(encoding="utf-8").splitlines()[-EVENTS:]
        part = path.with_suffix(".part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write("\n".join(kept) + "\n")
        part.replace(path)
        self._lines[path] = len(kept)
