"""Runs the real promtool on worlds and asks which alerts fired."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.grafana.alerts.catalogue import GROUPS
from streamgauge.grafana.alerts.knobs import duration_text
from streamgauge.grafana.alerts.prometheus import Export, rule_groups

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "grafana" / "alerts" / "rules" / "streamgauge.rules.yml"
PROMTOOL3 = "v0.312.0"  # Prometheus 3.12
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


def build_promtool3() -> str:
    """The path of a 3.x promtool, built with Go from its module proxy the first time.

    As a dependency of an empty module, since `go install` refuses modules with replacements.
    """
    home = ROOT / ".programs" / "promtool3"
    built = home / "promtool"
    if not built.exists():
        go = shutil.which("go")
        if not go:
            raise AssertionError("Go is not here; it builds the 3.x promtool (package golang-go)")
        home.mkdir(parents=True, exist_ok=True)
        (home / "go.mod").write_text("module promtool3\n\ngo 1.24\n")
        package = "github.com/prometheus/prometheus/cmd/promtool"
        for words in (["get", f"{package}@{PROMTOOL3}"], ["build", "-o", str(built), package]):
            subprocess.run([go, *words], cwd=home, check=True, capture_output=True)
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


def rules_of(folder: Path, alert: str, export: Export | None = None) -> Path:
    """A rule file with this alert, as shipped, and the recorded series it rests on: much faster."""
    groups = rule_groups(export or Export())
    recorded = {r["record"]: r["expr"] for g in groups for r in g["rules"] if "record" in r}
    wanted = {r["expr"] for g in groups for r in g["rules"] if r.get("alert") == alert}
    for _ in recorded:
        wanted |= {expr for name, expr in recorded.items() if any(name in w for w in wanted)}
    for group in groups:
        group["rules"] = [r for r in group["rules"] if r["expr"] in wanted]
    path = folder / "rules.json"
    path.write_text(json.dumps({"groups": [group for group in groups if group["rules"]]}))
    return path


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
        "tests": groups,
    }
    path = folder / "rules_test.json"
    path.write_text(json.dumps(document))
    return subprocess.run(
        [promtool(), "test", "rules", str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=500,
    )


def annotations_of(output: str) -> list[str]:
    """The annotations of the alerts that promtool got, as it prints them."""
    return re.findall(r"Annotations:(\{.+\})", output)
