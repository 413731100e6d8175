"""Grafana's own code over the answers of a Prometheus: what it makes of every panel."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "grafana" / "preview"))

from preview import Preview, bundle, panels_of, read_boards

GREY = "#6e7681"
# What the words behind a number are worth, by unit.
_SECONDS = {
    **{
        "ns": 1e-9,
        "µs": 1e-6,
        "ms": 1e-3,
        "s": 1,
        "min": 60,
        "mins": 60,
        "hour": 3600,
        "hours": 3600,
    },
    **{"day": 86400, "days": 86400, "week": 604800, "weeks": 604800},
    **{"year": 31556900, "years": 31556900},
}
_SIZES = {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)}
_WORTH = {
    "s": _SECONDS,
    "m": {word: seconds / 60 for word, seconds in _SECONDS.items()},
    "percentunit": {"%": 0.01},
    "short": {"": 1, "K": 1e3, "Mil": 1e6, "Bil": 1e9},
    "none": {"": 1},
    "bytes": {"B": 1, **_SIZES},
    "Bps": {"B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9},
}
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


# ---- what may be wrong ------------------------------------------------------------------------


def reads_as(text: str, unit: str, value: float) -> bool:
    """Whether the text, read by a person, is the value: the same to three digits or to what is shown."""
    found = re.fullmatch(r"(-?[\d.]+)\s?(\D*)", text)
    if not found or found[2] not in _WORTH[unit]:
        return False
    worth = _WORTH[unit][found[2]]
    shown = 10.0 ** -len(found[1].partition(".")[2]) * worth
    return math.isclose(float(found[1]) * worth, value, rel_tol=0.006, abs_tol=shown)


def wrong_text(one: dict[str, Any]) -> str:
    """What is wrong with the text of a value; nothing for what is absent, which other checks are about."""
    value = one.get("value")
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    key = f"{value:g}" if isinstance(value, int | float) else value
    if key in one["words"]:
        word = one["words"][key]
        fine = one["text"] == word["text"] and one["color"].startswith(word["color"][:4])
        fine = fine or not word["color"].startswith("#")
    elif isinstance(value, str):
        fine = one["text"] == value
    else:
        fine = reads_as(one["text"], one["unit"], value)
    return "" if fine else f"{value} reads {one['text']} ({one['color']})"


def wrong_absence(panel: dict[str, Any]) -> list[str]:
    """Absent values that don't say so, or wear another colour than grey."""
    if "absent" in panel:
        return [
            f"absent: {one}"
            for one in panel["absent"]
            if (one["text"], one["color"]) != ("no data", GREY)
        ]
    if panel["type"] in {"state-timeline", "status-history"}:
        fixed = all(colour == {"mode": "fixed", "fixedColor": GREY} for colour in panel["colours"])
        words = {one["text"] for one in panel["nothing"]} == {"no data"}
        return [] if fixed and words else ["absent: the legend would be wrong"]
    return []


def wrong_rows(panel: dict[str, Any], columns: list[str]) -> list[str]:
    """Columns that were not asked for, and lines that should be one."""
    stray = [name for name in panel["columns"] if name not in columns]
    keys = [
        tuple(
            cell["value"]
            for name, cell in row.items()
            if isinstance(cell.get("value"), str) and cell["value"]
        )
        for row in panel["rows"]
    ]
    twice = {key for key in keys if keys.count(key) > 1}
    return [f"stray column {name}" for name in stray] + [f"two lines for {key}" for key in twice]


def faults(found: dict[str, Any]) -> list[str]:
    """Everything that Grafana's code makes wrong of the panels."""
    titles = {
        (uid, panel["title"]): list(panel["transformations"][1]["options"]["renameByName"].values())
        for uid, board in read_boards().items()
        for panel in panels_of(board)
        if panel["type"] == "table" and "transformations" in panel
    }
    return [
        f"{panel['board']}: {panel['title']}: {fault}"
        for panel in found["panels"]
        for fault in _faults(panel, titles)
    ]


def _faults(panel: dict[str, Any], titles: dict[tuple[str, str], list[str]]) -> list[str]:
    wrong = [
        f"override {one['pattern']} meets {one['met']} fields, unknown are {one['unknown']}"
        for one in panel["overrides"]
        if not one["met"] or one["unknown"]
    ]
    wrong += wrong_absence(panel)
    values = panel.get("values") or [cell for row in panel.get("rows", ()) for cell in row.values()]
    wrong += [text for text in map(wrong_text, values) if text][:3]
    if panel["type"] == "table":
        wrong += wrong_rows(panel, titles[panel["board"], panel["title"]])
    names = panel.get("names", ())
    if panel["type"] != "heatmap" and len(set(names)) < len(names):
        wrong.append(
            "lines share a name: " + ", ".join(sorted({n for n in names if names.count(n) > 1}))
        )
    return wrong
