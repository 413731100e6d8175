#!/usr/bin/env python3
"""The fault switch of the demo job: `streamgauge-demo hang`, and later `streamgauge-demo well`.

A fault is an empty file in a folder that the job looks into at every batch.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

FAULTS = {
    "hang": "the sink of `orders` never answers: SparkStreamQueryStalled",
    "fail": "the sink of `orders` raises; the job starts it again: SparkStreamRestartLoop",
    "slow": "each batch of `orders` takes 20 s, four times its trigger: SparkStreamBatchOverrun",
    "well": "all is well again",
}
FOLDER = Path(os.environ.get("DEMO_FAULTS", Path(tempfile.gettempdir()) / "streamgauge-demo"))


def is_on(fault: str) -> bool:
    """Whether a fault is switched on."""
    return (FOLDER / fault).exists()


def switch(fault: str) -> None:
    """Switch one fault on; `well` switches all off."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if fault != "well":
        (FOLDER / fault).touch()
        return
    for other in FAULTS:
        (FOLDER / other).unlink(missing_ok=True)


def suffer() -> None:
    """What a batch of `orders` has to bear now."""
    if is_on("slow"):
        time.sleep(20)
    if is_on("fail"):
        raise ConnectionError("the shop's database does not answer (password=hunter2)")
    while is_on("hang"):
        time.sleep(0.5)


def main(words: list[str]) -> int:
    """Switch, and say what will be seen."""
    if len(words) != 1 or words[0] not in FAULTS:
        rows = "\n".join(f"  {name:<6}{what}" for name, what in FAULTS.items())
        sys.stderr.write(f"streamgauge-demo FAULT\n{rows}\n")
        return 2
    switch(words[0])
    sys.stdout.write(f"{FAULTS[words[0]]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
