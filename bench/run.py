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


def _more(line: dict) -> str:
    known = {"figure", "value", "must_be", "ok"}
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in line.items() if k not in known)


if __name__ == "__main__":
    sys.exit(main())
