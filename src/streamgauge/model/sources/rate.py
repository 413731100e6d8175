"""The rate source: its offset counts the seconds since it began, not rows.

Each trigger takes all the seconds there are, so the latest offset is always the end: as a backlog
that would be a 0 that says nothing.
"""

from __future__ import annotations

from .reader import Reader

READER = Reader(kind="rate", beginnings=("RateStreamV2[",))
