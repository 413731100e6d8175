"""Prometheus rule files, and the same rules as a resource for Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .annotations import annotate
from .catalogue import GROUPS, alert_names
from .rule import PREFIX, Alert, Group, expand, expand_text, own, used_series
from .selector import checked_selector
from .settings import RuleSettingsError, Settings
from .yamltext import dump

HEADER = "# Written by `streamgauge rules export`; a change belongs in grafana/alerts/*.py.\n"
RULE_FILE = "streamgauge.rules.yml"
KUBERNETES_FILE = "streamgauge.prometheusrule.yml"


@dataclass(frozen=True)
class Export:
    """What to write: the rule parameters, matchers for the agent's series, the alerts to leave out.

    Raises `RuleSettingsError` for matchers that Prometheus would refuse, and for alerts that don't exist.
    """

    settings: Settings = field(default_factory=Settings)
    selector: str = ""
    disabled: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "selector", checked_selector(self.selector))
        unknown = self.disabled - set(alert_names())
        if unknown:
            names = ", ".join(sorted(unknown))
            raise RuleSettingsError(
                f"there is no alert {names}; the alerts are: {', '.join(alert_names())}"
            )


def disabled_names(names: list[str]) -> frozenset[str]:
    """Names of alerts with the prefix, which may be left out on the command line."""
    return frozenset(name if name.startswith(PREFIX) else PREFIX + name for name in names)


def rule_groups(export: Export) -> list[dict[str, Any]]:
    """The groups as Prometheus' rule file has them; a group without rules is left out."""
    groups = []
    for group in GROUPS:
        rules = _rules(group, export)
        if rules:
            interval = export.settings.duration(group.interval)
            groups.append({"name": group.name, "interval": interval, "rules": rules})
    return groups


def _rules(group: Group, export: Export) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = [
        {"record": rule.record, "expr": expand(rule.expr, export.settings, export.selector)}
        for rule in group.recordings
    ]
    rules.extend(
        alert_rule(alert, group.category, export)
        for alert in group.alerts
        if alert.full_name not in export.disabled
    )
    return rules


def alert_rule(alert: Alert, category: str, export: Export) -> dict[str, Any]:
    """One alerting rule as the rule file has it."""
    settings = export.settings
    rule: dict[str, Any] = {
        "alert": alert.full_name,
        "expr": expand(own(alert, alert.expr), settings, export.selector),
    }
    if alert.hold:
        rule["for"] = settings.duration(alert.hold)
    if alert.keep:
        rule["keep_firing_for"] = settings.duration(alert.keep)
    rule["labels"] = {"severity": alert.severity, "category": category, "component": "streamgauge"}
    if alert.variant:
        rule["labels"]["variant"] = alert.variant
    rule["annotations"] = {
        name: expand_text(text, settings) for name, text in annotate(alert).items()
    }
    return rule


def rule_file(export: Export) -> str:
    """The text of the Prometheus rule file."""
    return HEADER + dump({"groups": rule_groups(export)})


def kubernetes_rule(export: Export) -> dict[str, Any]:
    """The PrometheusRule resource for the Prometheus operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "streamgauge", "labels": {"app.kubernetes.io/name": "streamgauge"}},
        "spec": {"groups": rule_groups(export)},
    }


def kubernetes_file(export: Export) -> str:
    """The text of that resource."""
    return HEADER + dump(kubernetes_rule(export))


def needed_series(export: Export) -> dict[str, frozenset[str]]:
    """For each of the agent's series that the rules use, the alerts that rest on it.

    A recorded series passes on what it is made of.
    """
    rules = [rule for group in rule_groups(export) for rule in group["rules"]]
    made_of: dict[str, frozenset[str]] = {}
    needed: dict[str, set[str]] = {}
    for rule in rules:
        series = used_series(rule["expr"]).union(
            *(parts for name, parts in made_of.items() if name in rule["expr"])
        )
        if "record" in rule:
            made_of[rule["record"]] = series
            continue
        for name in series:
            needed.setdefault(name, set()).add(rule["alert"])
    return {name: frozenset(needed[name]) for name in sorted(needed)}
