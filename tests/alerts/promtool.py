"""Runs the real promtool on worlds and asks which alerts fired."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from streamgauge.grafana.alerts.catalogue import GROUPS
from streamgauge.grafana.alerts.prometheus import Export, rule_groups
from streamgauge.grafana.alerts.settings import duration_text

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "grafana" / "alerts" / "rules" / "streamgauge.rules.yml"
FIRING = 'alertstate="firing"'


def program(name: str) -> str:
    """The path of a program that `make setup` brings; fails with how to get it."""
    place = ROOT / ".programs" / "bin" / name
    found = str(place) if place.exists() else shutil.which(name)
    if not found:
        raise AssertionError(f"{name} is not here; `make setup` brings it from Debian's packages")
    return found


def promtool() -> str:
    """The promtool under test: PROMTOOL names another one, such as a 3.x."""
    return os.environ.get("PROMTOOL") or program("promtool")


def promtool3() -> str:
    """The promtool of the 3.x line that `make setup-integration` builds."""
    built = ROOT / ".programs" / "bin" / "promtool3"
    if not built.exists():
        raise AssertionError("promtool3 is not here; `make setup-integration` builds it with Go")
    return str(built)


@dataclass
class RuleTest:
    """One test group of `promtool test rules`: series, and what must be firing when."""

    series: list[dict[str, Any]]
    step: int
    expectations: list[dict[str, Any]] = field(default_factory=list)

    def expect(self, at: int, matchers: str, count: int) -> None:
        """At `at`, exactly `count` firing alerts match."""
        self.expect_value(at, f"count(ALERTS{{{FIRING},{matchers}}})", count)

    def expect_value(self, at: int, expr: str, value: float) -> None:
        """At `at`, the expression gives this one value; 0 is nothing."""
        samples = [{"labels": "{}", "value": value}] if value else []
        self.expectations.append(
            {"eval_time": duration_text(at) if at else "0s", "expr": expr, "exp_samples": samples}
        )

    def as_dict(self) -> dict[str, Any]:
        """Promtool's form."""
        return {
            "interval": duration_text(self.step),
            "input_series": self.series,
            "promql_expr_test": self.expectations,
        }


def rules_of(folder: Path, alert: str | tuple[str, ...], export: Export | None = None) -> Path:
    """A rule file with this alert, or these, as shipped, and the recorded series they rest on: much faster.

    `alert` may name one variant: `SparkStreamStateBloat/size`.
    """
    names = {alert} if isinstance(alert, str) else set(alert)
    groups = rule_groups(export or Export())
    recorded = {r["record"]: r["expr"] for g in groups for r in g["rules"] if "record" in r}
    chosen = [r for g in groups for r in g["rules"] if names & set(_names_of(r))]
    wanted = {r["expr"] for r in chosen}
    asked = {text for r in chosen for text in r["annotations"].values()}
    for _ in recorded:
        wanted |= {e for name, e in recorded.items() if any(name in w for w in wanted | asked)}
    for group in groups:
        group["rules"] = [r for r in group["rules"] if r["expr"] in wanted]
    path = folder / "rules.json"
    path.write_text(json.dumps({"groups": [group for group in groups if group["rules"]]}))
    return path


def _names_of(rule: dict[str, Any]) -> tuple[str, ...]:
    """What a rule may be called by: the alert's name, with and without its variant."""
    name = rule.get("alert", "")
    return (name, f"{name}/{rule.get('labels', {}).get('variant', '')}")


def _used_by(rules: Path, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups without the series that no rule in the file asks for: promtool loads them all."""
    text = rules.read_text()
    return [
        {
            **group,
            "input_series": [
                one for one in group["input_series"] if one["series"].partition("{")[0] in text
            ],
        }
        for group in groups
    ]


def run(folder: Path, step: int, *tests: RuleTest, rules: Path = RULES) -> None:
    """Run the tests; raise with promtool's words when an expectation is not met."""
    done = run_raw(folder, step, [test.as_dict() for test in tests], rules)
    assert done.returncode == 0, done.stdout + done.stderr


def run_raw(
    folder: Path, step: int, groups: list[dict[str, Any]], rules: Path = RULES
) -> subprocess.CompletedProcess[str]:
    """Run promtool on test groups given in its own form; JSON is YAML."""
    document = {
        "rule_files": [str(rules)],
        "evaluation_interval": duration_text(step),
        "group_eval_order": [group.name for group in GROUPS],
        "tests": _used_by(rules, groups),
    }
    path = folder / "rules_test.json"
    path.write_text(json.dumps(document))
    return subprocess.run(
        [promtool(), "test", "rules", str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=500,
        # A short life in little memory: collecting garbage took a third of its time.
        env={**os.environ, "GOGC": "off", "GOMEMLIMIT": "1GiB", "GOMAXPROCS": "1"},
    )


def time_of(text: str) -> float:
    """The time that `humanizeTimestamp` wrote, such as `2026-11-16 14:16:38.668 +0000 UTC`."""
    return datetime.fromisoformat(text.removesuffix(" +0000 UTC") + "+00:00").timestamp()


def annotations_of(output: str) -> list[str]:
    """The annotations of the alerts that promtool got, as it prints them."""
    return re.findall(r"Annotations:(\{.+\})", output)
