"""A Spark driver of the recording, with the agent: `shop` with its many queries, or one with a single query.

    python recording_driver.py FOLDER PORT APP TIME_SCALE [QUERY]

What is broken, and when, is said from outside: files in FOLDER/switches/<query> break that query while they
exist, as those of the fault lab do. `recorded_faults.py` says which fault is whose.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "kafka"))

from broker import jars
from fault_driver import TASK, Stage, Switches, hurry, warm_up
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from streamgauge import TelemetryListener
from streamgauge.model import verdict

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
RESTART_WINDOW_SECONDS = (
    180.0  # seconds: a start takes as long as it takes, however fast the rules run
)


def make_session(folder: Path, app: str) -> SparkSession:
    """A small Spark; the shop's has room for a batch that holds three tasks for ever."""
    big = app == "shop"
    builder = (
        SparkSession.builder.master("local[8]" if big else "local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1500m" if big else "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.noDataProgressEventInterval", "2000")
        .config("spark.sql.warehouse.dir", str(folder / f"warehouse-{app}"))
    )
    if big:
        builder = builder.config("spark.jars", ",".join(map(str, jars("kafka-4"))))
    else:
        builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    return builder.getOrCreate()


class Pairs(Stage):
    """A query of the fault lab whose slow tasks run two at a time: others need the cores too."""

    def run_tasks(self, count: int) -> None:
        """So many slow tasks of the same batch, fewer on a busy machine: it is their time that counts."""
        over = time.monotonic() + count * TASK / 2
        while time.monotonic() < over:
            self.spark.sparkContext.parallelize(range(2), 2).foreach(lambda _: time.sleep(TASK))


def make_stage(spark: SparkSession, folder: Path, name: str, **plan: Any) -> Pairs:
    """A query of the fault lab with switches of its own; it is not started yet."""
    made = Pairs(spark, folder, {})
    made.switches = Switches(folder / "switches" / name)
    every = {"processingTime": f"{plan.pop('every', 5)} seconds"}
    made.plan = {"query": name, "kind": "plain", "trigger": every, **plan}
    return made


