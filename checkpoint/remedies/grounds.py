"""Why a goal is possible or not, as values. No sentences here."""

from __future__ import annotations

import msgspec

from streamgauge.checkpoint.restart.forecast import Forecast


class RangeNotKept(msgspec.Struct, frozen=True):
    """The offsets of the range are not in the checkpoint."""


class RangeKept(msgspec.Struct, frozen=True):
    """The offsets of these batches are kept; `stateful`: rows alone do not rebuild the state."""

    first: int
    last: int
    stateful: bool


class RangeReadable(msgspec.Struct, frozen=True):
    """These batches can be read beside the stream; `stateful` as in `RangeKept`."""

    first: int
    last: int
    stateful: bool


class AlwaysPossible(msgspec.Struct, frozen=True):
    """A reset: nothing can stop it."""


# A forecast is the ground of a resume.
Ground = Forecast | RangeNotKept | RangeKept | RangeReadable | AlwaysPossible
