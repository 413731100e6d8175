"""What rules remember is sampled, and warnings wait: cheaper, and the same answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from recording import Prometheus
from recording_past import create_blocks

from streamgauge.grafana.alerts.catalogue import GROUPS, alerts, recordings
from streamgauge.grafana.alerts.memory import sampled, with_memory
from streamgauge.grafana.alerts.prometheus import Export, rule_groups
from streamgauge.grafana.alerts.rule import Group, Recording, expand
from streamgauge.grafana.alerts.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUTE, HOUR = 60, 3600
BEGIN = 1_793_577_600.0
LENGTH = 26 * HOUR
X = "streamgauge_query_active"
PHASE = 137.0  # seconds; of the group that samples
# When each series ends: at once, seconds before and after a sample was taken, hours ago, never.
ENDS = {
    "now": LENGTH,
    "lately": LENGTH - 7 * MINUTE,
    "ended": 20 * HOUR + PHASE - 3,
    "just": 20 * HOUR + PHASE + 9,
}
EXPRS = (f"last_over_time({X}[$memory_window])", f"max_over_time({X}[$memory_window])")


def remembered(expr: str) -> tuple[str, str]:
    """What a rule becomes, and the rule that samples for it."""
    memory, group = with_memory((Group("g", recordings=(Recording("r", expr, ""),)),))
    return (
        expand(group.recordings[0].expr, Settings()),
        expand(memory.recordings[0].expr, Settings()),
    )


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory) -> Iterator[Prometheus]:
    """A day of scrapes, and their samples; each value is the number of its scrape."""
    folder = tmp_path_factory.mktemp("day")
    lines = [f"# TYPE {X} gauge"]
    for name, end in ENDS.items():
        lines += [f'{X}{{name="{name}"}} {n} {BEGIN + 15 * n:.3f}' for n in range(int(end / 15))]
    create_blocks([*lines, "# EOF", ""], folder / "data")
    _, taken = remembered(EXPRS[0])
    lines = [f"# TYPE {sampled(X)} gauge"]
    with Prometheus(folder, folder / "data", {"global": {}}) as running:
        for one in running.ask_range(taken, BEGIN + PHASE, BEGIN + LENGTH, 300):
            labels = f'{{name="{one["metric"]["name"]}"}}'
            lines += [f"{sampled(X)}{labels} {text} {at:.3f}" for at, text in one["values"]]
    create_blocks([*lines, "# EOF", ""], folder / "data")
    with Prometheus(folder, folder / "data", {"global": {}}) as running:
        yield running


@pytest.mark.parametrize("expr", EXPRS)
@pytest.mark.parametrize("age", [0, 40, 4 * MINUTE, 29 * MINUTE, 3 * HOUR])
def test_memory_answers_as_a_day_of_scrapes_does(prometheus, expr, age):
    """The last and the largest value, of what is there and of what is gone, to the scrape."""
    at = BEGIN + LENGTH - 3 * HOUR + age
    rewritten, _ = remembered(expr)
    old, new = (
        {one["metric"]["name"]: one["value"][1] for one in prometheus.ask(asked, at)}
        for asked in (expand(expr, Settings()), rewritten)
    )
    assert set(old) == set(ENDS)
    assert new == old


def test_no_rule_reads_half_a_day_of_scrapes():
    """What the agents serve is read over hours at most; longer windows read what was recorded."""
    for rule in (rule for group in rule_groups(Export()) for rule in group["rules"]):
        long = r"(?<![\w:])(streamgauge_\w+)(?:\{[^}]*\})?\[(?:\d+d|1[2-9]h|[2-9]\dh)"
        assert not re.findall(long, rule["expr"]), rule["expr"]


def test_what_is_remembered_is_sampled():
    """Every sampled series that a rule reads is recorded, with the labels that the rule asks for."""
    recorded = {rule.record: rule.expr for rule in recordings()}
    read = {
        name
        for rule in (*recordings(), *alerts())
        for name in re.findall(r"[\w:]+last5m", rule.expr)
    }
    assert read
    assert read <= set(recorded)


def test_pages_are_not_slower_than_before():
    """Only warnings that wait are asked for less often, and no alert is lost or doubled."""
    for group in GROUPS:
        for alert in group.alerts:
            waits = alert.severity == "warning" and alert.hold
            assert waits or group.interval == "evaluation_interval", alert.key
    keys = [alert.key for alert in alerts()]
    assert len(keys) == len(set(keys))


def test_series_that_are_read_now_are_recorded_in_time():
    """Prometheus looks back five minutes for a value: one missed evaluation must not make it absent."""
    settings = Settings()
    for group in GROUPS:
        if float(settings.value(group.interval)) <= 150:
            continue
        for rule in group.recordings:
            for reader in (*recordings(), *alerts()):
                instant = rf"{re.escape(rule.record)}(?![\w:])(?:\{{[^}}]*\}})?(?!\[|\{{)"
                assert not re.search(instant, reader.expr), (rule.record, reader)
