"""Every alert, played through the real promtool on the shipped rule file."""

from __future__ import annotations

import pytest
from promtool import RuleTest, rules_of, run
from rule_scenarios import SCENARIOS, Scenario
from rule_worlds import HOUR, healthy, input_series


def matchers(scenario: Scenario) -> str:
    """Selects the scenario's alert, with the owner that it must carry."""
    name, _, variant = scenario.alert.partition("/")
    return f'alertname="SparkStream{name}",variant="{variant}",{scenario.labels}'


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_alert_fires_in_time_and_resolves(scenario, tmp_path):
    """Silent just before, firing with its owner at its time, over after; extra labels or not."""
    plain = input_series(scenario.world, scenario.over, scenario.step)
    noisy = input_series(
        scenario.world, scenario.over, scenario.step, ',pod="driver-1",cluster="eu"', app="noisy"
    )
    test = RuleTest(plain + noisy, scenario.step)
    for app in ("shop", "noisy"):
        chosen = f'{matchers(scenario)},app="{app}"'
        test.expect(scenario.fires - scenario.step, chosen, 0)
        test.expect(scenario.fires, chosen, 1)
        test.expect(scenario.over, chosen, 0)
    name = "SparkStream" + scenario.alert.partition("/")[0]
    run(tmp_path, scenario.step, test, rules=rules_of(tmp_path, name))


def test_watchdog_always_fires(tmp_path):
    """The dead man's switch is pressed from the first evaluation on."""
    test = RuleTest(input_series(healthy, HOUR, 60), 60)
    for at in (0, HOUR):
        test.expect(at, 'alertname="SparkStreamWatchdog"', 1)
    run(tmp_path, 60, test)
