"""Every alert, played through the real promtool on the shipped rule file."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from promtool import RULES, RuleTest, annotations_of, promtool3, rules_of, run, run_raw, time_of
from rule_scenarios import SCENARIOS, SHORT_WEEKS, Scenario, marked
from rule_worlds import HOUR, healthy, input_series

from streamgauge.grafana.alerts.catalogue import alerts
from streamgauge.grafana.alerts.prometheus import Export

# Promtool is quick, but not on a machine that does something else.
pytestmark = pytest.mark.timeout(600)


def matchers(scenario: Scenario) -> str:
    """Selects the scenario's alert, with the owner that it must carry."""
    name, _, variant = scenario.alert.partition("/")
    return f'alertname="SparkStream{name}",variant="{variant}",{scenario.labels}'


def play(scenario: Scenario, folder: Path, slack: int = 0) -> list[str]:
    """Silent just before, firing with its owner at its time, over after; extra labels or not.

    Returns the annotations of the pages. Promtool prints them only when something else was expected,
    so something else is; what it says of expressions is what fails the test.
    """
    over = scenario.over + slack
    plain = input_series(scenario.world, over, scenario.step)
    extra = ',pod="driver-1",cluster="eu"'
    noisy = input_series(scenario.world, over, scenario.step, extra, app="noisy")
    test = RuleTest(plain + noisy, scenario.step)
    for app in ("shop", "noisy"):
        chosen = f'{matchers(scenario)},app="{app}"'
        test.expect(scenario.fires - scenario.step - slack, chosen, 0)
        test.expect(scenario.fires + slack, chosen, 1)
        test.expect(over, chosen, 0)
    wrong = {
        "eval_time": f"{scenario.fires + slack}s",
        "alertname": "SparkStream" + scenario.alert.partition("/")[0],
        "exp_alerts": [{"exp_labels": {"wrong": "on purpose"}}],
    }
    group = {**test.as_dict(), "alert_rule_test": [wrong]}
    rules = rules_of(folder, f"SparkStream{scenario.alert}", scenario.export)
    done = run_raw(folder, scenario.step, [group], rules)
    said = done.stdout + done.stderr
    assert "expr:" not in said, said
    pages = [page for page in annotations_of(said) if "summary" in page]
    assert len(pages) == 2, said
    return pages


@pytest.mark.parametrize("scenario", marked(*SCENARIOS, *SHORT_WEEKS))
def test_alert_fires_in_time_speaks_of_its_query_and_resolves(scenario, tmp_path):
    """Fires when it must; names query and application, leaves no template open, links to both."""
    name = "SparkStream" + scenario.alert.partition("/")[0]
    for page in play(scenario, tmp_path):
        app = "noisy" if "noisy" in page else "shop"
        assert "<no value>" not in page
        assert "error expanding template" not in page
        assert f'runbook_url="docs/runbooks/{name}.md"' in page
        assert f"var-job=spark&var-app={app}" in page
        assert re.search(rf"trace_url=.+{app}", page)
        assert 0 <= since(page) <= scenario.fires - held_seconds(scenario)


def since(page: str) -> float:
    """The time at which it began, by the page; promtool's clock begins in 1970."""
    found = re.search(r'since="([^"]+)"', page)
    assert found, page
    return time_of(found[1])


def held_seconds(scenario: Scenario) -> float:
    """How long the alert has been pending when it fires."""
    alert = next(one for one in alerts() if one.key == f"SparkStream{scenario.alert}")
    settings = (scenario.export or Export()).settings
    return float(settings.value(alert.hold)) if alert.hold else 0.0


def test_firing_check_can_fail(tmp_path):
    """A page that comes one evaluation late is seen."""
    late = replace(SCENARIOS[0], fires=SCENARIOS[0].fires - SCENARIOS[0].step)
    with pytest.raises(AssertionError, match="SparkStreamQueryFailed"):
        play(late, tmp_path)


@pytest.mark.integration
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_alert_behaves_the_same_on_prometheus_3(scenario, tmp_path, monkeypatch):
    """On 3.x too, where ranges are open on the left: within one evaluation of the same time."""
    monkeypatch.setenv("PROMTOOL", promtool3())
    play(scenario, tmp_path, slack=scenario.step)


@pytest.mark.integration
def test_rules_are_clean_for_prometheus_3():
    """The newer promtool has nothing to say about the rule file."""
    command = [promtool3(), "check", "rules", "--lint=all", "--lint-fatal", str(RULES)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_watchdog_always_fires(tmp_path):
    """The dead man's switch is pressed from the first evaluation on."""
    test = RuleTest(input_series(healthy, HOUR, 60), 60)
    for at in (0, HOUR):
        test.expect(at, 'alertname="SparkStreamWatchdog"', 1)
    run(tmp_path, 60, test)
