"""The faults of tests/spark/test_faults.py: each leaves every batch committed, and is counted."""

from __future__ import annotations

import re
import subprocess
import sys

from figures import ROOT, report


def main() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/spark/test_faults.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    passed = re.search(r"(\d+) passed", done.stdout)
    failed = re.search(r"(\d+) (?:failed|error)", done.stdout)
    report(
        "faults that the query noticed", float(failed[1]) if failed else 0.0 if passed else 99.0, 0,
        faults=int(passed[1]) if passed else 0,
    )  # fmt: skip


if __name__ == "__main__":
    main()
