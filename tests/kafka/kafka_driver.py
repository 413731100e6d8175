"""A driver with one Kafka query and the agent, as a process that can be killed.

python kafka_driver.py SETTINGS.json     a switch `hang` in its folder makes the batch hang
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyspark
from broker import jars
from harness import build_session

from streamgauge import TelemetryListener

ON_4 = int(pyspark.__version__.partition(".")[0]) >= 4


def read_kafka(spark, address, topics, **options):
    """A stream of some topics from their beginning."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    reader = reader.option("subscribe", ",".join(topics)).option("startingOffsets", "earliest")
    return reader.options(**options).load()


def kafka_session():
    """A Spark with its Kafka connector."""
    files = ",".join(map(str, jars("kafka-4" if ON_4 else "kafka-3")))
    quick = "-XX:TieredStopAtLevel=1"  # it lives for a minute
    conf = {"spark.jars": files, "spark.driver.extraJavaOptions": quick}
    return build_session("kafka-tests", **conf)


def main(settings):
    """Run until killed."""
    folder = Path(settings["folder"])
    spark = kafka_session()
    spark.sparkContext.setLogLevel("ERROR")
    spark.streams.addListener(
        TelemetryListener(
            metrics_address=f"127.0.0.1:{settings['port']}",
            watch_seconds=0.5,
            log_level="warning",
            kafka=settings["address"],
        )
    )

    def write(rows, _):
        rows.write.format("noop").mode("overwrite").save()
        while (folder / "hang").exists():
            time.sleep(0.05)

    rows = read_kafka(
        spark, settings["address"], settings["topics"], maxOffsetsPerTrigger=settings["limit"]
    )
    query = (
        rows.writeStream.queryName("orders")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .foreachBatch(write)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
