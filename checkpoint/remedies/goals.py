"""The records of a plan: goals, their steps, and the advice."""

from __future__ import annotations

import msgspec

from streamgauge.checkpoint.reader.text_enum import TextEnum
from streamgauge.checkpoint.restart.forecast import Forecast

from .goal_names import GoalName
from .grounds import Ground
from .wording import say_advice, say_why


class Proof(TextEnum):
    """Whether the files prove what a step needs."""

    PROVED = "proved"
    UNPROVED = "unproved"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step for a person: what to do, what must hold before it, its effect on the sink's data."""

    do: str
    needs: str
    proof: Proof
    effect: str
    use: tuple[str, ...] = ()


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """One way out: whether the files allow it (None: not known), on which ground, and its steps."""

    goal: GoalName
    possible: bool | None
    ground: Ground
    steps: tuple[Step, ...] = ()

    @property
    def why(self) -> str:
        """The ground in words."""
        return say_why(self.ground)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The goals asked for. `alternative`: the least harmful possible one that is not a resume."""

    root: str
    alternative: GoalName | None
    goals: tuple[Goal, ...]
    forecast: Forecast

    @property
    def advice(self) -> str:
        """The least harmful goal of all, in words."""
        return say_advice(self.forecast, self.alternative)
