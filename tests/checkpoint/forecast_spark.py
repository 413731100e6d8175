"""Real queries on a real Spark: build a checkpoint, restart it, say what happened.

Tiny data, one session, `AvailableNow`. Every query reads JSON files, one a batch, so that a batch
is known by its file and its rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecast_shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 3  # rows of each input file
PATIENCE = 240  # seconds; a busy machine starts Python workers slowly
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PREFIX = "spark.sql.streaming.stateStore."
PROVIDERS: dict[str, dict[str, str]] = {
    "hdfs": {},
    "rocksdb": {f"{PREFIX}providerClass": ROCKSDB},
    "changelog": {
        f"{PREFIX}providerClass": ROCKSDB,
        f"{PREFIX}rocksdb.changelogCheckpointing.enabled": "true",
    },
    "v2": {
        f"{PREFIX}providerClass": ROCKSDB,
        f"{PREFIX}rocksdb.changelogCheckpointing.enabled": "true",
        f"{PREFIX}checkpointFormatVersion": "2",
    },
}


STATIC = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
}
SESSION = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.maintenanceInterval": "3600s",
}


@dataclass
class Outcome:
    """What a run did: the batches its sink was handed, their rows, and how it ended."""

    batches: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    causes: list[tuple[str, str | None, str]] = field(default_factory=list)
    inner: list[tuple[str, str | None, str]] = field(default_factory=list)
    query_id: str | None = None
    confs: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether Spark gave an error."""
        return bool(self.causes)

    def error(self) -> str:
        """The innermost cause that has a name, in one line."""
        return " <- ".join(
            f"{name.rsplit('.', 1)[-1]}[{condition}]: {text[:200]!r}"
            for name, condition, text in self.causes
        )


def write_input(folder: Path, number: int, rows: int = ROWS) -> Path:
    """One input file; its modification time orders it after the files before it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"f{number}.json"
    lines = [
        json.dumps({"k": "abc"[n % 3], "v": number * 10 + n, "t": f"2026-01-01T00:{number:02d}:00"})
        for n in range(rows)
    ]
    path.write_text("\n".join(lines) + "\n")
    stamp = time.time() - 1000 + number * 10
    os.utime(path, (stamp, stamp))
    return path


def open_session() -> Any:
    """The one session of a test run."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("forecast")
    for key, value in (STATIC | SESSION).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def new_session(spark: Any, conf: dict[str, str]) -> Any:
    """A session of its own on the one Spark, with known settings whoever started that Spark."""
    session = spark.newSession()
    for key, value in (SESSION | conf).items():
        session.conf.set(key, value)
    return session


def run(
    spark: Any,
    query: str,
    folder: Path,
    checkpoint: Path,
    *,
    conf: dict[str, str] | None = None,
    sink: str = "foreachBatch",
    mode: str = "append",
    trigger: dict[str, Any] | None = None,
    output: Path | None = None,
    options: dict[str, str] | None = None,
    until: int | None = None,
    meanwhile: Callable[[int], None] | None = None,
) -> Outcome:
    """Start the query on the checkpoint, wait for its end, and say what it did."""
    outcome = Outcome()
    session = new_session(spark, conf or {})

    def take(batch: Any, batch_id: int) -> None:
        try:
            rows = len(batch.collect())
        except Exception as error:  # Spark would show only the wrapped Python error
            outcome.inner = causes_of(spark, getattr(error, "_origin", None) or error)
            raise
        outcome.batches.append(batch_id)
        outcome.rows.append(rows)
        if meanwhile is not None:
            meanwhile(batch_id)

    try:
        stream = SHAPES[query](session, folder)
        writer = stream.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
        writer = writer.options(**(options or {})).trigger(**(trigger or {"availableNow": True}))
        if sink == "foreachBatch":
            writer = writer.foreachBatch(take)
        elif sink == "memory":
            writer = writer.format("memory").queryName("m" + str(time.monotonic_ns()))
        else:
            writer = writer.format(sink)
        running = writer.start(str(output)) if sink == "parquet" else writer.start()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
        outcome.causes = causes_of(spark, getattr(error, "_origin", None) or error)
        return outcome
    stopped = wait_for_end(running, until)
    return describe_end(spark, running, outcome, sink, stopped=stopped)


def start_waiting(spark: Any, query: str, folder: Path, checkpoint: Path) -> Any:
    """A run that does one batch and then waits for an hour."""
    stream = SHAPES[query](new_session(spark, {}), folder)
    writer = stream.writeStream.option("checkpointLocation", str(checkpoint)).format("noop")
    running = writer.trigger(processingTime="1 hour").start()
    deadline = time.monotonic() + PATIENCE
    while "Waiting for next trigger" not in running.status["message"]:
        assert time.monotonic() < deadline, running.status
        time.sleep(0.02)
    return running


def wait_for_end(running: Any, until: int | None) -> bool:
    """Wait until the query has ended, or has done `until` batches; whether it was stopped then."""
    stopped = False
    deadline = time.monotonic() + PATIENCE
    while running.isActive and time.monotonic() < deadline:
        done = running.lastProgress
        if until is not None and done is not None and done["batchId"] >= until:
            running.stop()
            stopped = True
        time.sleep(0.02)
    assert not running.isActive, "the query did not end"
    return stopped


def describe_end(
    spark: Any, running: Any, outcome: Outcome, sink: str, *, stopped: bool
) -> Outcome:
    """Fill in what Spark knows of the run when it is over."""
    outcome.query_id = running.id
    failure = running._jsq.exception()
    if failure.isDefined():
        outcome.causes = causes_of(spark, failure.get()) + outcome.inner
        if stopped and any("InterruptedException" in name for name, _, _ in outcome.causes):
            outcome.causes = []  # async progress tracking takes our stop() for a failure
    if sink != "foreachBatch":
        seen = [p for p in running.recentProgress if "addBatch" in p["durationMs"]]
        outcome.batches = [p["batchId"] for p in seen]
        outcome.rows = [p["numInputRows"] for p in seen]
    return outcome


def causes_of(spark: Any, error: Any) -> list[tuple[str, str | None, str]]:
    """The chain of Java causes: class, error condition, message; Python's own when it is none."""
    if isinstance(error, BaseException):
        if not hasattr(error, "java_exception"):
            return [(type(error).__name__, None, str(error))]
        error = error.java_exception
    chain: list[tuple[str, str | None, str]] = []
    spark_throwable = spark._jvm.java.lang.Class.forName("org.apache.spark.SparkThrowable")
    while error is not None and len(chain) < 8:
        condition = error.getErrorClass() if spark_throwable.isInstance(error) else None
        chain.append((error.getClass().getName(), condition, str(error.getMessage())))
        error = error.getCause()
    return chain
