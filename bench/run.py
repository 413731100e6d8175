"""Measure published figures again (`make bench`, `make bench-traces`, `make bench-fleet`) and write them into docs.

    python bench/run.py [GROUP ...]     agent unless named; each group has a table of its own

One JSON line a figure. Machines are noisy: every figure that is a time is a ratio of two things
measured side by side in one run.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time

from figures import ROOT
from fleet import table as fleet_table

GROUPS = {
    "agent": (
        *("memory.py", "worker.py", "off_bus.py", "one_query.py", "many_queries.py"),
        *("partitions.py", "faults.py"),
    ),
    "traces": ("traces.py",),
    "fleet": ("fleet.py",),
    "startup": ("startup.py",),
}


def main(groups: list[str]) -> int:
    good = True
    for group in groups:
        began = time.monotonic()
        lines = [line for part in GROUPS[group] for line in measure(part)]
        if group == "fleet":
            _replace("docs/scale.md", group, f"{measured(began)}\n\n{fleet_table(lines)}")
        else:
            write(group, lines, began)
        if group == "agent":
            write_readme(lines)
        good = good and all(line["ok"] for line in lines)
    return 0 if good else 1


def measure(part: str) -> list[dict]:
    """The figures of one part, printed as they are found."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / part)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    over = any(not line["ok"] for line in found)  # some parts say that with their exit status too
    if not found or (done.returncode and not over):
        print(done.stderr[-3000:], file=sys.stderr)
        sys.exit(2)
    for line in found:
        print(json.dumps(line, ensure_ascii=False), flush=True)
    return found


def measured(began: float) -> str:
    """In how long, and on what."""
    from pyspark import __version__ as spark

    minutes = (time.monotonic() - began) / 60
    return (
        f"Measured in {minutes:.0f} minutes: {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, Spark {spark}."
    )


def write(group: str, lines: list[dict], began: float) -> None:
    """Put a group's table into its place in docs/performance.md."""
    rows = "\n".join(
        f"| {line['figure']} | {line['must_be']} | **{line['value']:g}** | {_more(line)} |"
        for line in lines
    )
    _replace(
        "docs/performance.md",
        group,
        f"""{measured(began)}

| figure | must be | measured | more |
|---|---|---|---|
{rows}""",
    )


def write_readme(lines: list[dict]) -> None:
    """Put the figures that people ask for first into the README, between its markers."""
    found = {line["figure"].partition(",")[0].partition(":")[0]: line for line in lines}
    bus = next(line for line in lines if "stock_ms" in line and "ours_ms" in line)
    seen = found["12 queries × 1 s × 45 s"]
    late = next(
        line for line in lines if line["figure"].startswith("delay") and "median" in line["figure"]
    )
    batch, memory = found["batch duration with ÷ without"], found["memory growth over 200"]
    text = f"""Measured by `make bench` ([docs/performance.md](docs/performance.md)), each side by side in one run:

- Spark's one listener thread spends **{bus["ours_ms"]:.3f} ms** per batch on it, on average, and no Python runs
  there; an empty stock PySpark listener takes {bus["stock_ms"]:.0f} ms, **{bus["value"]:.0f} times** as much.
- Twelve queries on a 1 s trigger for 45 s: **{seen["seen"]} of {seen["done"]}** batches seen, {late["value"]:.0f} ms after
  their end (median); the stock listener had seen {seen["stock_seen"]} of {seen["stock_done"]}.
- A batch takes **{batch["median"]:.3f} times** as long with it as without it (95 % upper bound {batch["value"]:.3f}).
- 200,000 events of 50 queries leave {max(memory["value"], 0):.1f} MiB behind."""
    _replace("README.md", "figures", text)


def _replace(file: str, part: str, text: str) -> None:
    """Write a text between the markers of a part of a page."""
    path = ROOT / file
    before, _, rest = path.read_text(encoding="utf-8").partition(f"<!-- {part} -->\n")
    after = rest.partition(f"\n<!-- /{part} -->")[2]
    path.write_text(f"{before}<!-- {part} -->\n{text}\n<!-- /{part} -->{after}", encoding="utf-8")


def _more(line: dict) -> str:
    known = {"figure", "value", "must_be", "ok"}
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in line.items() if k not in known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["agent"]))
