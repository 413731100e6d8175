"""A Spark driver with the agent, whose streaming query can be exchanged and broken from outside.

    python fault_driver.py FOLDER PORT TIME_SCALE

FOLDER/plan.json says which query to run; when its number changes, the query is stopped and the new one
started. Files in FOLDER/switches break things while they exist:

    hang      foreachBatch does not return          fail      it raises in every Nth batch
    slow      every row takes so many times as long tasks     a batch of so many slow tasks
    stop      the query is stopped, and started again when the file is gone
    reset     the same, and the checkpoint is deleted in between
    stay      a failed query is not started again
    deaf      our listener is removed               block     the agent's worker is blocked

The folder's `log` gets a line for whatever the driver does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from streamgauge import TelemetryListener
from streamgauge.exporters import Exporter
from streamgauge.listener.classic import driver as agent_driver
from streamgauge.model import transitions, verdict

SCHEMA = "id long, key string, at timestamp"
TASK = 0.5  # seconds that a slow task takes


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


class Blocker(Exporter):
    """An exporter that blocks the agent's worker while its switch is on."""

    name = "blocker"

    def __init__(self, switches: Switches) -> None:
        self._switches = switches

    def handle(self, event: Any, query: Any) -> None:
        """Hold the worker."""
        self._switches.wait("block")

    def observe(self, query: Any) -> None:
        """Hold the worker."""
        self._switches.wait("block")


def make_session(folder: Path) -> SparkSession:
    """A small Spark whose idle events come as much faster as the rules run."""
    return (
        SparkSession.builder.master("local[2]")
        .appName("shop")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.noDataProgressEventInterval", "500")
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


class Stage:
    """The query of the plan, and what the switches do to it."""

    def __init__(self, spark: SparkSession, folder: Path, settings: dict[str, Any]) -> None:
        self.spark = spark
        self.folder = folder
        self.settings = settings
        self.plan: dict[str, Any] = {}
        self.switches = Switches(folder / "switches")
        self.listener: TelemetryListener | None = None

    def say(self, what: str) -> None:
        """A line in the log, with the time."""
        with (self.folder / "log").open("a") as log:
            log.write(f"{time.time():.3f} {what}\n")

    # ---- the query -------------------------------------------------------------------------

    def rows(self) -> DataFrame:
        """The plan's stream of rows."""
        if self.plan.get("rate"):
            rate = self.spark.readStream.format("rate").option("rowsPerSecond", self.plan["rate"])
            return rate.load().selectExpr("value id", "'a' key", "timestamp at")
        reader = self.spark.readStream.schema(SCHEMA)
        if self.plan.get("max_files"):
            reader = reader.option("maxFilesPerTrigger", str(self.plan["max_files"]))
        return reader.json(str(self.folder / f"in-{self.plan['query']}"))

    def frame(self) -> DataFrame:
        """The plan's query."""
        rows = self.rows()
        if self.plan["kind"] == "windows":
            rows = rows.withWatermark("at", "1 second")
            return rows.groupBy("key", F.window("at", "1 second")).count()
        return rows.groupBy("id").count() if self.plan["kind"] == "keys" else rows

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
        self.switches.wait("hang")
        every = int(self.switches.value("fail"))
        if every and batch_id % every == 0:
            raise RuntimeError("the sink refuses")

    def run_tasks(self, count: int) -> None:
        """So many slow tasks."""
        if count > 0:
            numbers = self.spark.sparkContext.parallelize(range(count), count)
            numbers.foreach(lambda _: time.sleep(TASK))

    def start(self, name: str) -> Any:
        """Start a query of the plan."""
        self.say(f"start {name}")
        home = name if not self.plan.get("shared") else self.plan["query"]
        writer = (
            self.frame()
            .writeStream.queryName(name)
            .foreachBatch(self.sink)
            .option("checkpointLocation", str(self.folder / f"checkpoint-{home}"))
            .outputMode("append" if self.plan["kind"] == "plain" else "update")
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

    # ---- the agent -------------------------------------------------------------------------

    def listen(self) -> None:
        """Add the agent's listener, or remove it while its switch is on."""
        deaf = self.switches.on("deaf")
        if deaf and self.listener is not None:
            self.spark.streams.removeListener(self.listener)
            self.listener = None
            self.say("deaf")
        elif not deaf and self.listener is None:
            blocker = [Blocker(self.switches)] if self.settings.pop("first", True) else []
            self.listener = TelemetryListener(exporters=blocker, **self.settings)
            self.spark.streams.addListener(self.listener)

    # ---- the loop --------------------------------------------------------------------------

    def read(self) -> dict[str, Any]:
        """The plan as it is now."""
        try:
            plan: dict[str, Any] = json.loads((self.folder / "plan.json").read_text())
        except (OSError, ValueError):
            return self.plan
        return plan

    def changed(self) -> bool:
        """Whether another plan is there."""
        return self.read().get("number") != self.plan.get("number")

    def run(self) -> None:
        """Keep the plan's query going as the switches say, plan after plan."""
        while True:
            self.plan = self.read()
            more = [self.start(name) for name in self.plan.get("more", [])]
            if self.plan.get("shared"):
                first = self.start(self.plan["query"])
                more.append(self.share())
            while not self.changed():
                query = first if self.plan.get("shared") else self.start(self.plan["query"])
                self.watch(query)
                self.after(query)
            for query in more:
                query.stop()

    def watch(self, query: Any) -> None:
        """Wait for the query's end, or end it when a switch or another plan says so."""
        while query.isActive:
            if self.changed() or self.switches.on("stop") or self.switches.on("reset"):
                query.stop()
            self.listen()
            time.sleep(0.05)
        self.say("ended")

    def after(self, query: Any) -> None:
        """What is done before the next start."""
        failed = query.exception() is not None
        while not self.changed() and (
            self.switches.on("stop")
            or (failed and self.switches.on("stay"))
            or (not failed and "availableNow" in self.plan["trigger"])
        ):
            time.sleep(0.05)
        if self.switches.on("reset"):
            shutil.rmtree(self.folder / f"checkpoint-{self.plan['query']}")
            (self.folder / "switches" / "reset").unlink()
            self.say("reset")
        if failed:
            time.sleep(0.5)


def hurry(scale: float) -> None:
    """Scale the agent's own durations as the rules' are."""
    for module, names in (
        (verdict, ("BLIND_SECONDS", "RESTART_WINDOW_SECONDS", "TREND_SECONDS", "_QUIET_SECONDS")),
        (agent_driver, ("_TASKS_AFTER_SECONDS",)),
        (transitions, ("_MOMENT_GAP_SECONDS",)),
    ):
        for name in names:
            setattr(module, name, getattr(module, name) * scale)


def main(folder: Path, port: str, scale: float) -> None:
    """Run the plans."""
    settings = json.loads((folder / "settings.json").read_text())
    settings |= {"metrics_address": f"127.0.0.1:{port}", "app": "shop"}
    hurry(scale)
    spark = make_session(folder)
    warm_up(spark, folder / f"warm-{os.getpid()}")
    stage = Stage(spark, folder, settings)
    stage.listen()
    stage.say("ready")
    while not (folder / "plan.json").exists():
        time.sleep(0.05)
    stage.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
