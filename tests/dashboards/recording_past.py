"""What a dashboard compares with, a day and a week ago: written into Prometheus' past."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from promtool import program

DAY = 86400.0
STEPS = 12.0  # of the baseline, in an hour


@dataclass(frozen=True)
class Usual:
    """A query as it was in the past: seconds of a batch, rows a second, seconds from trigger to trigger."""

    batch: float
    rows: float
    every: float


USUAL = {
    "orders": Usual(0.8, 60, 5),
    "payments": Usual(0.5, 15, 6),
    "searches": Usual(0.4, 80, 6),
    "clicks": Usual(1.2, 60, 4),
    "sessions": Usual(0.7, 20, 8),
    "labels": Usual(4.6, 20, 10),
}


def write_past(data: Path, now: float) -> None:
    """The last hours, a day ago and a week ago, as blocks of Prometheus."""
    lines: list[str] = []
    for name, value in _recorded(now).items():
        lines.append(f"# TYPE {name} gauge")
        for query, usual in USUAL.items():
            labels = f'{{job="spark",app="shop",query="{query}"}}'
            lines.extend(
                f"{name}{labels} {value(usual, moment):.6f} {moment:.3f}"
                for moment in _moments(now)
            )
    for family, members in _counters().items():
        lines.append(f"# TYPE {family} counter")
        for labels, step in members.items():
            lines.extend(
                f"{family}_total{{{labels}}} {step * number:.3f} {moment:.3f}"
                for number, moment in enumerate(_span(now - 7 * DAY - 5400, 2 * 5400, 15))
            )
    lines.append("# TYPE ALERTS gauge")
    for alert, severity, minutes in (
        ("LateRowsDropped", "warning", 50),
        ("BatchOverrun", "warning", 20),
    ):
        labels = f'alertname="SparkStream{alert}",alertstate="firing",severity="{severity}"'
        lines.extend(
            f'ALERTS{{{labels},job="spark",app="shop",query="orders"}} 1 {moment:.3f}'
            for moment in _span(now - 2 * DAY, minutes * 60, 60)
        )
    create_blocks([*lines, "# EOF", ""], data)


def create_blocks(lines: list[str], data: Path) -> None:
    """Put OpenMetrics text into Prometheus' folder."""
    data.mkdir(parents=True, exist_ok=True)
    file = data.with_suffix(".om")
    file.write_text("\n".join(lines))
    command = [
        program("promtool"),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(file),
        str(data),
    ]
    subprocess.run(command, check=True, capture_output=True)
    file.unlink()


def _span(begin: float, seconds: float, step: float) -> list[float]:
    return [begin + n * step for n in range(int(seconds / step))]


def _moments(now: float) -> list[float]:
    """Around this hour a week ago and a day ago, and the hours that the scaled baseline reads."""
    week, day = (_span(now - ago * DAY - 600, 5400, 30) for ago in (7, 1))
    return [*week, *day, *_span(now - 3 * 3600, 3 * 3600 - 300, 10)]


def _recorded(now: float) -> dict[str, Callable[[Usual, float], float]]:
    def wobble(moment: float) -> float:
        older = 0.9 if now - moment > 5 * DAY else 1.0
        return older * (1 + 0.05 * (int(moment / 60) % 3 - 1))

    return {
        "query:streamgauge_batch_duration:mean15m": lambda usual, at: usual.batch * wobble(at),
        "query:streamgauge_batch_duration:count1h": lambda _, __: STEPS,
        "query:streamgauge_batch_duration:sum1h": lambda usual, at: (
            STEPS * usual.batch * wobble(at)
        ),
        "query:streamgauge_batch_duration:sumsq1h": lambda usual, at: (
            STEPS * (usual.batch * wobble(at)) ** 2
        ),
        "query:streamgauge_input_rows:rate1h": lambda usual, at: usual.rows * wobble(at + 7),
        "query:streamgauge_row_cost:seconds_per_krow1h": lambda usual, at: (
            1000 * usual.batch / (usual.rows * usual.every) * wobble(at)
        ),
    }


def _counters() -> dict[str, dict[str, float]]:
    """Counters of a week ago: family, labels, and what each quarter of a minute adds."""
    phases = {"add_batch": 4.0, "latest_offset": 0.2, "wal_commit": 0.12, "query_planning": 0.1}
    base = 'job="spark",app="shop",query="labels",instance="last-week"'
    return {
        "streamgauge_phase_duration_seconds": {
            f'{base},phase="{phase}"': 4 * each for phase, each in phases.items()
        },
        "streamgauge_batches": {f'{base},data="true"': 4.0},
    }
