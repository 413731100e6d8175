"""`show` against a bare recursive listing of the same checkpoint, side by side in one run.

    python bench/checkpoint_show.py [--batches 10000] [--partitions 200]

The checkpoint has 10,000 batches and 2 operators of 200 partitions, each with 100 changes and ten
snapshots. Prints one line of JSON; exit status 1 when `show` takes more than three listings.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from streamgauge.checkpoint import make_report, read_checkpoint
from streamgauge.checkpoint.render.report_text import render_report

LIMIT = 3.0
CONF = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"200"}}'


def build(root: Path, batches: int, partitions: int) -> int:
    """Write the checkpoint; returns its number of files."""
    files = 1
    (root / "metadata").write_text('{"id":"7b9d8fe9-b4f9-4c70-804e-eabd28b8567b"}')
    for name, text in (("offsets", f'v1\n{CONF}\n{{"logOffset":1}}'), ("commits", "v1\n{}")):
        (root / name).mkdir()
        for batch in range(batches):
            (root / name / str(batch)).write_text(text)
            files += 1
    for operator in range(2):
        for partition in range(partitions):
            folder = root / "state" / str(operator) / str(partition)
            folder.mkdir(parents=True)
            for version in range(batches - 99, batches + 1):
                (folder / f"{version}.delta").write_bytes(b"x")
                files += 1
                if version % 10 == 0:
                    (folder / f"{version}.snapshot").write_bytes(b"x")
                    files += 1
    return files


def list_all(root: str) -> int:
    """The bare recursive listing: every name and its size, as `ls -lR` has them."""
    total = 0
    with os.scandir(root) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                total += list_all(entry.path)
            else:
                total += entry.stat(follow_symlinks=False).st_size
    return total


def walk_all(root: str) -> int:
    """The barest one: names alone."""
    return sum(len(files) for _, _, files in os.walk(root))


def show(root: str) -> int:
    """What the command does, but for printing."""
    return len(render_report(make_report(read_checkpoint(root))))


def measure(rounds: int, **subjects) -> dict[str, float]:
    """Median seconds of each subject, taken in turns so that all meet the same machine."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            began = time.perf_counter()
            subject()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> int:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = build(Path(folder), args.batches, args.partitions)
        taken = measure(
            args.rounds,
            listing=lambda: list_all(folder),
            names=lambda: walk_all(folder),
            show=lambda: show(folder),
        )
    ratio = taken["show"] / taken["listing"]
    figures = {
        "bench": "checkpoint_show",
        "files": files,
        "show_seconds": round(taken["show"], 3),
        "listing_seconds": round(taken["listing"], 3),
        "names_only_seconds": round(taken["names"], 3),
        "ratio": round(ratio, 2),
        "ratio_to_names_only": round(taken["show"] / taken["names"], 2),
        "limit": LIMIT,
        "ok": ratio <= LIMIT,
    }
    print(json.dumps(figures))
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
