"""A histogram that one thread writes and any may read: a list of counts, swapped whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from prometheus_client.samples import Exemplar, Sample

BATCH_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600)
AGENT_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1)


class Histogram:
    """Cumulative buckets in Prometheus' sense, each with its newest exemplar."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._names = (*(str(float(bound)) for bound in bounds), "+Inf")
        self._counts = [0] * (len(bounds) + 1)
        self._exemplars: list[Exemplar | None] = [None] * (len(bounds) + 1)
        self._sum = 0.0

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self._counts)

    def observe(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Count one value."""
        bucket = bisect_left(self._bounds, value)
        self._counts[bucket] += 1
        self._sum += value
        if exemplar is not None:
            self._exemplars[bucket] = exemplar

    def samples(self, name: str, labels: Mapping[str, str]) -> list[Sample]:
        """Render one label set."""
        total = 0
        found = []
        for le, count, exemplar in zip(self._names, self._counts, self._exemplars, strict=True):
            total += count
            found.append(Sample(f"{name}_bucket", {**labels, "le": le}, total, None, exemplar))
        found.append(Sample(f"{name}_count", dict(labels), total))
        found.append(Sample(f"{name}_sum", dict(labels), self._sum))
        return found
