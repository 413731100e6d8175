"""The evidence bundle as JSON and as Markdown, masked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamgauge.masking import mask, mask_all

from .records import evidence_record
from .report_text import render_report
from .wording import mask_lines, to_json

if TYPE_CHECKING:
    from streamgauge.checkpoint.evidence.bundle import Evidence


def dump_evidence(evidence: Evidence) -> str:
    """The bundle as JSON, masked."""
    return to_json(evidence_record(evidence))


def render_evidence(evidence: Evidence) -> str:
    """The bundle as Markdown, masked."""
    lines = [f"# Evidence: {evidence.query or 'a query'}", ""]
    lines += [
        f"- **state**: {evidence.state or 'unknown'}",
        f"- **app**: {evidence.app or 'unknown'}",
    ]
    lines += [f"- **{key.replace('_', ' ')}**: {value}" for key, value in evidence.identity.items()]
    lines += [f"- missing: {text}" for text in evidence.missing]
    if evidence.forecast:
        seen = evidence.forecast
        lines += [
            "",
            "## If it is restarted",
            "",
            f"{seen.verdict}{': ' if seen.reason else ''}{seen.reason}",
        ]
    lines += _table("Runs", ("series", "value"), list(evidence.restarts.items()))
    lines += _table("Sources", ("source", "from", "to"), [
        (each.get("description"), each.get("startOffset"), each.get("endOffset")) for each in evidence.sources
    ])  # fmt: skip
    lines += _table("Stateful operators", ("operator", "rows", "bytes"), [
        (each.get("operatorName"), each.get("numRowsTotal"), each.get("memoryUsedBytes"))
        for each in evidence.operators
    ])  # fmt: skip
    if evidence.checkpoint:
        lines += ["", "## Checkpoint", "", "```", render_report(evidence.checkpoint), "```"]
    lines += _table("Metrics", ("series", "labels", "value"), [
        (each.name, _say_labels(each.labels), each.value) for each in evidence.metrics
    ])  # fmt: skip
    if evidence.events:
        lines += [
            "",
            "## Last event",
            "",
            "```json",
            json.dumps(mask_all(evidence.events[-1]), indent=2)[:8000],
            "```",
        ]
    return mask_lines("\n".join(lines)) + "\n"


def _say_labels(labels: dict[str, str]) -> str:
    return ", ".join(
        f"{key}={value}" for key, value in labels.items() if key not in ("app", "query")
    )


def _table(title: str, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    if not rows:
        return []
    cells = [
        " | ".join(mask(str(cell)).replace("|", "\\|").replace("\n", " ")[:300] for cell in row)
        for row in rows
    ]
    return [
        "",
        f"## {title}",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *(f"| {row} |" for row in cells),
    ]
