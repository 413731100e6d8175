"""A past for the rules' baselines, as OpenMetrics text for `promtool tsdb create-blocks-from`."""

from __future__ import annotations

import time
from collections.abc import Callable

from streamgauge.grafana.alerts.settings import Settings

_BATCHES = "query:streamgauge_batch_duration"
Value = Callable[[float], float]


def write_history(
    series: dict[str, Value], labels: str, begin: float, end: float, step: float
) -> str:
    """Samples of each series from `begin` to `end` (ages in seconds, oldest first), one every `step`.

    A past of the mean batch duration has the hourly sums with it, from which the week's baseline is made.
    """
    now = time.time()
    lines = []
    for name, value in {**series, **_hourly(series.get(f"{_BATCHES}:mean15m"))}.items():
        lines.append(f"# TYPE {name} gauge")
        count = int((begin - end) / step)
        lines.extend(
            f"{name}{{{labels}}} {value(begin - n * step):.6f} {now - begin + n * step:.3f}"
            for n in range(count)
        )
    return "\n".join([*lines, "# EOF", ""])


def _hourly(mean: Value | None) -> dict[str, Value]:
    """What the rules record per hour of a duration that is the same through the hour."""
    if mean is None:
        return {}
    count = float(Settings().value("baseline_slice")) / float(Settings().value("baseline_step"))
    return {
        f"{_BATCHES}:count1h": lambda _: count,
        f"{_BATCHES}:sum1h": lambda age: count * mean(age),
        f"{_BATCHES}:sumsq1h": lambda age: count * mean(age) ** 2,
    }
