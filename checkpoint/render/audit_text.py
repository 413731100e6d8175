"""`lint` and `diff` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .range_text import describe_range

if TYPE_CHECKING:
    from streamgauge.checkpoint.audit.diff import Difference
    from streamgauge.checkpoint.audit.lint import LintFinding


def render_findings(findings: list[LintFinding]) -> str:
    """One line a finding, by checkpoint."""
    if not findings:
        return "nothing found"
    lines: list[str] = []
    for root in dict.fromkeys(each.checkpoint for each in findings):
        lines.append(root)
        lines += [
            f"  {'note' if each.harmless else 'WRONG':6} {each.rule}: {each.what}"
            for each in findings
            if each.checkpoint == root
        ]
    return "\n".join(lines)


def render_difference(found: Difference) -> str:
    """What moved, a line each."""
    if found.same:
        return "nothing moved"
    lines = ["the same query" if found.same_query else "NOT the same query id", ""]
    lines += [f"{each.what}: {each.before} → {each.after}" for each in found.changes]
    for each in found.ranges:
        lines += [
            f"source {each.source} ({each.kind})",
            *(f"  {text}" for text in describe_range(each)),
        ]
    return "\n".join(lines)
