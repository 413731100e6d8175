"""Every series of a recording at a sample per quarter of a minute, small enough to be committed.

    python recorded_series.py

writes them anew from the recording that is in `artifacts/recording`. `serve` gives a Prometheus that has them,
with the past that dashboards compare with.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recording import Prometheus, load, replay
from recording_past import create_blocks, write_past

FILE = Path(__file__).with_name("recorded_series.json.gz")
STEP = 15  # seconds
RATE_INTERVAL = 4 * STEP


@dataclass(frozen=True)
class Served:
    """A Prometheus with the series, and from when to when they are."""

    prometheus: Prometheus
    begin: float
    end: float


def extract() -> dict[str, Any]:
    """The series of the recording that is there; where it was made is nobody's business."""
    recording = load()
    begin = recording.begin // STEP * STEP
    with (
        tempfile.TemporaryDirectory() as folder,
        replay(recording, Path(folder)) as prometheus,
    ):
        found = prometheus.ask_range('{__name__=~".+"}', begin, recording.end, STEP)
    series = []
    for one in found:
        labels = {
            name: text.replace(f"{recording.folder}/work", "/data")
            for name, text in one["metric"].items()
        }
        points = [[round((at - begin) / STEP), value] for at, value in one["values"]]
        series.append([labels, points])
    series.sort(key=lambda one: sorted(one[0].items()))
    return {"begin": begin, "series": series}


def write() -> None:
    """Write the file; the same series give the same bytes."""
    text = json.dumps(extract(), separators=(",", ":"), sort_keys=True)
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def lines(held: dict[str, Any]) -> Iterator[str]:
    """The series in the exposition format, with timestamps."""
    for labels, points in held["series"]:
        rest = ",".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in labels.items() if k != "__name__")
        head = f"{labels['__name__']}{{{rest}}}"
        yield from (f"{head} {value} {held['begin'] + number * STEP}" for number, value in points)


@contextlib.contextmanager
def serve(folder: Path, more: tuple[tuple[dict[str, str], float], ...] = ()) -> Iterator[Served]:
    """A Prometheus with the series and, at their end, `more`: labels with a value each."""
    held = json.loads(gzip.decompress(FILE.read_bytes()))
    begin = held["begin"]
    last = max(number for _, points in held["series"] for number, _ in points)
    end = begin + last * STEP
    for labels, value in more:
        held["series"].append([labels, [[number, str(value)] for number in range(last + 1)]])
    write_past(folder / "data", end)
    create_blocks([*lines(held), "# EOF", ""], folder / "data")
    config = {"global": {"scrape_interval": f"{STEP}s"}}
    # The samples have no marks for the end of a series.
    options = f"--query.lookback-delta={2 * STEP + 1}s"
    with Prometheus(folder, folder / "data", config, options) as prometheus:
        yield Served(prometheus, begin, end)


if __name__ == "__main__":
    write()
    sys.stdout.write(f"{FILE}: {FILE.stat().st_size} bytes\n")
