"""Measure every published figure again (`make bench`) and write docs/performance.md.

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

PARTS = ("memory.py", "bus_time.py", "batch_time.py", "many_queries.py", "faults.py")


def main() -> int:
    began = time.monotonic()
    lines = []
    for part in PARTS:
        done = subprocess.run(
            [sys.executable, str(ROOT / "bench" / part)],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not found:
            print(done.stderr[-3000:], file=sys.stderr)
            return 2
        for line in found:
            print(json.dumps(line, ensure_ascii=False), flush=True)
        lines += found
    write(lines, time.monotonic() - began)
    write_readme(lines)
    return 0 if all(line["ok"] for line in lines) else 1


def write(lines: list[dict], seconds: float) -> None:
    from pyspark import __version__ as spark

    rows = "\n".join(
        f"| {line['figure']} | {line['must_be']} | **{line['value']:g}** | {_more(line)} |"
        for line in lines
    )
    (ROOT / "docs" / "performance.md").write_text(
        f"""# What the agent costs

Written by `make bench`, which measures every figure again ({seconds / 60:.0f} minutes on this machine:
{os.cpu_count()} cores, Python {platform.python_version()}, Spark {spark}). Every time is compared side by
side with something else in the same run, since machines are noisy.

| figure | must be | measured | more |
|---|---|---|---|
{rows}

- *Bus time* is what Spark's one listener thread spends, by the JVM's own `listenerProcessingTime` timers,
  on a query with one stateful operator. The stock listener is a `StreamingQueryListener` with four empty
  methods.
- *Events seen ÷ batches done* is taken at the end of the 45 seconds, without waiting for stragglers.
- *Batch duration with ÷ without*: one running query, the listener put on and taken off in turns.
""",
        encoding="utf-8",
    )


def write_readme(lines: list[dict]) -> None:
    """Put the figures that people ask for first into the README, between its markers."""
    found = {line["figure"].partition(",")[0].partition(":")[0]: line for line in lines}
    bus, seen = found["bus time a batch"], found["12 queries × 1 s × 45 s"]
    late = next(
        line for line in lines if line["figure"].startswith("delay") and "median" in line["figure"]
    )
    batch, memory = found["batch duration with ÷ without"], found["memory growth over 200"]
    text = f"""Measured by `make bench` ([docs/performance.md](docs/performance.md)), each side by side in one run:

- Spark's one listener thread spends **{bus["ours_ms"]:.1f} ms** a batch on it; an empty stock PySpark listener
  takes {bus["stock_ms"]:.0f} ms, **{bus["value"]:.0f} times** as much.
- Twelve queries on a 1 s trigger for 45 s: **{seen["seen"]} of {seen["done"]}** batches seen, {late["value"]:.0f} ms after
  their end (median); the stock listener had seen {seen["stock_seen"]} of {seen["stock_done"]}.
- A batch takes **{batch["median"]:.2f} times** as long with it as without it (95 % upper bound {batch["value"]:.2f}).
- 200,000 events of 50 queries leave {max(memory["value"], 0):.1f} MiB behind."""
    readme = ROOT / "README.md"
    page = readme.read_text(encoding="utf-8")
    before, _, rest = page.partition("<!-- figures -->\n")
    after = rest.partition("\n<!-- /figures -->")[2]
    readme.write_text(
        f"{before}<!-- figures -->\n{text}\n<!-- /figures -->{after}", encoding="utf-8"
    )


def _more(line: dict) -> str:
    known = {"figure", "value", "must_be", "ok"}
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in line.items() if k not in known)


if __name__ == "__main__":
    sys.exit(main())
