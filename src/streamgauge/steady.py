"""The clock that everything is judged by: it runs on when somebody sets the driver's wall clock.

It begins with the wall time at import and counts monotonic seconds from there. Whatever the model keeps is a
time of this clock; exporters add `wall_offset()` when they write a time for others to read.
"""

from __future__ import annotations

import time

_STEPS_PER_SECOND = (
    4  # a smaller difference is no step, and the same step always gives the same number
)
_READINGS, _TOGETHER_SECONDS = 20, 0.01
_WALL_AT_IMPORT, _MONOTONIC_AT_IMPORT = time.time(), time.monotonic()


def steady_time() -> float:
    """Seconds since the epoch, if nobody has set the clock since the import."""
    return _WALL_AT_IMPORT + (time.monotonic() - _MONOTONIC_AT_IMPORT)


def wall_offset() -> float:
    """Wall clock less steady clock now, to a quarter of a second: 0 until the wall clock is set."""
    for _ in range(_READINGS):
        before, wall, after = steady_time(), time.time(), steady_time()
        if after - before < _TOGETHER_SECONDS:  # else another thread ran between the readings
            break
    return round((wall - (before + after) / 2) * _STEPS_PER_SECOND) / _STEPS_PER_SECOND


def no_offset() -> float:
    """The offset where a test's or a player's clock is all the time there is."""
    return 0.0
