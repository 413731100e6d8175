"""Run the demo and keep two pictures of it: the table as SVG, and the live page as PNG.

.venv/bin/python scripts/draw_demo.py      writes docs/pictures/demo.svg and live.png
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from streamgauge import demo, demo_table
from streamgauge.model.query import Query
from streamgauge.model.verdict import judge

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
ADDRESS = "127.0.0.1:9487"


class Camera(demo_table.PlainTable):
    """Waits for the moment when something is stalled, and takes both pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.taken_at: float | None = None

    def draw(self, queries: Mapping[str, Query], age: float, told: str) -> None:
        """Write the plain lines too; end the demo some seconds after the pictures."""
        super().draw(queries, age, told)
        stalled = [q for q in queries.values() if judge(q, time.time()).state == "stalled"]
        if stalled and "hangs" in told and self.taken_at is None:
            self.taken_at = age
            console = Console(record=True, width=124, file=io.StringIO())
            console.print(demo_table.render(queries, age, told))
            svg = console.export_svg(title="make demo")
            svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # no outside host
            (PICTURES / "demo.svg").write_text(svg, encoding="utf-8")
            photograph(f"http://{ADDRESS}/", PICTURES / "live.png")
        if self.taken_at is not None and age > self.taken_at + 25:
            raise KeyboardInterrupt


def photograph(url: str, path: Path) -> None:
    """The live page in headless Chromium."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
                *("--no-first-run", "--disable-background-networking", "--disable-sync"),
                *(f"--user-data-dir={profile}", "--window-size=1280,1100"),
                *("--virtual-time-budget=4000", f"--screenshot={path}", url),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    camera = Camera()
    demo_table.PlainTable = lambda: camera  # type: ignore[assignment,misc]
    demo.run(argparse.Namespace(plain=True, seconds=240.0, metrics_address=ADDRESS))
