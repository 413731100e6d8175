"""A Spark driver with the agent and a dozen queries: some are well, each of the others has its own fault.

    python recording_driver.py FOLDER PORT APP TIME_SCALE SECONDS

APP `shop` runs them all; any other runs one healthy query, to be killed.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))

from fault_driver import hurry, warm_up
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from streamgauge import TelemetryListener
from streamgauge.agent import Agent
from streamgauge.listener import verdict
from streamgauge.listener.inbox import Item
from streamgauge.listener.sources.look import SourceLook

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
BEGAN = time.time()


def make_session(folder: Path) -> SparkSession:
    """A small Spark with room for a batch that holds two tasks for ever."""
    return (
        SparkSession.builder.master("local[6]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "900m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.noDataProgressEventInterval", "2000")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )


SHARES = {"0": 60, "1": 20, "2": 10}  # rows a second that come into each partition


def clicked(began: float, at: float | None = None) -> dict[str, int]:
    """Rows that had come by then. For a while there are few, and the query catches up."""
    age = (at or time.time()) - began
    busy = min(age, 100.0) + max(0.0, age - 190.0)
    return {name: int(share * (busy + 0.2 * (age - busy))) for name, share in SHARES.items()}


class Clicks(DataSource):
    """A source with Kafka's offsets, which says how far it is: 90 rows a second come, 60 are read."""

    @classmethod
    def name(cls) -> str:
        return "clicks"

    def schema(self) -> str:
        return "value long, timestamp timestamp"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return ClicksReader(float(self.options["began"]))


class ClicksReader(DataSourceStreamReader):
    """Reads 240 rows a batch at most, of each partition its share of what waits."""

    def __init__(self, began: float) -> None:
        self.began = began

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"clicks": dict.fromkeys(SHARES, 0)}

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"clicks": clicked(self.began)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(240)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin, newest = start["clicks"], clicked(self.began)
        waits = sum(newest.values()) - sum(begin.values())
        share = min(1.0, getattr(limit, "max_rows", 240) / max(1, waits))
        return {"clicks": {n: begin[n] + int(share * (newest[n] - begin[n])) for n in SHARES}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition((start["clicks"][n], end["clicks"][n])) for n in SHARES]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        from datetime import datetime

        first, last = partition.value
        for number in range(first, last):
            yield (number, datetime.now())  # noqa: DTZ005 - Spark's timestamps are local


def probe_clicks() -> None:
    """Look at the source itself every two seconds, as the probe does at Kafka; rows stay for an hour.

    The look at the source's beginning gives an age to the rows from before the agent's.
    """
    while True:
        time.sleep(2)
        agent, now = Agent.current(), time.time()
        for at in (now, BEGAN + 1):
            latest = {("clicks", name): rows for name, rows in clicked(BEGAN, at).items()}
            look = SourceLook(
                kind="python",
                topics=frozenset({"clicks"}),
                earliest=dict.fromkeys(latest, 0),
                latest=latest,
                retention={"clicks": 3600.0},
                at=at,
            )
            if agent is not None:
                agent.inbox.put(Item("look", look, now))


