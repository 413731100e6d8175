"""Every file that is written from the boards and committed, and the command that writes them.

python -m streamgauge.grafana.dashboards.documents [ROOT]
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamgauge.grafana.alerts.documents import replace_part

from .board import Board, Panel
from .catalogue import BOARDS
from .provisioning import provisioning_files
from .render import describe, render

FOLDER = "grafana/dashboards/files"


def whole_files() -> dict[str, str]:
    """Path in the repository and text of each file that is written whole."""
    return {
        **{f"{FOLDER}/dashboards/{board.uid}.json": render(board) for board in BOARDS},
        **{f"{FOLDER}/{name}": text for name, text in provisioning_files().items()},
    }


def parts() -> dict[tuple[str, str], str]:
    """Text of each part of a hand-written file, by path and name of the part."""
    return {
        ("docs/dashboards.md", "boards"): "\n\n".join(_chapter(board) for board in BOARDS),
        ("docs/dashboards.md", "conditions"): _conditions(),
    }


def _chapter(board: Board) -> str:
    lines = [
        f"### {board.title}",
        "",
        f"`{board.uid}`. {board.about}",
        "",
        f"![Preview of {board.title}](pictures/{board.uid}.png)",
        "",
        "| panel | what it says |",
        "|---|---|",
        *(f"| {panel.title} | {describe(panel)} |" for panel in board.panels),
    ]
    return "\n".join(lines)


def _conditions() -> str:
    rows = ["| when | panels |", "|---|---|"]
    found: dict[str, list[str]] = {}
    for board in BOARDS:
        for panel in board.panels:
            if panel.condition:
                found.setdefault(panel.condition, []).append(_named(board, panel))
    rows.extend(f"| {when} | {'; '.join(panels)} |" for when, panels in found.items())
    return "\n".join(rows)


def _named(board: Board, panel: Panel) -> str:
    return f"{board.title}: {panel.title}"


def expected_files(root: Path) -> dict[Path, str]:
    """What every generated file should hold, given the hand-written text around the parts."""
    files = {root / path: text for path, text in whole_files().items()}
    for (path, name), body in parts().items():
        place = root / path
        files[place] = replace_part(files.get(place) or place.read_text("utf-8"), name, body)
    return files


def write(root: Path) -> list[Path]:
    """Write the files that differ from what is expected, and name them."""
    changed = []
    for path, text in expected_files(root).items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":
    for written in write(Path(sys.argv[1] if len(sys.argv) > 1 else ".")):
        sys.stdout.write(f"{written}\n")
