"""A past for the rules' baselines, as OpenMetrics text for `promtool tsdb create-blocks-from`."""

from __future__ import annotations

import time
from collections.abc import Callable


def write_history(
    series: dict[str, Callable[[float], float]], labels: str, begin: float, end: float, step: float
) -> str:
    """Samples of each series from `begin` to `end` (ages in seconds, oldest first), one every `step`."""
    now = time.time()
    lines = []
    for name, value in series.items():
        lines.append(f"# TYPE {name} gauge")
        count = int((begin - end) / step)
        lines.extend(
            f"{name}{{{labels}}} {value(begin - n * step):.6f} {now - begin + n * step:.3f}"
            for n in range(count)
        )
    return "\n".join([*lines, "# EOF", ""])
