"""The circumstances of a start: what a person or a description knows and the checkpoint does not."""

from __future__ import annotations

import msgspec

from streamgauge.checkpoint.reader.spark_lines import NEWEST


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """How the query will be started again, as far as it is known.

    `sink_batches`: the newest batch in the file sink's `_spark_metadata`, -1 for none.
    `sources` and `stateful`: what the new code has; None when nobody said. `active`: a run that is
    still on this checkpoint or a copy of it, in the `same` application or in an `other` one.
    """

    spark: str = NEWEST
    sink: str | None = None
    output_mode: str | None = None
    trigger: str | None = None
    conf: dict[str, str] = {}
    async_progress: bool | None = None
    sink_batches: int | None = None
    sources: int | None = None
    stateful: bool | None = None
    active: str | None = None
