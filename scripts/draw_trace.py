"""Draw traces as a picture: OTLP JSON lines in, SVG out.

    python scripts/draw_trace.py docs/pictures/trace.jsonl docs/pictures/trace.svg

Each trace is a panel with a scale of its own: a first batch takes seconds, the others do not.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

WIDTH, LEFT, RIGHT, ROW, PANEL = 980, 170, 90, 20, 46
COLOURS = {"start": "#7a5cc0", "batch": "#2b6cb0", "phase": "#63b3ed", "error": "#c53030"}
P = "spark.streaming."

Span = dict[str, Any]


def read(file: Path) -> list[list[Span]]:
    """The traces of a file in the order of their start, each with its root first."""
    traces: dict[str, list[Span]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        for group in json.loads(line)["resourceSpans"]:
            for span in group["scopeSpans"][0]["spans"]:
                span["said"] = {
                    a["key"]: next(iter(a["value"].values())) for a in span["attributes"]
                }
                span["start"] = int(span["startTimeUnixNano"])
                span["length"] = int(span["endTimeUnixNano"]) - span["start"]
                traces.setdefault(span["traceId"], []).append(span)
    for spans in traces.values():
        spans.sort(key=lambda s: ("parentSpanId" in s, s["start"]))
    return sorted(traces.values(), key=lambda spans: spans[0]["start"])


def title(root: Span) -> str:
    """What a panel shows."""
    said = root["said"]
    words = [root["name"]]
    if f"{P}batch.id" in said:
        words[0] += f", batch {said[f'{P}batch.id']}"
    if said.get(f"{P}batch.replayed"):
        words.append("replayed")
    if f"{P}start.kind" in said:
        words.append(said[f"{P}start.kind"])
    if f"{P}start.gap" in said:
        words.append(
            f"{said[f'{P}start.gap']} s after the last run {said[f'{P}start.last_outcome']}"
        )
    if said.get(f"{P}start.replayed"):
        words.append(f"batch {said[f'{P}start.batch.id']} runs again")
    if root["status"]["code"] == 2:
        words.append(f"ERROR {said['error.type']}: {root['status']['message']}")
    return " · ".join(words)


def draw(traces: list[list[Span]]) -> str:
    """The whole picture."""
    parts, top = [], 14
    for spans in traces:
        root = spans[0]
        parts.append(_text(12, top + 12, title(root), "title"))
        parts.append(_text(12, top + 28, f"trace {root['traceId']}", "ids"))
        scale = (WIDTH - LEFT - RIGHT) / max(root["length"], 1)
        for number, span in enumerate(spans):
            y = top + PANEL - 8 + number * ROW
            parts += _row(
                span, y, LEFT + (span["start"] - root["start"]) * scale, span["length"] * scale
            )
        top += PANEL + len(spans) * ROW + 8
    style = (
        "text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1a202c}"
        ".title{font-weight:600}.ids{font:10px ui-monospace,monospace;fill:#718096}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}">'
        f"<style>{style}</style>"
        f'<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _row(span: Span, y: int, x: float, width: float) -> list[str]:
    kind = "phase" if "parentSpanId" in span else span["name"].partition(" ")[0]
    colour = COLOURS["error" if span["status"]["code"] == 2 else kind]
    indent = 28 if "parentSpanId" in span else 12
    length = f"{span['length'] / 1e6:,.0f} ms"
    return [
        _text(indent, y + 13, span["name"]),
        f'<rect x="{x:.1f}" y="{y + 3}" width="{max(width, 1):.1f}" height="{ROW - 7}" rx="2" fill="{colour}"/>',
        _text(x + max(width, 1) + 5, y + 13, length, "ids"),
    ]


def _text(x: float, y: float, words: str, kind: str = "name") -> str:
    return f'<text x="{x:.1f}" y="{y}" class="{kind}">{escape(words)}</text>'


if __name__ == "__main__":
    source, target = (Path(name) for name in sys.argv[1:3])
    target.write_text(draw(read(source)), encoding="utf-8")
