"""`lint` and `diff` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .range_text import describe_range
from .wording import say_bytes, say_time

if TYPE_CHECKING:
    from streamgauge.checkpoint.audit.diff import Change, Difference
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
    lines += [_change(each) for each in found.changes]
    for each in found.ranges:
        lines += [
            f"source {each.source} ({each.kind})",
            *(f"  {text}" for text in describe_range(each)),
        ]
    return "\n".join(lines)


def _change(change: Change) -> str:
    """`watermark: 2026-11-16 00:00:00 UTC → 2026-11-16 00:05:00 UTC`."""
    what = change.what
    if what.endswith("watermark ms"):
        return _arrow(what.removesuffix(" ms"), *map(say_time, (change.before, change.after)))
    values = (change.before, change.after)
    if what.endswith(" bytes"):
        sizes = ["none" if each is None else say_bytes(each) for each in values]
        return _arrow(f"{what.removesuffix(' bytes')} size", *sizes)
    return _arrow(what, *map(_plain, values))


def _arrow(what: str, before: str, after: str) -> str:
    return f"{what}: {before} → {after}"


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple) and len(value) == 2:  # first and last version
        return f"{value[0]}-{value[1]}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
