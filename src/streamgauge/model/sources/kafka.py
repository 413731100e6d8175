"""Kafka: `{"topic": {"0": 7}}`, the next offset to read of each partition.

Offsets count rows, save for what compaction took and what transactions mark. `latestOffset` is what
the broker had when the trigger began, before `maxOffsetsPerTrigger` cut the batch; with
`Trigger.AvailableNow`, what it had when the run began.
"""

from __future__ import annotations

from .marks import read_marks
from .reader import Reader

READER = Reader(
    kind="kafka",
    beginnings=("KafkaV2[", "KafkaSource["),
    marks=read_marks,
    fixed=lambda description: "[Assign[" in description,
)
