"""Jobs that know the truth: what the page and the live page say is equal to it."""

import json
import threading
import time
import urllib.request
from datetime import datetime, timedelta, timezone

import pytest
from stage import page, value, wait_for

IDLE_INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"


@pytest.fixture
def idles_often(spark):
    """Spark says soon that a query is idle."""
    spark.conf.set(IDLE_INTERVAL, "500ms")
    yield
    spark.conf.unset(IDLE_INTERVAL)


def _live(listener, name):
    with urllib.request.urlopen(f"{listener.address}/live.json", timeout=10) as answer:
        queries = json.loads(answer.read())["queries"]
    return next((query for query in queries if query["name"] == name), None)


def _rates(listener, name):
    samples = page(listener._agent)
    names = ("input_rows_per_second", "processed_rows_per_second")
    return tuple(value(samples, each, query=name) for each in names)


# Each file: ids of its rows, of which every one below 0 is bad. Some are there twice and more.
FILES = ([1, 2, 2, 3, -1], [4, 4, 4, -2, -2, 5, 6], [7, 8, 8])


def _write(folder, number, ids):
    at = datetime(2026, 11, 18, tzinfo=timezone.utc) + timedelta(hours=number)
    rows = [json.dumps({"id": each, "t": at.isoformat()}) for each in ids]
    (folder / f"{number}.json").write_text("\n".join(rows))


@pytest.mark.usefixtures("idles_often")
def test_observed_and_duplicates_are_what_was_written(spark, listen, tmp_path):
    """Counters have every batch, gauges the last one with data, though Spark ran an empty one after it."""
    from pyspark.sql import functions as fn

    folder = tmp_path / "in"
    folder.mkdir()
    listener = listen(queries={"truth": {"observed_counts": ["quality.*rows"]}})
    seen = (
        spark.readStream.schema("id int, t timestamp")
        .json(str(folder))
        .observe(
            "quality",
            fn.count(fn.lit(1)).alias("rows"),
            fn.count(fn.when(fn.col("id") < 0, 1)).alias("bad_rows"),
            fn.max("id").alias("largest"),
        )
        .withWatermark("t", "1 minute")
        .dropDuplicates(["id", "t"])
    )
    writer = seen.writeStream.format("noop").queryName("truth")
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).start()
    empty = []
    for number, ids in enumerate(FILES):
        _write(folder, number, ids)
        # A batch with data, then the empty one that the new watermark makes; only then the next file.
        expected = 2 * (number + 1)
        wait_for(lambda n=expected: _batches(listener) == n, 60, f"{expected} batches")
        empty.append(query.lastProgress)
    wait_for(lambda: _rates(listener, "truth") == (0.0, None), what="idleness")
    samples = page(listener._agent)
    assert query.exception() is None
    rows = [row for ids in FILES for row in ids]

    def observed(kind, field):
        return value(samples, kind, query="truth", name="quality", field=field)

    assert value(samples, "input_rows_total", query="truth") == len(rows)
    assert observed("observed_counted_total", "rows") == len(rows)
    assert observed("observed_counted_total", "bad_rows") == sum(row < 0 for row in rows)
    assert observed("observed_counted_total", "largest") is None
    last = FILES[-1]
    assert observed("observed", "rows") == len(last)
    assert observed("observed", "bad_rows") == sum(row < 0 for row in last)
    assert observed("observed", "largest") == max(last)
    dropped = sum(len(ids) - len(set(ids)) for ids in FILES)
    found = value(samples, "state_duplicate_rows_dropped_total", query="truth")
    assert found == dropped
    live = _live(listener, "truth")
    assert (live["state"], live["rates"]) == ("idle", {"input": 0.0, "processed": None})
    # The trap was there: Spark's own last word is of a batch without rows.
    assert all(each["numInputRows"] == 0 for each in empty)


def _batches(listener):
    samples = page(listener._agent)
    return sum(
        value(samples, "batches_total", query="truth", data=data) or 0 for data in ("true", "false")
    )


class Gate:
    """A sink that lets one batch through for each permit, and knows since when it holds one."""

    def __init__(self):
        self._permits = threading.Semaphore(0)
        self.held_since = None

    def __call__(self, frame, _batch):
        frame.count()
        self.held_since = time.time()
        self._permits.acquire(timeout=100)
        self.held_since = None

    def open(self, batches):
        for _ in range(batches):
            self._permits.release()


@pytest.fixture
def gate():
    """One that is open at the end, whatever happened: a query that hangs can't be stopped."""
    made = Gate()
    yield made
    made.open(1000)


TEXT = "12345\n"


def _fill(folder, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        (folder / f"{number}.txt").write_text(TEXT)


@pytest.mark.usefixtures("idles_often")
def test_rates_and_backlog_of_a_hung_query_are_what_the_job_knows(spark, listen, tmp_path, gate):
    """Spark's rates while they hold, none once it is stalled; files and bytes that were written and not read."""
    folder = tmp_path / "in"
    _fill(folder, range(5))
    listener = listen(silence_seconds=1, checkpoint_seconds=0.2)
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    writer = lines.writeStream.queryName("hung").option("checkpointLocation", str(tmp_path / "ck"))
    query = writer.foreachBatch(gate).start()
    gate.open(2)

    def third():
        last = query.lastProgress
        return last is not None and last["batchId"] == 1 and gate.held_since

    wait_for(third, 60, "the third batch")
    last = query.lastProgress
    sparks = (last["inputRowsPerSecond"], last["processedRowsPerSecond"])
    wait_for(lambda: _rates(listener, "hung") == sparks, what=f"Spark's own rates {sparks}")
    _await_backlog(listener, 3)
    _fill(folder, (5, 6))
    _await_backlog(listener, 5)
    wait_for(lambda: _live(listener, "hung")["state"] == "stalled", 60, "the stall")
    live = _live(listener, "hung")
    assert live["rates"] == {"input": None, "processed": None}
    assert _rates(listener, "hung") == (None, None)
    assert live["inflight_batch"] == 2
    assert abs(live["inflight"] - (time.time() - gate.held_since)) < 3
    assert live["step"]["runbook"] == "SparkStreamQueryStalled"
    assert live["step"]["command"] == (
        f"streamgauge checkpoint restart file:{tmp_path / 'ck'} --sink foreachBatch"
    )
    gate.open(100)
    _await_backlog(listener, 0)
    wait_for(lambda: _rates(listener, "hung") == (0.0, None), what="idleness")


def _await_backlog(listener, files):
    """The live page has so many files, with their bytes; the batch that runs still counts."""
    expected = [["files", float(files)], ["bytes", float(files * len(TEXT))]]
    found = []

    def equal():
        found[:] = [_live(listener, "hung")["backlog"]]
        return found == [{"parts": expected, "unknown": 0}]

    wait_for(equal, 30, f"{files} files, last {found}")
