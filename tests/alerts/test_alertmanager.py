"""Grouping, routing and inhibition, on the real Alertmanager."""

from __future__ import annotations

import subprocess

import pytest
from alert_stack import Alertmanager, Pager
from promtool import ROOT, program

from streamgauge.grafana.alerts.alertmanager import INHIBITIONS, config
from streamgauge.grafana.alerts.catalogue import GROUPS, alerts
from streamgauge.grafana.alerts.settings import Settings

CONFIG = ROOT / "docker" / "alertmanager.yml"
CATEGORY = {alert.full_name: group.category for group in GROUPS for alert in group.alerts}
SEVERITY = {alert.full_name: alert.severity for alert in alerts()}


def alert(name: str, *, app: str = "shop", query: str = "", **labels: str) -> dict[str, str]:
    """The labels of a firing alert, as the rules give them."""
    name = f"SparkStream{name}"
    found = {"alertname": name, "job": "spark", "app": app, "component": "streamgauge"}
    found |= {"severity": SEVERITY[name], "category": CATEGORY[name], **labels}
    return {**found, "query": query} if query else found


@pytest.fixture
def pager():
    """A webhook that stands for the pager."""
    with Pager() as running:
        yield running


@pytest.fixture
def alertmanager(pager, tmp_path):
    """The example's configuration with short waits, on loopback."""
    settings = Settings(
        {
            "group_wait": 1,
            "group_interval": 1,
            "pager_url": f"{pager.url}/page",
            "ticket_url": f"{pager.url}/ticket",
            "deadman_url": f"{pager.url}/deadman",
        }
    )
    with Alertmanager(tmp_path, settings) as running:
        yield running


def test_killed_driver_with_five_queries_is_one_page(alertmanager, pager):
    """Five vanished queries, the agent that went with them, and all their symptoms: one page."""
    queries = [f"query-{number}" for number in range(5)]
    firing = [alert("QueryVanished", query=query) for query in queries]
    firing += [alert("FreshnessBudgetBurn", query=query, variant="1h") for query in queries]
    firing += [alert("QueryMissing", query=query) for query in queries]
    firing.append(alert("AgentDown"))
    alertmanager.send(firing)
    page = pager.wait_for("/page", "SparkStreamQueryVanished")
    assert sorted(one["labels"]["query"] for one in page["alerts"]) == queries
    pager.stay_quiet(seconds=4)
    assert [p["groupLabels"]["alertname"] for p in pager.received("/page")] == [
        "SparkStreamQueryVanished"
    ]


def test_dead_driver_does_not_silence_another_application(alertmanager, pager):
    """The other application's own fault still pages, though its job has the same name."""
    alertmanager.send(
        [
            alert("AgentDown"),
            alert("QueryVanished", query="orders"),
            alert("QueryStalled", query="orders"),
            alert("QueryStalled", app="billing", query="orders"),
        ]
    )
    pager.wait_for("/page", "SparkStreamQueryVanished")
    page = pager.wait_for("/page", "SparkStreamQueryStalled")
    assert [one["labels"]["app"] for one in page["alerts"]] == ["billing"]


def test_restart_loop_hides_what_it_is_made_of(alertmanager, pager):
    """A loop is one page, not one for each failure in it."""
    firing = [alert(name, query="orders") for name in ("QueryFailed", "RestartLoop")]
    alertmanager.send(firing)
    pager.wait_for("/page", "SparkStreamRestartLoop")
    assert alertmanager.suppressed() == {"SparkStreamQueryFailed"}


def test_what_a_loop_hid_pages_once_the_loop_is_over(alertmanager, pager):
    """Nobody starts it any more: the loop resolves, and the query that is down pages by itself."""
    names = ("QueryFailed", "QueryMissing", "RestartLoop")
    firing = [alert(name, query="orders") for name in names]
    alertmanager.send(firing)
    pager.wait_for("/page", "SparkStreamRestartLoop")
    assert not any("QueryFailed" in str(page) for page in pager.received("/page"))
    alertmanager.send(firing[:2])
    alertmanager.resolve(firing[2:])
    pager.wait_for("/page", "SparkStreamQueryFailed")
    assert alertmanager.suppressed() == {"SparkStreamQueryMissing"}


def test_clock_that_is_off_hides_nothing(alertmanager, pager):
    """A stall beside a clock that differs is a page."""
    alertmanager.send([alert("ClockSkew"), alert("QueryStalled", query="orders")])
    pager.wait_for("/page", "SparkStreamQueryStalled")
    assert not any("ClockSkew" in source for sources, _, _ in INHIBITIONS for source in sources)


def test_stall_hides_its_symptoms(alertmanager, pager):
    """A hung batch is one page, whatever else goes stale because of it."""
    names = ("QueryStalled", "CommitsStalled", "BatchStuck", "FreshnessBudgetBurn")
    alertmanager.send([alert(name, query="orders") for name in names])
    pager.wait_for("/page", "SparkStreamQueryStalled")
    assert alertmanager.suppressed() == {f"SparkStream{name}" for name in names[1:]}


def test_agent_that_is_down_alone_pages(alertmanager, pager):
    """With no query known to be gone, the agent itself is the page."""
    alertmanager.send([alert("AgentDown")])
    assert pager.wait_for("/page", "SparkStreamAgentDown")


def test_watchdog_goes_to_the_dead_mans_switch(alertmanager, pager):
    """And to nobody else."""
    alertmanager.send([alert("Watchdog")])
    pager.wait_for("/deadman", "SparkStreamWatchdog")
    assert not pager.received("/page")
    assert not pager.received("/ticket")


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (["severity=critical"], "pager"),
        (["severity=warning"], "tickets"),
        (["severity=critical", "team=payments"], "pager"),
        (["severity=warning", "team=payments"], "tickets"),
        (["severity=critical", "team=payments", "env=dev"], "tickets"),
        (["alertname=SparkStreamWatchdog", "severity=none"], "deadman"),
    ],
)
def test_alerts_are_routed_by_severity(labels, receiver):
    """`amtool` sends each to whom it belongs; teams are the user's to add."""
    subprocess.run(
        [
            *(program("amtool"), "config", "routes", "test", f"--config.file={CONFIG}"),
            *(f"--verify.receivers={receiver}", *labels),
        ],
        check=True,
        capture_output=True,
    )


def test_inhibition_compares_job_and_app():
    """No rule without both: one dead driver must not silence another application."""
    for rule in config(Settings())["inhibit_rules"]:
        assert {"job", "app"} <= set(rule["equal"])


def test_inhibition_never_runs_in_a_circle():
    """Of two alerts that inhibit each other, neither would page."""
    targets: dict[str, set[str]] = {}
    for sources, inhibited, _ in INHIBITIONS:
        for source in sources:
            targets.setdefault(source, set()).update(inhibited)

    def reachable(name: str, seen: frozenset[str]) -> set[str]:
        found = targets.get(name, set()) - seen
        return found.union(*(reachable(one, seen | found) for one in found))

    for name in targets:
        assert name not in reachable(name, frozenset()), name
