"""A Delta-to-Delta query, slow enough to be killed in the middle of a batch.

python delta_driver.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import build_session
from stage import ROOT

FILES, ROWS = 6, 40  # one file a batch


def delta_session():
    """A Spark with Delta."""
    jars = sorted((ROOT / ".programs" / "jars" / "delta-4").glob("*.jar"))
    assert jars, "Delta's jars are not here; `make setup-integration` brings them"
    session = build_session(
        "delta-tests",
        **{
            "spark.jars": ",".join(map(str, jars)),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.databricks.delta.stats.collect": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # it lives for a minute
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def write_source(spark, folder):
    """A table of two versions with half of the files each."""
    half = FILES * ROWS // 2
    for begin in (0, half):
        rows = spark.range(begin, begin + half, 1, FILES // 2)
        rows.write.format("delta").mode("append").save(str(folder / "source"))


def start_query(spark, folder, *, milliseconds_a_row=0, **trigger):
    """Copy the table, one file a batch."""
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
    rows = reader.load(str(folder / "source"))
    if milliseconds_a_row:
        sleep = f"java_method('java.lang.Thread', 'sleep', {milliseconds_a_row}L)"
        rows = rows.where(f"{sleep} is not null")  # it answers with the word "null"
    writer = rows.writeStream.queryName("copy").format("delta")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**trigger).start(str(folder / "target"))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    driver = delta_session()
    write_source(driver, place)
    start_query(driver, place, milliseconds_a_row=50, processingTime="0 seconds").awaitTermination()
