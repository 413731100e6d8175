"""Alertmanager's configuration: one broken driver is one page.

Inhibition always compares `job` **and** `app`: one dead driver must not silence another
application. It never runs in a circle: of two alerts that inhibited each other neither would page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .catalogue import alert_names
from .rule import PREFIX
from .yamltext import dump

if TYPE_CHECKING:
    from .settings import Settings

HEADER = (
    "# Written from grafana/alerts/alertmanager.py. Put your own receivers in the place of the\n"
    "# webhooks; keep group_by and inhibit_rules: they make one page of one broken driver.\n"
    "#\n"
    "# A team with its own pager: copy this in front of the last route, and add its receivers.\n"
    "#    - matchers:\n"
    '#        - "team=\\"YOUR_TEAM\\""\n'
    "#      receiver: YOUR_TEAM-tickets\n"
    "#      routes:\n"
    "#        - matchers:\n"
    '#            - "severity=\\"critical\\""\n'
    "#          receiver: YOUR_TEAM-pager\n"
)
QUERY = ["job", "app", "query"]
APP = ["job", "app"]

# The alerts that say a query is down; what else such a query does is a consequence.
DOWN = ("QueryFailed", "QueryVanished")
SYMPTOMS = (
    "QueryMissing",
    "QueryStalled",
    "CommitsStalled",
    "BatchStuck",
    "SourceNotAdvancing",
    "FallingBehind",
    "BatchOverrun",
    "WatermarkStuck",
    "BatchDurationRegression",
    "ProcessingCostRegression",
    "ThroughputDrop",
    "FreshnessBudgetBurn",
)
# What follows from a stall, but not from a query that is gone.
STALL_SYMPTOMS = tuple(name for name in SYMPTOMS if name not in ("QueryMissing", "QueryStalled"))

# (sources, targets, labels that must be equal), strongest cause first.
INHIBITIONS: tuple[tuple[tuple[str, ...], tuple[str, ...], list[str]], ...] = (
    (("RestartLoop",), (*DOWN, *SYMPTOMS, "AgentBlind"), QUERY),
    (DOWN, (*SYMPTOMS, "AgentBlind"), QUERY),
    ((*DOWN, "RestartLoop"), ("AgentDown",), APP),
    (("AgentDown",), (*SYMPTOMS, "AgentBlind", "AgentEventsDropped"), APP),
    (("AgentBlind",), SYMPTOMS, QUERY),
    (("QueryStalled",), STALL_SYMPTOMS, QUERY),
    (("CommitsStalled",), tuple(n for n in STALL_SYMPTOMS if n != "CommitsStalled"), QUERY),
    (("AllRowsLate",), ("LateRowsDropped",), QUERY),
    (("FutureEventTime",), ("WatermarkStuck",), QUERY),
    (("FallingBehind",), ("BatchOverrun",), QUERY),
)


def config(settings: Settings) -> dict[str, Any]:
    """Alertmanager's configuration as plain data."""
    return {
        "route": _route(settings),
        "inhibit_rules": [*(_inhibition(*row) for row in INHIBITIONS), _SAME_ALERT],
        "receivers": _receivers(settings),
    }


def alertmanager_file(settings: Settings) -> str:
    """The text of `docker/alertmanager.yml`."""
    return HEADER + dump(config(settings))


def _route(settings: Settings) -> dict[str, Any]:
    """Dead man's switch first; then by severity, in what is not development."""
    return {
        "receiver": "tickets",
        "group_by": ["alertname", "app"],
        "group_wait": settings.duration("group_wait"),
        "group_interval": settings.duration("group_interval"),
        "repeat_interval": settings.duration("repeat_interval"),
        "routes": [
            {
                "matchers": [f'alertname="{PREFIX}Watchdog"'],
                "receiver": "deadman",
                "group_wait": "0s",
                "group_interval": settings.duration("watchdog_interval"),
                "repeat_interval": settings.duration("watchdog_interval"),
            },
            # Development never wakes anybody.
            {"matchers": ['env=~"dev|test"'], "receiver": "tickets"},
            {"matchers": ['severity="critical"'], "receiver": "pager"},
        ],
    }


def _names(names: tuple[str, ...]) -> str:
    unknown = {PREFIX + name for name in names} - set(alert_names())
    if unknown:
        raise ValueError(f"inhibition names alerts that are not in the table: {sorted(unknown)}")
    return f'alertname=~"{PREFIX}({"|".join(names)})"'


def _inhibition(
    sources: tuple[str, ...], targets: tuple[str, ...], equal: list[str]
) -> dict[str, Any]:
    return {
        "source_matchers": [_names(sources)],
        "target_matchers": [_names(targets)],
        "equal": list(equal),
    }


_SAME_ALERT = {
    "source_matchers": ['component="streamgauge"', 'severity="critical"'],
    "target_matchers": ['component="streamgauge"', 'severity="warning"'],
    "equal": ["alertname", *QUERY, "operator"],
}


def _receivers(settings: Settings) -> list[dict[str, Any]]:
    urls = {
        "pager": "pager_url",
        "tickets": "ticket_url",
        "deadman": "deadman_url",
    }
    return [
        {
            "name": name,
            "webhook_configs": [
                {"url": settings.number(parameter), "send_resolved": name != "deadman"}
            ],
        }
        for name, parameter in urls.items()
    ]
