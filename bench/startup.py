"""What it takes to start: importing the listener, `streamgauge --help`, `streamgauge checkpoint show`.

    python bench/startup.py [--runs 21]

The working tree against the commit before the package was made light, in turns, each run in a Python of
its own. That commit is checked out into a temporary worktree. One JSON line per figure; exit status 1 when
one is over its bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean, median

from figures import ROOT, report
from trees import base_tree, python, take_turns

BASE = "223d83d"
LISTENER, HELP, SHOW = 0.6, 0.25, 0.4  # working tree ÷ base
CHECKPOINT = ROOT / "tests" / "data" / "checkpoints" / "4.3.0" / "agg-rocksdb.zip"
READER = ("streamgauge.checkpoint", "streamgauge.checkpoint.reader")  # what a driver may need of it
OTHERS = ("grafana", "history", "mcp", "checkpoint")  # folders that a driver has no use for
IMPORT = """
import sys, time
import pyspark.sql.streaming
before = set(sys.modules)
began = time.perf_counter()
from streamgauge import TelemetryListener
taken = time.perf_counter() - began
print(taken, sys.modules["streamgauge"].__file__, *(set(sys.modules) - before))
"""


def main() -> int:
    """Measure and report; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=21, help="of each, at least 15")
    runs = max(15, parser.parse_args().runs)
    with base_tree(BASE) as base, tempfile.TemporaryDirectory() as folder:
        trees = {"then": base, "now": ROOT}
        zipfile.ZipFile(CHECKPOINT).extractall(folder)
        return 0 if all([report_import(runs, trees), *report_commands(runs, trees, folder)]) else 1


def report_import(runs: int, trees: dict[str, Path]) -> bool:
    """What importing the listener takes beyond PySpark, and what it loads."""
    modules: dict[str, set[str]] = {}

    def once(name: str) -> float:
        said = python(trees[name], "-c", IMPORT).stdout.split()
        if not Path(said[1]).is_relative_to(trees[name]):
            raise AssertionError(f"{said[1]} was imported, not the package in {trees[name]}")
        modules[name] = {module for module in said[2:] if is_ours(module)}
        return float(said[0])

    return report_ratio(
        "import of the listener beyond PySpark's, now ÷ then",
        LISTENER,
        take_turns(runs, once, trees),
        modules=len(modules["now"]),
        modules_then=len(modules["then"]),
        modules_without_use=len(without_use(modules["now"])),
        modules_without_use_then=len(without_use(modules["then"])),
    )


def report_commands(runs: int, trees: dict[str, Path], checkpoint: str) -> Iterator[bool]:
    """The wall time of the two commands."""
    for figure, limit, words in (
        ("`streamgauge --help`, now ÷ then", HELP, ("--help",)),
        ("`streamgauge checkpoint show`, now ÷ then", SHOW, ("checkpoint", "show", checkpoint)),
    ):

        def once(name: str, words: tuple[str, ...] = words) -> float:
            began = time.perf_counter()
            python(trees[name], "-m", "streamgauge.cli", *words)
            return time.perf_counter() - began

        yield report_ratio(figure, limit, take_turns(runs, once, trees))


def is_ours(module: str) -> bool:
    """Whether a module is of this package."""
    return module.partition(".")[0] == "streamgauge"


def without_use(modules: Iterable[str]) -> list[str]:
    """Those of the modules that a driver has no use for: dashboards, history, all but the checkpoints' reader."""
    return sorted(
        module
        for module in modules
        if module.split(".")[1:2] and module.split(".")[1] in OTHERS
        if module not in READER and not module.startswith(f"{READER[-1]}.")
    )


def report_ratio(figure: str, limit: float, taken: dict[str, list[float]], **more: object) -> bool:
    """Report the ratio of the medians; whether it is within its bound."""
    now, then = taken["now"], taken["then"]
    ratio = median(now) / median(then)
    report(
        figure,
        ratio,
        limit,
        of_means=mean(now) / mean(then),
        runs=len(now),
        median_ms=1000 * median(now),
        median_ms_then=1000 * median(then),
        mean_ms=1000 * mean(now),
        mean_ms_then=1000 * mean(then),
        **more,
    )
    return ratio <= limit


if __name__ == "__main__":
    sys.exit(main())
