"""Pictures of the dashboards' previews, from a recording, in headless Chromium.

Fails when a panel is empty or clipped, and says which.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "dashboards"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "grafana" / "preview"))

from browser import browse
from preview import Preview, read_boards
from recording import SCALE, load, replay

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH = 1600
# What is chosen in each picture; the others show every query.
CHOSEN = {
    "streamgauge-query": {"query": "clicks"},
    "streamgauge-state": {"query": "orders|sessions"},
    "streamgauge-sources": {"query": "clicks"},
    "streamgauge-checkpoint": {"query": "orders"},
    "streamgauge-regressions": {"query": "labels"},
    "streamgauge-slo": {"query": "exports"},
}


def take(page: Path, picture: Path, folder: Path) -> list[str]:
    """Take the picture of a page; what is wrong with it."""
    url = page.as_uri()
    dom = browse(url, folder, f"--window-size={WIDTH},1200", "--dump-dom")
    told = re.search(r'id="told">(.+?)</script>', dom)
    if not told:
        return [f"{page.name}: its script did not come to an end"]
    found = json.loads(told[1])
    browse(url, folder, f"--window-size={WIDTH},{found['height']}", f"--screenshot={picture}")
    return [f"{page.stem}: {fault}" for fault in found["faults"]]


def main() -> int:
    """Take all pictures; 1 if one has a fault."""
    recording = load()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with replay(recording, folder / "prometheus") as prometheus:
            times = (recording.begin, recording.end)
            spans = recording.folder / "work" / "traces.jsonl"
            preview = Preview(prometheus.url, *times, time_scale=SCALE, spans=spans)
            for uid, board in read_boards().items():
                page = folder / f"{uid}.html"
                text = preview.page(board, CHOSEN.get(uid, {}))
                # Where the recording was made is nobody's business.
                page.write_text(text.replace(f"{recording.folder}/work", "/data"), encoding="utf-8")
                faults += take(page, PICTURES / f"{uid}.png", folder)
                print(PICTURES / f"{uid}.png")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
