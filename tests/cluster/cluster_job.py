"""A stateful query for a cluster, handed in with spark-submit.

    spark-submit … cluster_job.py FOLDER

Reads files of orders from FOLDER/in, one a batch, and writes each id once to FOLDER/out. Its tasks obey
files in FOLDER/wishes: `hold-3` has those that read wave 3 wait, `linger-3` those that write it, and
`break-3` has them fail. Each attempt of a task leaves FOLDER/marks/<wish>-<wave>-<partition>-<attempt>-<worker>. A
query that fails is started again once nothing is broken; the file `end` ends the job. FOLDER/told.jsonl
says what was done, without the agent.
"""

import json
import os
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import streamgauge

FOLDER = Path(sys.argv[1])
WISHES = FOLDER / "wishes"


def main():
    """Run the query until it is told to end."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    spark.streams.addListener(streamgauge.TelemetryListener())
    tell("application", id=spark.sparkContext.applicationId, agent=streamgauge.__file__)
    while not (WISHES / "end").exists():
        query = start(spark)
        tell("run", query_id=str(query.id), run_id=str(query.runId))
        try:
            while not (WISHES / "end").exists():
                query.awaitTermination(0.2)
            query.stop()
            tell("end", rows=[[p["batchId"], p["numInputRows"]] for p in query.recentProgress])
        except StreamingQueryException:
            tell("failure")
            while any(WISHES.glob("break-*")):
                time.sleep(0.1)
    spark.stop()


def start(spark):
    """Start the query from where it was."""
    hold = f.udf(make_obey(FOLDER, "hold"), "int")
    linger = f.udf(make_obey(FOLDER, "linger"), "int")
    return (
        spark.readStream.schema("id long, wave int")
        .option("maxFilesPerTrigger", 1)
        .json(str(FOLDER / "in"))
        .select("id", hold("wave").alias("wave"))
        .dropDuplicates(["id"])
        .select("id", linger("wave").alias("wave"))
        .writeStream.queryName("orders")
        .format("json")
        .option("path", str(FOLDER / "out"))
        .option("checkpointLocation", str(FOLDER / "checkpoint"))
        .start()
    )


def make_obey(folder, wish):
    """What each row does on the executors, which know nothing of this module."""

    def obey(wave):
        task = TaskContext.get()
        mark = f"{wish}-{wave}-{task.partitionId()}-{task.attemptNumber()}-{os.environ['CLUSTER_WORKER']}"
        (folder / "marks" / mark).touch()
        if (folder / "wishes" / f"break-{wave}").exists():
            raise ValueError("broken as wished")
        deadline = time.monotonic() + 120
        while (folder / "wishes" / f"{wish}-{wave}").exists():
            if time.monotonic() > deadline:
                raise TimeoutError("held for too long")
            time.sleep(0.05)
        return wave

    return obey


def tell(what, **said):
    """Write a line about what was done, at once."""
    with (FOLDER / "told.jsonl").open("a") as file:
        file.write(json.dumps({"what": what, "at": time.time(), **said}) + "\n")


if __name__ == "__main__":
    main()
