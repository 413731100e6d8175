"""A small shop on Kafka: one query writes orders, one reads them, one adds them up.

    spark-submit --master … --properties-file spark-defaults.conf job.py

KAFKA (127.0.0.1:9092) is the broker, DEMO_CHECKPOINTS the folder of the checkpoints, which the workers must reach too.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults
from pyspark.sql import DataFrame, SparkSession

from streamgauge import TelemetryListener

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
CHECKPOINTS = os.environ.get("DEMO_CHECKPOINTS", "checkpoints")
RESTART = 10.0  # seconds after a failure


def start(writer: Any, name: str, seconds: int) -> Any:
    """Start a query under its name, with a checkpoint of its own."""
    writer = writer.queryName(name).option("checkpointLocation", f"{CHECKPOINTS}/{name}")
    return writer.trigger(processingTime=f"{seconds} seconds").start()


def read(spark: SparkSession) -> DataFrame:
    """The orders on the topic."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", KAFKA)
    rows = source.option("subscribe", "orders").option("startingOffsets", "earliest").load()
    return rows.selectExpr("timestamp", "cast(cast(value as string) as long) as cents")


def make_topic(spark: SparkSession) -> None:
    """Write one order: the broker makes the topic, which a reader must find."""
    rows = spark.createDataFrame([("0", "0")], "key string, value string")
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", KAFKA)
    writer.option("topic", "orders").save()


def write_orders(spark: SparkSession) -> Any:
    """Two hundred orders a second, onto the topic."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    rows = rows.selectExpr(
        "cast(value % 97 as string) as key", "cast(value % 10000 as string) as value"
    )
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", KAFKA)
    return start(writer.option("topic", "orders"), "checkout", 2)


def keep_orders(spark: SparkSession) -> Any:
    """The query that faults befall."""

    def keep(batch: DataFrame, _: int) -> None:
        batch.count()
        faults.suffer()

    return start(read(spark).writeStream.foreachBatch(keep), "orders", 5)


def add_up(spark: SparkSession) -> Any:
    """Revenue a minute: state, and a watermark."""
    rows = read(spark).withWatermark("timestamp", "30 seconds")
    rows = rows.selectExpr("window(timestamp, '1 minute') as minute", "cents")
    counted = rows.groupBy("minute").sum("cents")
    return start(counted.writeStream.format("noop").outputMode("update"), "revenue", 10)


def main() -> None:
    """Run until the application is stopped; start again what fails."""
    spark = SparkSession.builder.appName("shop").getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    spark.streams.addListener(TelemetryListener())
    make_topic(spark)
    parts = (write_orders, keep_orders, add_up)
    running = {part: part(spark) for part in parts}
    while True:
        time.sleep(1)
        for part, query in running.items():
            if not query.isActive:
                time.sleep(RESTART)
                running[part] = part(spark)


if __name__ == "__main__":
    main()
