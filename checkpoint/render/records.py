"""The records of `--json`: plain data in a fixed order, where typed causes are sentences.

The keys are an interface; the records they are made from are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamgauge.checkpoint.restart.wording import say_broken, say_moment, say_state_doubt

if TYPE_CHECKING:
    from streamgauge.checkpoint.evidence.bundle import Evidence
    from streamgauge.checkpoint.preflight_check.compare import Preflight
    from streamgauge.checkpoint.preflight_check.findings import Finding
    from streamgauge.checkpoint.remedies.goals import Goal, Plan
    from streamgauge.checkpoint.restart.failures import Failure
    from streamgauge.checkpoint.restart.forecast import Forecast
    from streamgauge.checkpoint.restart.state_checks import StateNeed

Record = dict[str, Any]


def forecast_record(seen: Forecast) -> Record:
    """What `restart --json` prints."""
    return {
        "spark": seen.spark,
        "verdict": seen.verdict,
        "reason": seen.reason,
        "failure": _failure_record(seen.failure),
        "batch": seen.batch,
        "replayed": seen.replayed,
        "then": seen.then,
        "written": seen.written,
        "ranges": seen.ranges,
        "watermark_ms": seen.watermark_ms,
        "overridden": seen.overridden,
        "state": [_need_record(each) for each in seen.state],
        "sink": seen.sink,
        "sink_effect": seen.sink_effect,
        "sink_effects": seen.sink_effects,
        "assumptions": seen.assumptions,
        "notes": seen.notes,
    }


def _failure_record(failure: Failure | None) -> Record | None:
    if failure is None:
        return None
    return {
        "error": failure.error,
        "message": failure.message,
        "file": failure.file,
        "when": say_moment(failure),
        "instead": failure.instead,
    }


def _need_record(need: StateNeed) -> Record:
    return {
        "operator": need.operator,
        "name": need.name,
        "version": need.version,
        "stores": need.stores,
        "ready": need.ready,
        "missing": need.missing,
        "broken": [say_broken(each) for each in need.broken],
        "unproved": [say_state_doubt(each) for each in need.unproved],
    }


def plan_record(plan: Plan) -> Record:
    """What `plan --json` prints."""
    return {
        "root": plan.root,
        "advice": plan.advice,
        "goals": [_goal_record(each) for each in plan.goals],
        "forecast": forecast_record(plan.forecast),
    }


def _goal_record(goal: Goal) -> Record:
    return {
        "goal": goal.goal,
        "possible": goal.possible,
        "why": goal.why,
        "steps": goal.steps,
    }


def preflight_record(found: Preflight) -> Record:
    """What `preflight --json` prints."""
    return {
        "verdict": found.verdict,
        "reason": found.reason,
        "findings": [_finding_record(each) for each in found.findings],
        "forecast": forecast_record(found.forecast),
    }


def _finding_record(finding: Finding) -> Record:
    return {
        "rule": finding.rule,
        "effect": finding.effect,
        "what": finding.what,
        "failure": _failure_record(finding.failure),
    }


def evidence_record(evidence: Evidence) -> Record:
    """What `evidence --json` prints."""
    plain = {name: getattr(evidence, name) for name in evidence.__struct_fields__}
    seen = evidence.forecast
    return plain | {"forecast": None if seen is None else forecast_record(seen)}
