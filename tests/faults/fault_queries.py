"""The queries of the fault lab, and the switches that break them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

SCHEMA = "id long, key string, at timestamp"
TASK = 0.5  # seconds that a slow task takes
OTHER = "other"  # the second source of a join


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


if "FAKETIME_TIMESTAMP_FILE" in os.environ:
    # libfaketime breaks clock_nanosleep(2), which time.sleep() calls, where it leaves the monotonic clock alone.
    time.sleep = _sleep


class Switches:
    """Files that break things while they exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on(self, name: str) -> bool:
        """Whether the file is there."""
        return (self._folder / name).exists()

    def value(self, name: str, default: float = 0.0) -> float:
        """The number in the file."""
        try:
            return float((self._folder / name).read_text())
        except (OSError, ValueError):
            return default

    def wait(self, name: str) -> None:
        """Wait while the file is there."""
        while self.on(name):
            time.sleep(0.05)


def make_session(folder: Path, scale: float = 0.0) -> SparkSession:
    """A small Spark whose idle events come as much faster as the rules run."""
    idle_milliseconds = max(500, int(10_000 * scale))
    return (
        SparkSession.builder.master("local[2]")
        .appName("shop")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.noDataProgressEventInterval", str(idle_milliseconds))
        .config("spark.sql.streaming.minBatchesToRetain", "5")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )


def warm_up(spark: SparkSession, place: Path) -> None:
    """Run the same kinds of query once, unseen: a cold JVM's first batch is no fault."""
    (place / "in").mkdir(parents=True)
    (place / "in" / "0.json").write_text(
        json.dumps({"id": 1, "key": "a", "at": "2026-01-01T00:00:00Z"})
    )
    rows = spark.readStream.schema(SCHEMA).json(str(place / "in"))
    query = (
        rows.withWatermark("at", "1 second")
        .groupBy("key", F.window("at", "1 second"))
        .count()
        .writeStream.foreachBatch(lambda df, _: df.count())
        .outputMode("update")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.sparkContext.parallelize(range(2), 2).foreach(lambda _: None)


class Job:
    """The query of a plan, broken as the switches say."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.plan: dict[str, Any] = {}
        self.switches = Switches(folder / "switches")

    def say(self, what: str) -> None:
        """A line in the log, with the time."""
        with (self.folder / "log").open("a") as log:
            log.write(f"{time.time():.3f} {what}\n")

    # ---- rows ------------------------------------------------------------------------------

    def rows(self) -> DataFrame:
        """The plan's stream of rows."""
        if self.plan.get("rate"):
            rate = self.spark.readStream.format("rate").option("rowsPerSecond", self.plan["rate"])
            return rate.load().selectExpr("value id", "'a' key", "timestamp at")
        return self.files(self.plan["query"])

    def files(self, name: str) -> DataFrame:
        """Rows from the files in a folder."""
        reader = self.spark.readStream.schema(SCHEMA)
        if self.plan.get("max_files"):
            reader = reader.option("maxFilesPerTrigger", str(self.plan["max_files"]))
        return reader.json(str(self.folder / f"in-{name}"))

    def frame(self) -> DataFrame:
        """The plan's query."""
        rows = self.rows()
        kind = self.plan["kind"]
        if kind == "windows":
            rows = rows.withWatermark("at", "1 second")
            return rows.groupBy("key", F.window("at", "1 second")).count()
        if kind == "joined":
            other = self.files(f"{self.plan['query']}-{OTHER}").toDF("id2", "key2", "at2")
            left = rows.withWatermark("at", "1 second")
            right = other.withWatermark("at2", "1 second")
            near = "at2 between at - interval 1 second and at + interval 1 second"
            return left.join(right, F.expr(f"key = key2 and {near}"))
        if kind == "unique":
            return rows.withWatermark("at", self.plan["delay"]).dropDuplicates(["id", "at"])
        return rows.groupBy("id").count() if kind == "keys" else rows

    # ---- the sink --------------------------------------------------------------------------

    def sink(self, frame: DataFrame, batch_id: int) -> None:
        """Write a batch, as well as the switches let it."""
        began = time.monotonic()
        times = self.switches.value("slow", 1.0)
        cost = frame.count() * self.plan.get("seconds_per_row", 0.0) * times
        cost -= time.monotonic() - began  # counting them is part of the cost
        if self.plan.get("in_tasks"):
            self.run_tasks(int(2 * cost / TASK))  # two at a time
        else:
            time.sleep(max(0.0, cost))
        self.run_tasks(int(self.switches.value("tasks")))
        while self.switches.on("retry"):
            self.try_again()
        self.switches.wait("hang")
        if self.switches.on("full"):
            Path("/dev/full").write_text("a row")
        every = int(self.switches.value("fail"))
        if every and batch_id % every == 0:
            raise RuntimeError("the sink refuses")

    def run_tasks(self, count: int) -> None:
        """So many slow tasks."""
        if count > 0:
            numbers = self.spark.sparkContext.parallelize(range(count), count)
            numbers.foreach(lambda _: time.sleep(TASK))

    def try_again(self) -> None:
        """One round of a retry loop: a job that ends well, and one that fails."""

        def refuse(_: object) -> None:
            raise ConnectionError("connection refused")

        self.run_tasks(1)
        with contextlib.suppress(Exception):
            self.spark.sparkContext.parallelize([0], 1).foreach(refuse)

    # ---- starting --------------------------------------------------------------------------

    def start(self, name: str) -> Any:
        """Start a query of the plan."""
        self.say(f"start {name}")
        home = name if not self.plan.get("shared") else self.plan["query"]
        writer = (
            self.frame()
            .writeStream.queryName(name)
            .foreachBatch(self.sink)
            .option("checkpointLocation", str(self.folder / f"checkpoint-{home}"))
            .outputMode("update" if self.plan["kind"] in ("windows", "keys") else "append")
        )
        query = writer.trigger(**self.plan["trigger"]).start()
        self.say(f"started {name}")
        return query

    def share(self) -> Any:
        """Start a second query on the checkpoint that the first has just made, still empty."""
        checkpoint = self.folder / f"checkpoint-{self.plan['query']}"
        (checkpoint / "metadata").unlink()
        (checkpoint / ".metadata.crc").unlink(missing_ok=True)
        return self.start(f"{self.plan['query']}-second")
