"""The remedy, step by step, for this very query: resume, replay, backfill or reset.

It only prints. Every step says what must be true before it and whether the files prove it, what it
does to the sink's data, and the option or command to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.checkpoint.restart.circumstances import Restart
from streamgauge.checkpoint.restart.forecast import Forecast, forecast
from streamgauge.checkpoint.restart.verdict import Verdict

from .goal_names import GoalName
from .goals import Goal, Plan, Proof
from .grounds import AlwaysPossible, RangeKept, RangeNotKept, RangeReadable
from .reader_options import starting_options
from .steps import backfill_steps, repair_steps, replay_steps, reset_steps, resume_steps

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint


def make_plan(
    checkpoint: Checkpoint,
    goal: str | None = None,
    restart: Restart | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
) -> Plan:
    """Plan one goal, or say of each whether it is possible. `first`, `last`: batches to read again."""
    restart = restart or Restart()
    seen = forecast(checkpoint, restart)
    span = choose_span(checkpoint, first, last)
    everything = (
        _resume(checkpoint, seen),
        _replay(checkpoint, restart, span),
        _backfill(checkpoint, span),
        _reset(checkpoint, restart),
    )
    possible = [each.goal for each in everything if each.possible]
    return Plan(
        root=checkpoint.store.root,
        alternative=next((each for each in possible if each is not GoalName.RESUME), None),
        goals=tuple(each for each in everything if goal in (None, each.goal)),
        forecast=seen,
    )


def choose_span(
    checkpoint: Checkpoint, first: int | None, last: int | None
) -> tuple[int, int] | None:
    """The batches to read again: those asked for, else the last planned one."""
    newest = checkpoint.offsets.latest
    if newest is None:
        return None
    last = newest if last is None else last
    return (last if first is None else first), last


def _resume(checkpoint: Checkpoint, seen: Forecast) -> Goal:
    if seen.verdict is Verdict.FAILS:
        steps = repair_steps(checkpoint, seen.failure.file if seen.failure else None)
        return Goal(goal=GoalName.RESUME, possible=False, ground=seen, steps=steps)
    known = seen.verdict is not Verdict.UNKNOWN
    steps = resume_steps(checkpoint, seen, Proof.PROVED if known else Proof.UNPROVED)
    return Goal(goal=GoalName.RESUME, possible=True if known else None, ground=seen, steps=steps)


def _replay(checkpoint: Checkpoint, restart: Restart, span: tuple[int, int] | None) -> Goal:
    options = starting_options(checkpoint, span)
    if span is None or options is None:
        return Goal(goal=GoalName.REPLAY, possible=False, ground=RangeNotKept())
    stateful = bool(checkpoint.state.operators)
    return Goal(
        goal=GoalName.REPLAY,
        possible=None if stateful else True,
        ground=RangeKept(*span, stateful=stateful),
        steps=replay_steps(span, options, restart),
    )


def _backfill(checkpoint: Checkpoint, span: tuple[int, int] | None) -> Goal:
    options = starting_options(checkpoint, span, end=True)
    if span is None or options is None:
        return Goal(goal=GoalName.BACKFILL, possible=False, ground=RangeNotKept())
    stateful = bool(checkpoint.state.operators)
    return Goal(
        goal=GoalName.BACKFILL,
        possible=None if stateful else True,
        ground=RangeReadable(*span, stateful=stateful),
        steps=backfill_steps(span, options),
    )


def _reset(checkpoint: Checkpoint, restart: Restart) -> Goal:
    return Goal(
        goal=GoalName.RESET,
        possible=True,
        ground=AlwaysPossible(),
        steps=reset_steps(checkpoint, restart),
    )
