"""Sentences for a plan. For render, JSON and the records' text properties alone."""

from __future__ import annotations

from streamgauge.checkpoint.restart.forecast import Forecast
from streamgauge.checkpoint.restart.verdict import Verdict

from .goal_names import GoalName
from .grounds import AlwaysPossible, Ground, RangeKept, RangeNotKept, RangeReadable


def say_advice(seen: Forecast, alternative: GoalName | None) -> str:
    """The least harmful goal that the files allow; `alternative`: the least harmful but resume."""
    if seen.verdict is Verdict.SAFE:
        return "resume: a plain restart is safe"
    if seen.verdict is Verdict.DUPLICATES:
        return f"resume, and expect batch {seen.batch} twice: {seen.reason}"
    if seen.verdict is Verdict.UNKNOWN:
        return f"find out first: {seen.reason}"
    if seen.verdict is Verdict.LOSS:
        return f"reset with a cleared or new output: {seen.reason}"
    if alternative:
        return f"not resume ({seen.reason}); least harmful of what is left: {alternative}"
    return f"nothing safe is left: a start fails with {seen.reason}"


def say_why(ground: Ground) -> str:
    """Why a goal is possible or not."""
    match ground:
        case Forecast():
            return f"{ground.verdict}{': ' if ground.cause else ''}{ground.reason}"
        case RangeNotKept():
            return "the offsets of this range are not in the checkpoint"
        case RangeKept(first, last, stateful):
            return _with_state(f"offsets of batches {first} to {last} are kept", stateful=stateful)
        case RangeReadable(first, last, stateful):
            text = f"batches {first} to {last} can be read beside the running stream"
            return _with_state(text, stateful=stateful)
        case AlwaysPossible():
            return "always possible; the most harmful"


def _with_state(text: str, *, stateful: bool) -> str:
    if not stateful:
        return text
    return f"{text}, but the query keeps state, which rows of this range alone do not rebuild"
