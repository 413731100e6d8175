"""The dashboards as grafana/dashboard-linter sees them."""

from __future__ import annotations

import subprocess

import pytest
from stage import ROOT

pytestmark = pytest.mark.integration

FILES = sorted((ROOT / "grafana" / "dashboards" / "files" / "dashboards").glob("*.json"))
LINTER = ROOT / ".programs" / "bin" / "dashboard-linter"


def lint(path, *words):
    """What the linter says of a dashboard, and whether that is nothing."""
    assert LINTER.exists(), "`make setup-integration` builds dashboard-linter"
    command = [str(LINTER), "lint", "--strict", *words, str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    return done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_linter_has_nothing_to_say(path):
    """Neither an error nor a warning, but for what `.lint` excludes with its reason."""
    fine, said = lint(path)
    assert fine, said


def test_linter_would_say_something(tmp_path):
    """Without the exclusions it does: they are read, and none is there for nothing."""
    nothing = tmp_path / "lint"
    nothing.write_text("{}")
    fine, said = lint(FILES[0].with_name("streamgauge-query.json"), "--config", str(nothing))
    assert not fine
    for words in (
        "is missing the instance template",
        "instance selector not found",
        "should be named 'tempo_datasource'",
        "no expression found in input",
    ):
        assert words in said
