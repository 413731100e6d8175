"""Grafana's own code over the answers of a Prometheus: what it makes of every panel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "grafana" / "preview"))

from preview import Preview, bundle, panels_of, read_boards

REPORT = Path(__file__).with_name("grafana_report.mjs")
EVERY = {name: "$__all" for name in ("job", "app", "query")}


def chosen_on(board: dict[str, Any], query: str | None = None) -> dict[str, Any]:
    """What a person has chosen: everything, or one query."""
    single = {"datasource": "prometheus", "traces": "tempo", "runbooks": "https://wiki/runbooks"}
    return {**single, **EVERY, **({"query": [query]} if query else {})}


def ask(preview: Preview, board: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    """The answers to every panel that asks Prometheus, by the panel's id."""
    return {
        str(panel["id"]): [preview.answer(target, variables) for target in panel["targets"]]
        for panel in panels_of(board)
        if panel["type"] != "row" and panel["datasource"]["type"] == "prometheus"
    }


def report(preview: Preview, folder: Path, queries: dict[str, str] | None = None) -> dict[str, Any]:
    """What Grafana's code makes of all boards; `queries` says what is chosen on which, else everything."""
    boards, named = read_boards(), queries or {}
    given = {
        "boards": boards,
        "answers": {
            uid: ask(preview, board, {"query": named[uid]} if uid in named else {})
            for uid, board in boards.items()
        },
        "chosen": {uid: chosen_on(board, named.get(uid)) for uid, board in boards.items()},
        "range": {"from": round(preview.begin * 1000), "to": round(preview.end * 1000)},
    }
    (folder / "input.json").write_text(json.dumps(given))
    program = folder / "report.cjs"
    program.write_text(bundle(REPORT, "--platform=node", "--format=cjs"))
    done = subprocess.run(
        ["node", str(program), str(folder / "input.json")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found
