"""The names of the four goals, apart from everything that planning them takes."""

from __future__ import annotations

from streamgauge.checkpoint.reader.text_enum import TextEnum


class GoalName(TextEnum):
    """A way out of trouble, from the least harmful to the most."""

    RESUME = "resume"
    REPLAY = "replay"
    BACKFILL = "backfill"
    RESET = "reset"


GOALS = tuple(each.value for each in GoalName)
