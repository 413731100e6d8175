"""The rate source by micro-batch: `{"offset": 140, "timestamp": 7000}` counts rows; it has no end."""

from __future__ import annotations

from typing import Any

from .marks import Marks, read_marks
from .reader import Reader


def _marks(offset: Any) -> Marks | None:
    if not isinstance(offset, dict) or "timestamp" not in offset:
        return None
    return read_marks({"rows": {"0": offset.get("offset")}})


READER = Reader(kind="rate-micro-batch", beginnings=("RatePerMicroBatchStream[",), marks=_marks)
