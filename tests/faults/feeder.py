"""What feeds the queries of the fault lab."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path


class Feeder(threading.Thread):
    """Writes a file of rows into the source's folder every so often."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.folder: Path | None = None
        self.other: Path | None = None  # of a join's second source, which gets the same rows
        self.closed = False
        self._number = 0
        self.reset()

    def reset(self) -> None:
        """As at the beginning of a fault: a file of twenty rows twice a second, all on time."""
        self.every = 0.5
        self.rows = 20
        self.paused = True
        self.future = 0.0  # seconds that event time is ahead
        self.frozen_at: float | None = None
        self.late = 0  # rows per file that are an hour old
        self.other = None

    def run(self) -> None:
        """Write until closed."""
        while not self.closed:
            if not self.paused:
                self.write()
            time.sleep(self.every)

    def write(self, at: float | None = None, rows: int | None = None) -> None:
        """One file; complete when Spark sees it."""
        self._number += 1
        now = at or self.frozen_at or time.time() + self.future
        lines = []
        for row in range(rows or self.rows):
            when = now - 3600 if row < self.late else now
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when))
            number = self._number * 1000 + row
            lines.append(
                json.dumps(
                    {"id": number, "key": f"k{row}", "at": f"{stamp}.{int(when % 1 * 1000):03d}Z"}
                )
            )
        if self.folder is None:
            raise RuntimeError("there is no query to feed yet")
        for folder in filter(None, (self.folder, self.other)):
            hidden = folder / f".{self._number}.json"
            hidden.write_text("\n".join(lines))
            hidden.rename(folder / f"{self._number}.json")
