"""`plan` and `preflight` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .forecast_text import render_forecast

if TYPE_CHECKING:
    from streamgauge.checkpoint.preflight_check.compare import Preflight
    from streamgauge.checkpoint.remedies.goals import Goal, Plan


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
