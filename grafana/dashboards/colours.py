"""The few colours of all boards: red and orange are bad, and nothing that is well wears them."""

from __future__ import annotations

from .board import Override

GREY, GREEN, BLUE, PURPLE = "#6e7681", "#56a64b", "#5794f2", "#8f3bb8"
YELLOW, ORANGE, RED = "#e0b400", "#ff9830", "#e02f44"
TEXT = "text"
DASHED = (
    ("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
    ("custom.fillOpacity", 0),
)


NO_DATA = "no data"


def limit(pattern: str) -> Override:
    """The line that must not be crossed: red and dashed."""
    return Override(pattern, (("color", RED), *DASHED))
