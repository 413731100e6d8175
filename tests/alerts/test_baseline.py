"""The week's baseline, put together from hourly sums, is the one that a week of samples gives."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pytest
from recording import Prometheus
from recording_past import create_blocks

from streamgauge.grafana.alerts.prometheus import Export, rule_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(600)

MINUTE, HOUR, DAY = 60, 3600, 86_400
BATCHES = "query:streamgauge_batch_duration"
PARTS = ("count1h", "sum1h", "sumsq1h")
# What the rules were before: a week of samples, read anew each time.
WEEK = f"({BATCHES}:mean15m[7d:5m] offset 1h)"
EVALUATE = 30
PHASE = 17 * MINUTE + 13.4  # of the hourly group; Prometheus draws it from the group's name
MONDAY = 1_793_577_600.0
LENGTH = 8.4 * DAY
LIMIT = 0.02


def rhythm(t: float) -> float:
    """Long batches at noon, short ones at night and at the weekend."""
    noise = (int(t / MINUTE) * 0.618 % 1 - 0.5) * 2
    weekend = 0.6 if t % (7 * DAY) > 5 * DAY else 1.0
    return weekend * (10 + 4 * math.sin(2 * math.pi * t / DAY)) + noise


def with_restart(t: float) -> float | None:
    """The driver is away for twelve minutes, and then catches up in long batches."""
    since = t - 3.3 * DAY
    if 0 <= since < 12 * MINUTE:
        return None
    return rhythm(t) + (45 if 0 <= since < 30 * MINUTE else 0)


def by_day(t: float) -> float | None:
    """Idle every night: nights have no samples, and mornings are not like noon."""
    return rhythm(t) if 6.2 * HOUR < t % DAY < 21.7 * HOUR else None


def rare(t: float) -> float | None:
    """A batch or two every few hours."""
    return rhythm(t) if t % (5 * HOUR) < 20 * MINUTE else None


def steady(t: float) -> float:
    """Hardly varies, so that mean square and squared mean nearly cancel out."""
    return 300 + 0.05 * rhythm(t)


def grew(t: float) -> float:
    """Twice as long since Thursday."""
    return rhythm(t) * (2 if t > 3 * DAY else 1)


SHAPES: dict[str, Callable[[float], float | None]] = {
    "rhythm": rhythm,
    "restart": with_restart,
    "by day": by_day,
    "rare": rare,
    "steady": steady,
    "grew": grew,
}


def away(t: float) -> bool:
    """Whether Prometheus is down: a night's outage, and an upgrade on the very minute of the hourly group."""
    return 1.6 * DAY < t < 1.6 * DAY + 5.4 * HOUR or abs(t - (4 * DAY + PHASE)) < 3 * MINUTE


def moments(begin: float, end: float, step: float) -> list[float]:
    """Even steps."""
    return [begin + n * step for n in range(int((end - begin) / step))]


def rules() -> dict[str, str]:
    """The shipped recording rules, each with those that it rests on written out."""
    found: dict[str, str] = {}
    for rule in (rule for group in rule_groups(Export()) for rule in group["rules"]):
        if "record" in rule:
            expr = rule["expr"]
            for name in (name for name in found if name.endswith("1w")):
                expr = expr.replace(name, f"({found[name]})")
            found[rule["record"]] = expr
    return found


