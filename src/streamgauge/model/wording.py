"""Numbers of a verdict's reason as people say them. Pure."""

from __future__ import annotations

_MOST_DIGITS = 3


def span(seconds: float) -> str:
    """A duration."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def count(number: float, noun: str) -> str:
    """So many of something, such as `1 task` or `3 tasks`."""
    return f"{number:.0f} {noun if number == 1 else noun + 's'}"


def rates(arriving: float, processed: float) -> str:
    """Two rates, with as many digits as it takes to tell them apart."""
    for digits in range(_MOST_DIGITS + 1):
        first, second = f"{arriving:.{digits}f}", f"{processed:.{digits}f}"
        if first != second:
            break
    arrives = "row/s arrives" if first == "1" else "rows/s arrive"
    done = "row/s is processed" if second == "1" else "rows/s are processed"
    return f"{first} {arrives}, {second} {done}"
