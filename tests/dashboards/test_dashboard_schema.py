"""The dashboards against Grafana's own schema package, from npm."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from stage import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HERE = Path(__file__).parent / "schema"
FILES = sorted((ROOT / "grafana" / "dashboards" / "files" / "dashboards").glob("*.json"))


def validate(*files):
    """What the schema package has to say."""
    assert shutil.which("node"), "node is not here; `apt-get install nodejs` brings it"
    assert (HERE / "node_modules").exists(), "`make setup-integration` brings the schema package"
    return subprocess.run(
        ["node", str(HERE / "validate.mjs"), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_dashboards_are_valid():
    """Every field of every board, panel option and override is known and of its type."""
    assert len(FILES) == 8
    done = validate(*FILES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("part", ["board", "options", "custom"])
def test_wrong_dashboard_is_refused(tmp_path, part):
    """The check can fail: an unknown field is named, wherever it is."""
    board = json.loads(FILES[0].read_text())
    panel = next(p for p in board["panels"] if p["type"] == "timeseries")
    places = {
        "board": board,
        "options": panel["options"],
        "custom": panel["fieldConfig"]["defaults"]["custom"],
    }
    places[part]["mistyped"] = 1
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(board))
    done = validate(wrong)
    assert done.returncode == 1
    assert "mistyped" in done.stdout
