"""Sources whose offsets we don't understand: unknown, never 0.

Kinesis counts in sequence numbers that don't count rows, and reports its own last position as the
latest; Event Hubs looks like Kafka and has gaps. Iceberg names snapshots, whose ids have no order. A new reader must know what the numbers mean.
"""

from __future__ import annotations

from .reader import Reader

NAMED = (  # those that have a name in labels all the same
    Reader(kind="memory", beginnings=("MemoryStream[", "ContinuousMemoryStream[")),
    Reader(kind="iceberg", beginnings=("org.apache.iceberg.spark.source.SparkMicroBatchStream",)),
    Reader(kind="socket", beginnings=("TextSocketV2[",)),
)
