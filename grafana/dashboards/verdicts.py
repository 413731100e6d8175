"""The verdicts as panels show them: a number, a colour, words."""

from __future__ import annotations

VANISHED = "vanished"  # Prometheus alone can tell; every other verdict is the agent's
# The verdicts from best to worst: the number is what panels show and tables sort by.
VERDICTS = {
    "stopped": (0, "#6e7681"),
    "idle": (1, "#5794f2"),
    "running": (2, "#56a64b"),
    "starting": (3, "#8ab8ff"),
    "catching_up": (4, "#e0b400"),
    "falling_behind": (5, "#ff9830"),
    "restarting": (6, "#fa6400"),
    "blind": (7, "#8f3bb8"),
    "stalled": (8, "#e02f44"),
    "failed": (9, "#7a0d1c"),
    VANISHED: (10, "#e0248f"),
}

VERDICT_TEXTS = {
    str(number): (state.replace("_", " "), colour) for state, (number, colour) in VERDICTS.items()
}
AGENT_VERDICT_TEXTS = {
    number: text for number, text in VERDICT_TEXTS.items() if number != str(VERDICTS[VANISHED][0])
}
