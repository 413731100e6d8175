"""What a source's and a sink's words mean: kinds from descriptions, rows from offsets.

Pure. What can't be told is None or the class's own name; a wrong guess would be worse.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SOURCES = (  # how a description begins, and what the kind is called in labels
    ("KafkaV2[", "kafka"),
    ("KafkaSource[", "kafka"),
    ("FileStreamSource[", "file"),
    ("CloudFilesSource[", "cloudfiles"),
    ("RateStreamV2[", "rate"),
    ("RatePerMicroBatchStream[", "rate-micro-batch"),
    ("DeltaSource[", "delta"),
    ("MemoryStream[", "memory"),
    ("ContinuousMemoryStream[", "memory"),
    ("TextSocketV2[", "socket"),
    ("PythonStreamingSource", "python"),
)
_SINKS = (
    ("ForeachBatchSink", "foreachBatch"),
    ("ForeachWriterTable", "foreach"),
    ("FileSink[", "file"),
    ("MemorySink", "memory"),
    ("DeltaSink[", "delta"),
    ("org.apache.spark.sql.kafka010.", "kafka"),
    ("KafkaSourceProvider", "kafka"),
)
# What a replayed batch does to the data that was written the first time. A sink that is not here
# can't be judged from outside: foreach and foreachBatch are as good as the user's own code.
IDEMPOTENT = {"file": True, "delta": True, "memory": True, "kafka": False, "console": False}

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def source_kind(description: str) -> str:
    """Kind of a source, such as `kafka`; an unknown one is called by its class."""
    return _kind(description, _SOURCES)


def sink_kind(description: str) -> str:
    """Kind of a sink, such as `foreachBatch`; an unknown one is called by its class."""
    if "ConsoleTable" in description or description == "ConsoleSink":
        return "console"
    if "NoopTable" in description:
        return "noop"
    return _kind(description, _SINKS)


def _kind(description: str, table: tuple[tuple[str, str], ...]) -> str:
    for beginning, kind in table:
        if description.startswith(beginning):
            return kind
    # `org.example.MySource@1f2e[path]` → `MySource`: the last dotted word before any detail
    head = re.split(r"[\[({@\s$]", description, maxsplit=1)[0]
    words = _WORD.findall(head.rpartition(".")[2])
    return str(words[0])[:40] if words else "unknown"


def parse(offset: Any) -> Any:
    """An offset as JSON; some Spark versions give it as text, and null as the word."""
    if not isinstance(offset, str):
        return offset
    if offset in {"null", "None", ""}:
        return None
    try:
        return json.loads(offset)
    except (ValueError, RecursionError):
        return offset


def rows_between(start: Any, end: Any) -> float | None:
    """Rows from one offset to another, where offsets count rows; else None.

    Understands Kafka's `{"topic": {"0": 7}}` and rate-micro-batch's `{"offset": 7, …}`. An offset that
    went backwards (a topic made anew) or partitions that differ can't be compared.
    """
    if not isinstance(start, dict) or not isinstance(end, dict):
        return None
    if "offset" in start and "offset" in end and "timestamp" in start:
        return _forward(start["offset"], end["offset"])
    return _partitions_between(start, end)


def _partitions_between(start: dict[str, Any], end: dict[str, Any]) -> float | None:
    total = 0.0
    for topic, partitions in end.items():
        before = start.get(topic)
        if not isinstance(partitions, dict) or not isinstance(before, dict) or not partitions:
            return None
        for partition, offset in partitions.items():
            step = _forward(before.get(partition), offset)
            if step is None:
                return None
            total += step
    return total if end else None


def _forward(before: Any, after: Any) -> float | None:
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (before, after))
    return float(after - before) if whole and after >= before else None