def samples(name: str, values: list[tuple[str, float, float]]) -> list[str]:
    """OpenMetrics text of one name: query, value, moment."""
    lines = [
        f'{name}{{job="spark",app="shop",query="{query}"}} {value!r} {at:.3f}'
        for query, value, at in values
    ]
    return [f"# TYPE {name} gauge", *lines]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory) -> Iterator[Prometheus]:
    """A Prometheus with mean15m of eight days, and what the hourly rules make of it; it is away at times."""
    folder = tmp_path_factory.mktemp("week")
    means = [
        (query, value, MONDAY + t)
        for query, shape in SHAPES.items()
        for t in moments(0, LENGTH, EVALUATE)
        if not away(t) and (value := shape(t)) is not None
    ]
    create_blocks([*samples(f"{BATCHES}:mean15m", means), "# EOF", ""], folder / "data")
    hours = [MONDAY + t for t in moments(PHASE, LENGTH, HOUR)]
    lines: list[str] = []
    with Prometheus(folder, folder / "data", {"global": {}}) as running:
        for part in PARTS:
            found = running.ask_range(rules()[f"{BATCHES}:{part}"], hours[0], hours[-1], HOUR)
            values = [
                (one["metric"]["query"], float(text), at)
                for one in found
                for at, text in one["values"]
                if not away(at - MONDAY)
            ]
            lines += samples(f"{BATCHES}:{part}", values)
    create_blocks([*lines, "# EOF", ""], folder / "data")
    with Prometheus(folder, folder / "data", {"global": {}}) as running:
        yield running


def ask(prometheus: Prometheus, expr: str, at: float) -> dict[str, float]:
    """Value of each query, so long after the begin."""
    found = prometheus.ask(expr, MONDAY + at)
    return {one["metric"]["query"]: float(one["value"][1]) for one in found}


@pytest.mark.parametrize("at", [7.2 * DAY, 7.9 * DAY, 8.3 * DAY])
@pytest.mark.parametrize(
    ("series", "before"),
    [("avg1w", f"avg_over_time{WEEK}"), ("stddev1w", f"stddev_over_time{WEEK}")],
)
def test_baseline_is_that_of_the_whole_week(prometheus, series, before, at):
    """Within 2 % of what a week of samples gives, mean and deviation, whatever the week was like."""
    old = ask(prometheus, before, at)
    new = ask(prometheus, rules()[f"{BATCHES}:{series}"], at)
    enough = {query for query in SHAPES if query != "rare"}
    assert set(new) == enough
    for query in enough:
        assert new[query] == pytest.approx(old[query], rel=LIMIT), query


def test_steps_are_counted_once(prometheus):
    """The week has as many steps as before, less the hour that was lost with Prometheus' upgrade."""
    at = 7.9 * DAY
    old = ask(prometheus, f"count_over_time{WEEK}", at)
    new = ask(prometheus, rules()[f"{BATCHES}:count1w"], at)
    for query in SHAPES:
        assert new[query] == pytest.approx(old[query], abs=36), query


@pytest.mark.parametrize(("at", "there"), [(24.5 * HOUR, False), (27.5 * HOUR, True)])
def test_first_day_has_no_baseline(prometheus, at, there):
    """Silent until there is a day's worth of batches; from then on there is a mean and a deviation."""
    for series in ("avg1w", "stddev1w"):
        found = ask(prometheus, rules()[f"{BATCHES}:{series}"], at)
        assert ("rhythm" in found) is there
        assert "by day" not in found


def test_week_takes_one_sample_per_hour(prometheus):
    """Hourly sums that were recorded every five minutes, as by another ruler, count once."""
    at = 7.9 * DAY
    often = f"({rules()[f'{BATCHES}:count1h']})[1h:5m]"
    usual = ask(prometheus, rules()[f"{BATCHES}:count1w"], at)
    expr = rules()[f"{BATCHES}:count1w"].replace(f"{BATCHES}:count1h[1h]", often)
    assert ask(prometheus, expr, at)["rhythm"] == pytest.approx(usual["rhythm"], rel=0.1)


def test_no_rule_reads_a_week_of_samples():
    """What is read over more than three days is recorded once per hour."""
    for rule in (rule for group in rule_groups(Export()) for rule in group["rules"]):
        for name in re.findall(r"([\w:]+)(?:\[\w+\]\))?\[(?:[4-9]d|\d\dd|\dw)", rule["expr"]):
            assert name in {f"{BATCHES}:{part}" for part in PARTS}, rule["expr"]
