"""A real Spark job with a stateful query that fails once and is started again.

    python spark_job.py FOLDER

Three files, one a batch. Batch 1 fails in the first run; the second run starts
from the same checkpoint and does the rest. Inside foreachBatch the user's own tracer writes a span.
Prints, as JSON: every progress event, the ids of both runs, the user's spans, the agent's counts,
its page in OpenMetrics form. Where traces go is the environment's business.
"""

import json
import sys
import time
import urllib.request
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from streamgauge import TelemetryListener, batch_span
from streamgauge.agent import Agent

FAILS_AT = 1
memory = InMemorySpanExporter()
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(memory))
tracer = provider.get_tracer("users-own")


def main(folder):
    """Run the query twice."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("traced-shop")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    listener = TelemetryListener(metrics_address="127.0.0.1:0", log_level="off", watch_seconds=0.2)
    spark.streams.addListener(listener)
    source = folder / "in"
    source.mkdir(parents=True)
    for number in range(3):
        row = {"at": f"2026-01-01 00:{number:02d}:00", "item": f"i{number % 2}"}
        (source / f"{number}.json").write_text(json.dumps(row) + "\n")
    runs = [run(spark, folder, fails=True), run(spark, folder, fails=False)]
    batches = sum(len(found["progress"]) for found in runs)
    wait_for(lambda: listener.stats.of("events").get("progress", 0) >= batches)
    wait_for(lambda: listener.stats.of("events").get("terminated", 0) >= 2)
    page = fetch(f"{listener.address}/metrics")
    app_id = spark.sparkContext.applicationId
    version = spark.version
    agent = Agent.current()
    listener.close()
    spark.stop()
    answer = {"runs": runs, "page": page, "app_id": app_id, "spark_version": version}
    answer["spans"] = dict(agent.stats.of("spans"))
    answer["errors"] = dict(agent.stats.of("errors"))
    answer["user_spans"] = [
        {"name": s.name, "batch": s.attributes["batch"], "parent": f"{s.parent.span_id:016x}"}
        for s in memory.get_finished_spans()
    ]
    answer["provider_is_users"] = isinstance(trace.get_tracer_provider(), TracerProvider)
    sys.stdout.write(json.dumps(answer))


def fetch(address):
    """The page as Prometheus gets it when it asks for exemplars."""
    request = urllib.request.Request(address, headers={"Accept": "application/openmetrics-text"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def run(spark, folder, *, fails):
    """One run of the query, to its end."""

    def write(df, batch_id):
        with (
            batch_span(df, batch_id),
            tracer.start_as_current_span("count rows", attributes={"batch": batch_id}),
        ):
            df.count()
        if fails and batch_id == FAILS_AT:
            raise ValueError("the warehouse said no, password=hunter2")

    query = (
        spark.readStream.schema("at timestamp, item string")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / "in"))
        .withWatermark("at", "1 minute")
        .groupBy(f.window("at", "1 minute"), "item")
        .count()
        .writeStream.queryName("orders")
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(write)
        .start()
    )
    try:
        query.awaitTermination(60)
    except Exception:
        if not fails:
            raise
    progress = [json.loads(p.json) if hasattr(p, "json") else p for p in query.recentProgress]
    done = [p for p in progress if "addBatch" in p["durationMs"]]
    return {"run_id": str(query.runId), "query_id": str(query.id), "progress": done}


def wait_for(condition):
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the agent did not see every event"
        time.sleep(0.05)
    time.sleep(0.2)  # what was counted is handled next


if __name__ == "__main__":
    main(Path(sys.argv[1]))
