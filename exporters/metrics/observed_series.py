"""The numbers of `df.observe()`: as they are, and added up where the settings call them counts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from streamgauge.model.events import Progress

Observed = tuple[str, str, float]  # name of the observation, field, value


def speaks_of(batch: Progress, name: str) -> bool:
    """Whether the batch says something of this observation that replaces what is known.

    Spark runs batches without input, to move the watermark and to evict state. There an observation
    of the input counts 0 rows, which says nothing; one behind an aggregation may count what was emitted.
    """
    fields = batch.observed.get(name)
    if batch.has_data:
        return bool(batch.observed) if fields is None else True
    return fields is not None and any(fields.values())


def observed_of(batch: Progress) -> Iterator[Observed]:
    """The gauges that the batch sets."""
    for name, fields in batch.observed.items():
        if speaks_of(batch, name):
            yield from ((name, field, value) for field, value in fields.items())


def counted_of(batch: Progress, counts: Sequence[str]) -> Iterator[Observed]:
    """What the batch adds to counters: fields that `counts` names, as `name.field` or with `*`.

    A replayed batch counts: the attempt before it was not committed, and Spark sent no event of it.
    What is negative is no count and is never added; what is not finite never gets here.
    """
    for name, fields in batch.observed.items() if counts else ():
        for field, value in fields.items():
            full = f"{name}.{field}"
            if value >= 0 and any(fnmatchcase(full, pattern) for pattern in counts):
                yield name, field, value
