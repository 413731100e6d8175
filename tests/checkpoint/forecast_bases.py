"""The bases of the forecast matrix: real checkpoints, and the place where a case changes a copy."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecast_spark import PROVIDERS

if TYPE_CHECKING:
    from pathlib import Path

EVERY = ("3.5", "4.0", "4.1", "4.2", "4.3")
FROM_4 = EVERY[1:]


@dataclass(frozen=True)
class Base:
    """A real checkpoint, built once: four batches, all committed, and a fifth file waiting."""

    name: str
    query: str
    conf: dict[str, str] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = EVERY
    runs: int = 1


def bases() -> dict[str, Base]:
    """All bases by name."""
    update = {"mode": "update"}
    async_run = {
        "sink": "noop",
        "trigger": {"processingTime": "0 seconds"},
        "options": {
            "asyncProgressTrackingEnabled": "true",
            "asyncProgressTrackingCheckpointIntervalMs": "300",
        },
        "until": 25,
    }
    v2 = {"spark.sql.streaming.offsetLog.formatVersion": "2"}
    every = [
        Base("plain", "plain"),
        Base("two-sources", "two-sources"),
        Base("offsets-v2", "two-sources", conf=v2, lines=("4.2", "4.3")),
        Base("rate", "rate-micro-batch", run={"trigger": {"once": True}}, runs=4),
        Base("async", "rate-micro-batch", run=async_run),
        Base("parquet", "plain", run={"sink": "parquet"}),
        Base("memory", "count-by-key", run={"sink": "memory", "mode": "complete"}),
        Base("memory-append", "plain", run={"sink": "memory"}),
        Base("global", "count-all", run=update),
        Base("limit", "limited"),
        Base("windowed", "windowed", run=update),
        Base("transform", "transform-with-state", PROVIDERS["rocksdb"], update, ("4.3",)),
    ]
    for provider, conf in PROVIDERS.items():
        lines = FROM_4 if provider == "v2" else EVERY
        every.append(Base(f"agg-{provider}", "count-by-key", conf, update, lines))
    for provider in ("hdfs", "rocksdb"):
        every.append(Base(f"join-{provider}", "join", PROVIDERS[provider]))
        every.append(Base(f"dedup-{provider}", "dedup", PROVIDERS[provider]))
    return {base.name: base for base in every}


@dataclass(frozen=True)
class Place:
    """Where one case lives: its own copy of the checkpoint and of the output."""

    checkpoint: Path
    folder: Path
    output: Path

    def remove(self, *names: str) -> None:
        """Delete files or directories, with the checksum files beside them."""
        for name in names:
            path = self.checkpoint / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file, without a checksum file beside it."""
        path = self.checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def text(self, name: str) -> str:
        """What a file holds."""
        return (self.checkpoint / name).read_text()

    def line(self, name: str, number: int) -> str:
        """One line of a file."""
        return self.text(name).split("\n")[number]