class Shop:
    """The queries, each with the way to start it."""

    def __init__(self, spark: SparkSession, folder: Path, kafka: str) -> None:
        self.spark = spark
        self.folder = folder
        self.kafka = kafka
        self.starts: dict[str, Callable[[], Any]] = {}
        self.running: dict[str, Any] = {}

    def open(self) -> None:
        """Start everything."""
        self.begin("clicks", lambda: self.write("clicks", self.clicks(), "parquet"))
        self.spark.conf.set(PROVIDER, ROCKSDB)
        rows = self.rate(60).withWatermark("at", "10 seconds")
        windows = rows.groupBy("key", F.window("at", "5 seconds")).count()
        self.begin("orders", lambda: self.write("orders", windows, count_rows, 5, mode="update"))
        self.spark.conf.set(PROVIDER, HDFS)
        keys = self.rate(20).groupBy("id").count()
        self.begin("sessions", lambda: self.write("sessions", keys, count_rows, 8, mode="update"))
        self.begin("payments", lambda: self.write("payments", self.rate(15), "parquet", 6))
        self.begin("returns", lambda: self.write("returns", self.files("returns"), count_rows))
        self.begin("refunds", lambda: self.write("refunds", self.rate(5), self.refuse, 5))
        now = {"availableNow": True}
        self.running["nightly"] = self.write("nightly", self.files("nightly"), "noop", trigger=now)
        self.play("searches", rate=80, every=6)
        self.play("exports", rate=5, every=8)
        self.play("profiles", rate=5, every=8)
        self.play("invoices", rate=5, every=6)
        self.play("reports", rate=5, every=60)
        self.play("labels", seconds_per_row=0.02, every=10)
        self.play("visits", kind="windows", every=8)
        self.play("scans", rate=30, every=2, seconds_per_row=0.02, in_tasks=True)
        self.running["audit-second"] = self.play("audit", shared=True).share()

    def keep(self) -> None:
        """Stop and start again as the switches say, and what has failed, as a job's own loop would."""
        while True:
            for name, start in self.starts.items():
                self.tend(name, start)
            time.sleep(1)

    def tend(self, name: str, start: Callable[[], Any]) -> None:
        """Do to one query what its switches say."""
        switches = Switches(self.folder / "switches" / name)
        query = self.running[name]
        if switches.on("stop") or switches.on("reset"):
            query.stop()
        if query.isActive or switches.on("stop") or switches.on("stay"):
            return
        if switches.on("reset"):
            shutil.rmtree(self.folder / f"checkpoint-{name}")
            (self.folder / "switches" / name / "reset").unlink()
        self.running[name] = start()

    # ---- queries ---------------------------------------------------------------------------

    def begin(self, name: str, start: Callable[[], Any]) -> None:
        """Start a query that is kept going."""
        self.starts[name] = start
        self.running[name] = start()

    def play(self, name: str, **plan: Any) -> Pairs:
        """Start a query of the fault lab."""
        stage = make_stage(self.spark, self.folder, name, **plan)
        self.begin(name, lambda: stage.start(name))
        return stage

    def rate(self, rows: int) -> DataFrame:
        """Rows that come by themselves; every fortieth is an hour late."""
        source = self.spark.readStream.format("rate").option("rowsPerSecond", rows).load()
        late = "if(value % 40 = 0, timestamp - interval 1 hour, timestamp) at"
        return source.selectExpr("value id", "concat('k', value % 20) key", late)

    def files(self, name: str) -> DataFrame:
        """Rows of the files in a folder, one file a batch."""
        reader = self.spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder / f"in-{name}"))

    def clicks(self) -> DataFrame:
        """Rows of a topic, 240 a batch at most; while a switch is on, the task of a row does not end."""
        source = self.spark.readStream.format("kafka").option("subscribe", "clicks")
        source = source.option("kafka.bootstrap.servers", self.kafka)
        source = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 240)
        observed = source.load().observe("quality", F.count(F.lit(1)).alias("rows"))
        file = self.folder / "switches" / "clicks" / "hang"

        def held(_: int) -> bool:
            while file.exists():
                time.sleep(0.2)
            return True

        return observed.where(F.udf(held, "boolean")("offset"))

    def write(self, name: str, frame: DataFrame, sink: Any, every: int = 4, **more: Any) -> Any:
        """Start a query once; `sink` is a function of a batch, or the name of a format."""
        writer = frame.writeStream.queryName(name).outputMode(more.get("mode", "append"))
        writer = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{name}"))
        if callable(sink):
            writer = writer.foreachBatch(sink)
        else:
            writer = writer.format(sink).option("path", str(self.folder / f"out-{name}"))
        return writer.trigger(**more.get("trigger", {"processingTime": f"{every} seconds"})).start()

    def refuse(self, frame: DataFrame, batch: int) -> None:
        """A sink that refuses every third batch once, while its switch is on."""
        frame.count()
        refuses = Switches(self.folder / "switches" / "refunds").on("fail")
        mark = self.folder / f"refused-{batch}"
        if refuses and batch % 3 == 0 and not mark.exists():
            mark.touch()
            raise RuntimeError("the sink refuses")


def count_rows(frame: DataFrame, _: int) -> None:
    """A sink that is always well."""
    frame.count()


def run_shop(spark: SparkSession, folder: Path, settings: dict[str, Any]) -> None:
    """All the queries of the shop."""
    warm_up(spark, folder / "warm")
    settings |= {"traces": str(folder / "traces.jsonl"), "pushgateway_url": "http://127.0.0.1:1"}
    spark.streams.addListener(TelemetryListener(**settings))
    shop = Shop(spark, folder, settings["kafka"])
    shop.open()
    shop.keep()


def run_one(spark: SparkSession, folder: Path, settings: dict[str, Any], name: str) -> None:
    """One query; its switches take the agent's listener away, or block its worker."""
    del settings["kafka"]
    stage = make_stage(spark, folder, name, rate=5)
    stage.settings = settings
    stage.listen()
    stage.start(name)
    while True:
        stage.listen()
        time.sleep(0.2)


def main(folder: Path, port: str, app: str, scale: float, *query: str) -> None:
    """Run until killed."""
    hurry(scale)
    # Half a second is no blindness where twenty queries share two cores.
    verdict.BLIND_SECONDS, verdict.RESTART_WINDOW_SECONDS = 5.0, RESTART_WINDOW_SECONDS
    spark = make_session(folder, app)
    spark.sparkContext.setLogLevel("ERROR")
    settings = json.loads((folder / "settings.json").read_text())
    settings |= {"app": app, "metrics_address": f"127.0.0.1:{port}"}
    if query:
        run_one(spark, folder, settings, *query)
    else:
        run_shop(spark, folder, settings)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]), *sys.argv[5:])
