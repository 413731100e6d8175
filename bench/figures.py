"""A figure: what was measured, what it must be, and whether it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# For checkpoints: a disk has moods of its own.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - temporary folders of their own in it
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "spark")]


def report(
    name: str, value: float, limit: float, *, at_least: bool = False, **more: object
) -> None:
    """Print one figure as a JSON line."""
    good = value >= limit if at_least else value <= limit
    line = {
        "figure": name,
        "value": round(value, 4),
        "must_be": f"{'≥' if at_least else '≤'} {limit:g}",
        "ok": good,
        **{k: round(v, 4) if isinstance(v, float) else v for k, v in more.items()},
    }
    print(json.dumps(line, ensure_ascii=False), flush=True)
