"""What a source or sink is called, by its description in Spark's words. Pure."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SINKS = (  # how a description begins, and what the kind is called in labels
    ("ForeachBatchSink", "foreachBatch"),
    ("ForeachWriterTable", "foreach"),
    ("FileSink[", "file"),
    ("MemorySink", "memory"),
    ("DeltaSink[", "delta"),
    ("org.apache.spark.sql.kafka010.", "kafka"),
    ("KafkaSourceProvider", "kafka"),
    ("ConsoleSink", "console"),
)


def sink_kind(description: str) -> str:
    """Kind of a sink, such as `foreachBatch`; an unknown one is called by its class."""
    for name in ("Console", "Noop"):
        if f"{name}Table" in description:
            return name.lower()
    for beginning, kind in _SINKS:
        if description.startswith(beginning):
            return kind
    return class_name(description)


def class_name(description: str) -> str:
    """`org.example.MySource@1f2e[path]` → `MySource`: the last dotted word before any detail."""
    head = re.split(r"[\[({@\s$]", description, maxsplit=1)[0]
    words = _WORD.findall(head.rpartition(".")[2])
    return str(words[0])[:40] if words else "unknown"