class Shop:
    """The queries, and what is done to them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.plans: list[tuple[float, Callable[[], None]]] = []
        self.running: dict[str, Any] = {}
        self.broken = False

    # ---- queries ---------------------------------------------------------------------------

    def rate(self, rows: int) -> DataFrame:
        """Rows that come by themselves; every fortieth is an hour late."""
        source = self.spark.readStream.format("rate").option("rowsPerSecond", rows).load()
        late = "if(value % 40 = 0, timestamp - interval 1 hour, timestamp) at"
        return source.selectExpr("value id", "concat('k', value % 20) key", late)

    def clicks(self) -> DataFrame:
        """Rows of the source that says how many wait."""
        return self.spark.readStream.format("clicks").option("began", BEGAN).load()

    def start(self, name: str, frame: DataFrame, sink: Any, seconds: int = 4, **more: Any) -> None:
        """Start a query; `sink` is a function of a batch, or the name of a format."""
        writer = frame.writeStream.queryName(name).outputMode(more.get("mode", "append"))
        writer = writer.option("checkpointLocation", str(self.checkpoint(name)))
        if callable(sink):
            writer = writer.foreachBatch(sink)
        else:
            writer = writer.format(sink).option("path", str(self.folder / f"out-{name}"))
        trigger = more.get("trigger", {"processingTime": f"{seconds} seconds"})
        self.running[name] = writer.trigger(**trigger).start()

    def start_python(self, name: str, frame: DataFrame, sink: Any) -> None:
        """Start a query whose source is written in Python, again until it has committed a batch.

        Spark gives such a source's process ten seconds to come up, which a busy machine does not.
        """
        for _ in range(8):
            self.start(name, frame, sink)
            query = self.running[name]
            while query.isActive and not (query.lastProgress or {}).get("numInputRows"):
                time.sleep(0.2)
            if query.isActive:
                return
        raise RuntimeError(f"{name} does not start: {query.exception()}")

    def checkpoint(self, name: str) -> Path:
        """Where a query's checkpoint is."""
        return self.folder / f"checkpoint-{name}"

    def open(self) -> None:
        """Start everything."""
        observed = self.clicks().observe("quality", F.count(F.lit(1)).alias("rows"))
        self.start_python("clicks", observed.where(self.held()("value")), "memory")
        self.spark.conf.set(PROVIDER, ROCKSDB)
        rows = self.rate(60).withWatermark("at", "10 seconds")
        windows = rows.groupBy("key", F.window("at", "5 seconds")).count()
        self.start("orders", windows, lambda df, _: df.count(), mode="update")
        self.spark.conf.set(PROVIDER, HDFS)
        keys = self.rate(20).groupBy("id").count()
        self.start("sessions", keys, lambda df, _: df.count(), 6, mode="update")
        self.start("payments", self.rate(15), "parquet")
        self.start("searches", self.rate(80), "noop")
        (self.folder / "in-returns").mkdir()
        files = self.spark.readStream.schema("id long").json(str(self.folder / "in-returns"))
        self.start("returns", files, lambda df, _: df.count())
        self.start("refunds", self.rate(5), self.refuse, 3)
        self.start("exports", self.rate(5), self.fail)
        self.start("profiles", self.rate(5), lambda df, _: df.count(), 5)
        self.start("nightly", self.rate(5), "noop", trigger={"availableNow": True})

    # ---- faults ----------------------------------------------------------------------------

    def refuse(self, frame: DataFrame, batch: int) -> None:
        """A sink that refuses every fourth batch once; the driver starts the query again."""
        frame.count()
        mark = self.folder / f"refused-{batch}"
        if batch % 4 == 3 and not mark.exists():
            mark.touch()
            raise RuntimeError("the sink refuses")

    def held(self) -> Any:
        """A function of a row that does not come back while a file is there: its task hangs."""
        file = self.folder / "hang"

        def held(_: int) -> bool:
            while file.exists():
                time.sleep(0.2)
            return True

        return F.udf(held, "boolean")

    def fail(self, frame: DataFrame, _: int) -> None:
        """A batch that fails for good."""
        frame.count()
        if self.broken:
            raise ValueError("a column is missing")

    def mend_refunds(self) -> None:
        """Start the query that failed again, as a job's own loop would."""
        if not self.running["refunds"].isActive:
            self.start("refunds", self.rate(5), self.refuse, 3)

    def reset(self) -> None:
        """The same name on a new checkpoint."""
        self.running["profiles"].stop()
        shutil.rmtree(self.checkpoint("profiles"))
        self.start("profiles", self.rate(5), lambda df, _: df.count(), 5)

    def spoil(self) -> None:
        """Take a commit out of the middle of a log."""
        commits = self.checkpoint("orders") / "commits"
        ids = sorted(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(ids[-2])).unlink()
        (commits / f".{ids[-2]}.crc").unlink(missing_ok=True)

    def run(self, seconds: float) -> None:
        """Play the whole history; what breaks, breaks in the second half."""
        self.open()
        opened = time.time()
        due = [
            (0.40, (self.folder / "hang").touch),
            (0.45, self.reset),
            (0.50, lambda: setattr(self, "broken", True)),
            (0.60, self.spoil),
        ]
        while time.time() - opened < seconds:
            while due and time.time() - opened > due[0][0] * seconds:
                due.pop(0)[1]()
            self.mend_refunds()
            time.sleep(1.5)
        (self.folder / "played").touch()
        time.sleep(3600)


def main(folder: Path, port: str, app: str, scale: float, seconds: float) -> None:
    """Run until killed."""
    hurry(scale)
    verdict.BLIND_SECONDS = (
        5.0  # half a second is no blindness where twelve queries share two cores
    )
    spark = make_session(folder / app)
    spark.sparkContext.setLogLevel("ERROR")
    shop = Shop(spark, folder)
    if app == "shop":
        warm_up(spark, folder / "warm")
        spark.dataSource.register(Clicks)
        shop.start_python("warm", shop.clicks(), "noop")  # unseen, for the agent is not there yet
        shop.running["warm"].stop()
    settings = json.loads((folder / "settings.json").read_text())
    if app == "shop":
        settings |= {
            "traces": str(folder / "traces.jsonl"),
            "pushgateway_url": "http://127.0.0.1:1",
        }
    listener = TelemetryListener(app=app, metrics_address=f"127.0.0.1:{port}", **settings)
    spark.streams.addListener(listener)
    if app == "shop":
        threading.Thread(target=probe_clicks, daemon=True).start()
        shop.run(seconds)
    shop.start("ledger", shop.rate(5), lambda df, _: df.count())
    time.sleep(3600)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
