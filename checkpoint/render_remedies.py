"""Plans, preflights, findings and differences for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .render import describe_range, render_forecast

if TYPE_CHECKING:
    from .diff import Difference
    from .lint import LintFinding
    from .plan import Goal, Plan
    from .preflight import Preflight


def render_plan(plan: Plan) -> str:
    """The advice, then each goal with its steps. Nothing of it was done."""
    lines = [plan.advice, "", "This is a dry run: nothing was changed."]
    for goal in plan.goals:
        lines += ["", *_goal(goal, steps=len(plan.goals) == 1)]
    return "\n".join(lines)


def _goal(goal: Goal, *, steps: bool) -> list[str]:
    word = {True: "possible", False: "not possible", None: "can't be told"}[goal.possible]
    lines = [f"{goal.goal}: {word} ({goal.why})"]
    if not steps:
        return lines
    for number, step in enumerate(goal.steps, 1):
        lines.append(f"  {number}. {step.do}")
        lines.append(f"     needs   {step.needs} ({step.proof})")
        lines.append(f"     effect  {step.effect}")
        lines += [f"     use     {text}" for text in step.use]
    return lines


def render_preflight(found: Preflight) -> str:
    """The verdict, each difference with what it does, then the forecast."""
    reason = f": {found.reason}" if found.reason else ""
    lines = [f"{found.verdict}{reason}", ""]
    lines += [f"{each.effect:14} {each.rule}: {each.what}" for each in found.findings]
    return "\n".join([*lines, "", render_forecast(found.forecast)])


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
