"""Run the forecast matrix on this environment's Spark and print it as a table.

    python tests/checkpoint/forecast_table.py [--write docs/restarts.md] [--only PATTERN]

Exit status 1 when a forecast was wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from forecast_case import Case
from forecast_cases import cases
from forecast_judge import Row, compare
from forecast_lab import Laboratory
from forecast_spark import open_session


def say(text: str) -> None:
    """One line, at once: a run takes minutes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run_matrix(lab: Laboratory, only: str) -> list[Row]:
    """Every case that this Spark line has and whose name matches."""
    rows = []
    for case in cases():
        if lab.fits(case) and re.search(only, case.id):
            row = try_case(lab, case)
            mark = "agrees" if not row.disagreements else "DISAGREES"
            say(f"{mark:9} {row.case} | {row.forecast} | {row.fact}")
            for text in row.disagreements:
                say(f"          {text}")
            rows.append(row)
    return rows


def try_case(lab: Laboratory, case: Case) -> Row:
    """One case; a base that could not be built costs its cases, not the run."""
    try:
        return compare(lab, case)
    except AssertionError as error:
        return Row(
            case.id, "not tried", str(error)[:200], ("the laboratory failed",), unknown=False
        )


def as_markdown(line: str, rows: list[Row]) -> str:
    """The table as it stands in the documentation."""
    wrong = sum(bool(row.disagreements) for row in rows)
    unknown = sum(row.unknown for row in rows)
    head = (
        f"**Spark {line}: {len(rows)} cases, {len(rows) - wrong} right, {wrong} wrong, "
        f"{unknown} `unknown`.**\n\n"
        "| case | forecast | Spark did (batch:rows) | |\n|---|---|---|---|\n"
    )
    lines = [
        f"| {row.case} | {row.forecast} | {row.fact} | {'✗' if row.disagreements else '✓'} |"
        for row in rows
    ]
    return head + "\n".join(lines) + "\n"


def write_between(path: Path, line: str, text: str) -> None:
    """Replace what stands between this line's markers."""
    start, end = f"<!-- forecast {line} -->", f"<!-- /forecast {line} -->"
    before, _, rest = path.read_text().partition(start)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{start}\n{text}{end}{after}")


def main() -> int:
    """Run, print, and write the table where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session()
        try:
            lab = Laboratory(spark, Path(folder))
            rows = run_matrix(lab, args.only)
        finally:
            spark.stop()
    wrong = sum(bool(row.disagreements) for row in rows)
    unknown = sum(row.unknown for row in rows)
    took = time.monotonic() - began
    say(f"Spark {lab.line}: {len(rows)} cases, {wrong} wrong, {unknown} unknown, {took:.0f} s")
    if args.write:
        write_between(args.write, lab.line, as_markdown(lab.line, rows))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
