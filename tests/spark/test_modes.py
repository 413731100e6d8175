"""Continuous and real-time mode on a real Spark: what can be seen is, and neither is called stalled."""

import time

import pyspark
import pytest
from stage import page, value, wait_for

HAS_REAL_TIME = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)


def _stat(listener, name, **labels):
    return value(page(listener._agent), name, **labels)


def _states(listener, query):
    """The verdict on a query now; none before it is known."""
    return {
        dict(labels)["state"]
        for (name, labels), number in page(listener._agent).items()
        if name == "streamgauge_query_state" and ("query", query) in labels and number == 1
    }


def test_continuous_mode_is_seen_as_far_as_it_can_be(listen, spark, tmp_path):
    """No progress events at all: running, with that said, and never stalled."""
    listener = listen(silence_seconds=1)
    stream = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    query = (
        stream.writeStream.format("noop")
        .queryName("endless")
        .option("checkpointLocation", str(tmp_path))
        .trigger(continuous="1 second")
        .start()
    )
    wait_for(lambda: _stat(listener, "query_info", query="endless", trigger="continuous") == 1)
    began = time.monotonic()
    while time.monotonic() - began < 4:
        assert not _stat(listener, "query_state", query="endless", state="stalled")
        time.sleep(0.2)
    assert _stat(listener, "query_state", query="endless", state="running") == 1
    assert query.isActive


@pytest.fixture
def memory(spark):
    """Spark's own test source for real-time mode; beside Kafka the only one that has it."""
    from pyspark.sql import DataFrame

    jvm = spark.sparkContext._jvm
    source = jvm.org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
    made = source.singlePartition(spark._jsparkSession, jvm.org.apache.spark.sql.Encoders.INT())
    shortest = "spark.sql.streaming.realTimeMode.minBatchDuration"
    spark.conf.set(shortest, "1s")

    def add(*numbers):
        made.addData(jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(numbers)))

    yield DataFrame(made.toDF(), spark), add
    spark.conf.unset(shortest)


@pytest.mark.skipif(not HAS_REAL_TIME, reason="PySpark has trigger(realTime=…) since 4.2")
def test_real_time_mode_is_seen_batch_by_batch(listen, memory, tmp_path):
    """Rows of each batch, one progress each; a batch that takes its time by design is running."""
    listener = listen()
    rows, add = memory
    query = (
        rows.writeStream.format("console")
        .outputMode("update")
        .queryName("instant")
        .option("checkpointLocation", str(tmp_path))
        .trigger(realTime="3 seconds")
        .start()
    )
    add(1, 2, 3)
    wait_for(lambda: _stat(listener, "query_info", query="instant", trigger="real_time") == 1)
    seen = set()

    def rows_seen(number):
        seen.update(_states(listener, "instant"))
        return _stat(listener, "input_rows_total", query="instant") == number

    wait_for(lambda: rows_seen(3), 60, "the first rows")
    add(4, 5)
    wait_for(lambda: rows_seen(5), 60, "more rows")
    assert seen <= {"starting", "running"}
    assert (_stat(listener, "batches_total", query="instant", data="true") or 0) >= 2
    assert _stat(listener, "trigger_interval_seconds", query="instant") == 3
    assert _stat(listener, "agent_missed_batches_total", query=None) == 0
    assert query.isActive
