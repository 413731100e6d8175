"""A past for the rules' baselines, as OpenMetrics text for `promtool tsdb create-blocks-from`."""

from __future__ import annotations

import time
from collections.abc import Callable

Past = Callable[[float], float]  # the value at an age in seconds


def write_past(
    name: str, value: Past, labels: str, *, begin: float, end: float, step: float
) -> str:
    """Samples of one series from `begin` to `end` (ages in seconds, oldest first), one every `step`."""
    now = time.time()
    count = int((begin - end) / step)
    lines = [f"# TYPE {name} gauge"]
    lines.extend(
        f"{name}{{{labels}}} {value(begin - n * step):.6f} {now - begin + n * step:.3f}"
        for n in range(count)
    )
    return "\n".join(lines)


def write_history(*pasts: str) -> str:
    """The pasts of several series in one file."""
    return "\n".join([*pasts, "# EOF", ""])
