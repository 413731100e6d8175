"""The agent on a real Spark: right numbers, right verdicts, and what no event tells."""

import json
import threading
import time

import pytest
from harness import commits, run_job
from stage import page, value, wait_for


def _stat(listener, name, **labels):
    return value(page(listener._agent), name, **labels)


def test_numbers_agree_with_sparks_own(listen, spark, tmp_path):
    """Rows, batches, state and evidence of a stateful query over files."""
    source, checkpoint = tmp_path / "in", tmp_path / "ck"
    source.mkdir()
    for n in range(3):
        (source / f"{n}.json").write_text("".join(f'{{"k": {i % 4}}}\n' for i in range(20)))
    listener = listen()
    stream = spark.readStream.schema("k int").option("maxFilesPerTrigger", 1).json(str(source))
    query = (
        stream.groupBy("k")
        .count()
        .writeStream.format("memory")
        .outputMode("complete")
        .queryName("files")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    commits(query, 3)
    wait_for(lambda: _stat(listener, "input_rows_total", query="files") == 60, what="60 rows")
    samples = page(listener._agent)
    assert value(samples, "batches_total", query="files", data="true") == 3
    assert value(samples, "output_rows_total", query="files") == 12
    assert value(samples, "state_rows", query="files", operator="0-stateStoreSave") == 4
    assert value(samples, "state_rows_updated_total", query="files") == 12
    assert value(samples, "last_committed_batch_id", query="files") == 2
    assert value(samples, "sink_idempotent", query="files") == 1

    def evidence():
        for name, labels in page(listener._agent):
            found = dict(labels)
            if name == "streamgauge_query_info" and found["state_provider"]:
                return found
        return None

    info = wait_for(evidence, what="the evidence")
    assert info["query_id"] == query.id
    assert info["run_id"] == query.runId
    assert info["app"] == "streamgauge-tests"
    assert info["app_id"] == spark.sparkContext.applicationId
    assert info["spark_version"] == spark.version
    assert info["checkpoint"] == f"file:{checkpoint}"
    assert info["output_mode"] == "Complete"
    assert info["trigger"] == "processing_time"
    assert info["state_provider"] == "hdfs"
    assert info["sink"] == "memory"
    assert _stat(listener, "trigger_interval_seconds", query="files") == 0.2
    assert json.loads((checkpoint / "metadata").read_text())["id"] == info["query_id"]


def test_names_in_the_checkpoint_are_read_through_spark(listen, rows, tmp_path):
    """What is planned and what is committed, and nothing in the checkpoint is touched."""
    listener = listen(checkpoint_seconds=0.5)
    writer = rows.writeStream.format("noop").queryName("names")
    query = writer.option("checkpointLocation", str(tmp_path / "ck")).trigger(once=True).start()
    query.awaitTermination(60)
    query = writer.trigger(processingTime="1 hour").start()
    commits(query, 2)
    name = "checkpoint_last_commit_batch_id"
    wait_for(lambda: _stat(listener, name, query="names") == 1, what="the names")
    samples = page(listener._agent)
    assert value(samples, "checkpoint_last_offset_batch_id", query="names") == 1
    assert value(samples, "checkpoint_uncommitted_batches", query="names") == 0
    written = (tmp_path / "ck" / "commits" / "1").stat().st_mtime
    stamp = value(samples, "checkpoint_last_commit_timestamp_seconds", query="names")
    assert abs(stamp - written) < 0.01
    assert sum(listener.stats.of("errors").values()) == 0


def test_size_of_the_state_is_what_lies_on_disk(listen, rows, tmp_path):
    """Opt-in; counted by Spark's file system, compared with the files themselves."""
    listener = listen(checkpoint_seconds=0.1, checkpoint_state_size=True)
    counted = rows.groupBy("value").count().writeStream.format("noop").outputMode("update")
    query = (
        counted.option("checkpointLocation", str(tmp_path / "ck"))
        .queryName("sized")
        .trigger(processingTime="1 hour")
        .start()
    )
    commits(query, 1)
    # Hadoop's local file system hides its own checksum files
    files = [path for path in (tmp_path / "ck" / "state").rglob("*") if path.is_file()]
    shown = [path for path in files if not (path.name.startswith(".") and path.suffix == ".crc")]
    size = sum(path.stat().st_size for path in shown)
    assert size
    name = "checkpoint_state_bytes"
    wait_for(lambda: _stat(listener, name, query="sized") == size, what=f"{size} bytes")


def test_idle_query_is_idle(listen, spark, tmp_path):
    """No data for longer than the budget allows silence: idle, at freshness 0, never stalled."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text('{"k": 1}\n')
    listener = listen(silence_seconds=1)
    seen = set()
    query = (
        spark.readStream.schema("k int")
        .json(str(tmp_path / "in"))
        .writeStream.format("noop")
        .queryName("quiet")
        .start()
    )
    commits(query, 1)

    def idle():
        samples = page(listener._agent)
        seen.update(
            s
            for s in ("stalled", "blind", "idle")
            if value(samples, "query_state", query="quiet", state=s)
        )
        return value(samples, "last_idle_timestamp_seconds", query="quiet")

    wait_for(idle, 40, "an idle event")
    wait_for(lambda: _stat(listener, "query_state", query="quiet", state="idle") == 1)
    assert _stat(listener, "freshness_lag_seconds", query="quiet") == 0
    assert "stalled" not in seen
    assert "blind" not in seen


@pytest.fixture
def brisk(spark):
    """Idle events every second, so that a silence budget is short."""
    key = "spark.sql.streaming.noDataProgressEventInterval"
    spark.conf.set(key, "1s")
    yield
    spark.conf.unset(key)


def _overdue(listener, name):
    """Whether the running batch has run for longer than the query's whole budget."""
    samples = page(listener._agent)
    age = value(samples, "inflight_batch_seconds", query=name)
    budget = value(samples, "silence_budget_seconds", query=name)
    return age is not None and age > budget + 1


@pytest.mark.usefixtures("brisk")
def test_hung_batch_is_seen_while_it_hangs(listen, rows):
    """Age and verdict move although no event is sent, and recover with the batch."""
    hang = threading.Event()

    def write(frame, batch_id):
        frame.count()
        if batch_id == 2:
            hang.wait(90)

    listener = listen(silence_seconds=3)
    query = rows.writeStream.foreachBatch(write).queryName("hung").start()
    try:
        wait_for(lambda: _stat(listener, "last_committed_batch_id", query="hung") == 1, 60)
        wait_for(lambda: _overdue(listener, "hung"), 80, "an overdue batch")
        wait_for(lambda: _stat(listener, "query_state", query="hung", state="stalled") == 1)
        samples = page(listener._agent)
        assert value(samples, "query_trigger_active", query="hung") == 1
        assert value(samples, "last_committed_batch_id", query="hung") == 1
        assert value(samples, "inflight_tasks", query="hung", state="running") == 0
        assert value(samples, "inflight_tasks", query="hung", state="completed") >= 1
    finally:
        hang.set()
    wait_for(lambda: _stat(listener, "query_state", query="hung", state="running") == 1)
    commits(query, 4)


@pytest.mark.usefixtures("brisk")
def test_slow_batch_is_not_a_hung_one(listen, rows, spark):
    """Tasks that finish one after the other keep a long batch from being called stalled.

    Also where the user's code describes its jobs, which takes the number of the batch from them.
    """
    enough = threading.Event()

    def write(_, batch_id):
        spark.sparkContext.setJobDescription("merge")
        while batch_id == 1 and not enough.is_set():
            spark.sparkContext.parallelize(range(4), 4).foreach(lambda _: time.sleep(0.5))

    listener = listen(silence_seconds=3)
    query = rows.writeStream.foreachBatch(write).queryName("slow").start()
    try:
        wait_for(lambda: _stat(listener, "last_committed_batch_id", query="slow") == 0, 60)
        wait_for(lambda: _overdue(listener, "slow"), 80, "an overdue batch")
        # No event comes: only the tasks that finish can tell it from a hung one.
        wait_for(lambda: _stat(listener, "query_state", query="slow", state="running") == 1, 60)
        samples = page(listener._agent)
        assert value(samples, "inflight_tasks", query="slow", state="completed") >= 1
        assert value(samples, "inflight_last_task_timestamp_seconds", query="slow") is not None
    finally:
        enough.set()
    commits(query, 3)


def test_replayed_batch_and_failure(listen, rows, tmp_path):
    """A batch that failed is run again after the restart, and counted as such."""
    fail = [True]

    def write(frame, batch_id):
        frame.count()
        if batch_id == 1 and fail[0]:
            fail[0] = False
            raise ValueError("password=hunter2 is wrong")

    def start():
        writer = rows.writeStream.foreachBatch(write).queryName("again")
        return writer.option("checkpointLocation", str(tmp_path / "ck")).start()

    listener = listen()
    query = start()
    wait_for(lambda: not query.isActive, 60, "the failure")
    wait_for(lambda: _stat(listener, "query_state", query="again", state="failed") == 1)
    (end,) = [q.end for q in listener._agent.queries.values()]
    assert end.error_class in {"FOREACH_BATCH_USER_FUNCTION_ERROR", "Py4JException"}
    assert "ValueError" in end.exception
    assert "hunter2" not in end.exception
    query = start()
    commits(query, 3)
    wait_for(lambda: _stat(listener, "batches_replayed_total", query="again") == 1)
    assert _stat(listener, "query_starts_total", query="again") == 2
    assert _stat(listener, "agent_missed_batches_total", query=None) == 0


def test_removed_listener_makes_blind(listen, rows, spark, monkeypatch):
    """The query moves on, we don't hear it, and say so instead of showing old numbers."""
    monkeypatch.setattr("streamgauge.model.transitions.RECOVERY_SECONDS", 2.0)
    listener = listen()
    query = rows.writeStream.format("noop").queryName("gone").start()
    commits(query, 2)
    wait_for(lambda: _stat(listener, "query_state", query="gone", state="running") == 1)
    spark.streams.removeListener(listener)
    wait_for(lambda: _stat(listener, "query_state", query="gone", state="blind") == 1, 20, "blind")
    spark.streams.addListener(listener)
    wait_for(lambda: _stat(listener, "query_state", query="gone", state="running") == 1)


def test_listener_added_late_sees_the_query(listen, rows):
    """No start was seen: batches are counted, the start time is not invented."""
    query = rows.writeStream.format("noop").queryName("early").start()
    commits(query, 2)
    listener = listen()
    wait_for(lambda: (_stat(listener, "input_rows_total", query="early") or 0) > 0)
    samples = page(listener._agent)
    assert value(samples, "query_started_timestamp_seconds", query="early") is None
    assert value(samples, "query_starts_total", query="early") == 0


def test_available_now_without_data_ends_well(listen, spark, tmp_path):
    """Only a start and an end are sent; that is not a failure, and says what it did not do."""
    (tmp_path / "in").mkdir()
    listener = listen()
    stream = spark.readStream.schema("k int").json(str(tmp_path / "in"))
    writer = stream.writeStream.format("noop").queryName("nothing").trigger(availableNow=True)
    writer.start().awaitTermination(60)
    wait_for(lambda: _stat(listener, "query_state", query="nothing", state="stopped") == 1)
    assert _stat(listener, "query_terminations_total", query="nothing", outcome="stopped") == 1


def test_spark_stop_ends_queries_without_a_failure():
    """No Terminated event is sent then, and what Spark says of the query is not true."""
    done = run_job(
        """
        from stage import page, value, wait_for
        from streamgauge import TelemetryListener

        spark = build_session("stops")
        spark.sparkContext.setLogLevel("OFF")
        listener = TelemetryListener(metrics_address="127.0.0.1:0", watch_seconds=0.2)
        spark.streams.addListener(listener)
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        query = rows.writeStream.format("noop").queryName("q").start()
        commits(query, 2)
        spark.stop()
        stat = lambda *a, **k: value(page(listener._agent), *a, query="q", **k)
        wait_for(lambda: stat("query_active") == 0, 20)
        outcomes = {o: stat("query_terminations_total", outcome=o) for o in ("stopped", "failed", "unknown")}
        print("outcomes", sum(outcomes.values()), outcomes["failed"], flush=True)

        spark = build_session("again")
        spark.streams.addListener(listener)
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        query = rows.writeStream.format("noop").queryName("second").start()
        commits(query, 2)
        wait_for(lambda: (value(page(listener._agent), "input_rows_total", query="second") or 0) > 0)
        apps = {dict(pairs)["app"] for _, pairs in page(listener._agent) if ("query", "second") in pairs}
        print("second context seen", apps, flush=True)
        """
    )
    assert "outcomes 1.0 0.0" in done.stdout, done.stdout + done.stderr[-3000:]
    assert "second context seen {'again'}" in done.stdout, done.stdout + done.stderr[-3000:]
    assert done.returncode == 0


def test_slow_spark_stop_fails_no_healthy_query():
    """While the JVM takes its time to end, the watchdog's looks find runs with an exception on them."""
    done = run_job(
        """
        from streamgauge import TelemetryListener

        spark = build_session("slow")
        context, stop = spark.sparkContext, spark.sparkContext.stop
        context.setLogLevel("OFF")

        def stop_slowly():
            context._jsc.stop()
            time.sleep(2)  # ten looks
            stop()

        context.stop = stop_slowly
        listener = TelemetryListener(metrics_address="127.0.0.1:0", watch_seconds=0.2)
        spark.streams.addListener(listener)
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        query = rows.writeStream.foreachBatch(lambda rows, _: rows.count()).queryName("q").start()
        commits(query, 2)
        spark.stop()
        (query,) = listener._agent.queries.values()
        print("end", query.end.outcome, flush=True)
        """
    )
    assert "end unknown" in done.stdout, done.stdout + done.stderr[-3000:]


def test_bus_drops_are_counted():
    """A bus that drops events (a slow listener of somebody else) shows in our own counters."""
    done = run_job(
        """
        from pyspark.sql.streaming import StreamingQueryListener
        from stage import page, value, wait_for
        from streamgauge import TelemetryListener

        class Slow(StreamingQueryListener):
            def onQueryStarted(self, event): pass
            def onQueryProgress(self, event): time.sleep(1)
            def onQueryIdle(self, event): pass
            def onQueryTerminated(self, event): pass

        spark = build_session("drops", **{"spark.scheduler.listenerbus.eventqueue.streams.capacity": "20"})
        spark.sparkContext.setLogLevel("OFF")
        listener = TelemetryListener(metrics_address="127.0.0.1:0", watch_seconds=0.2)
        spark.streams.addListener(listener)
        spark.streams.addListener(Slow())
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        query = rows.writeStream.format("noop").queryName("q").start()
        stat = lambda name: value(page(listener._agent), name, query=None)
        wait_for(lambda: stat("agent_bus_dropped_events_total") > 0, 60)
        wait_for(lambda: stat("agent_missed_batches_total") > 0, 60)
        print("counted", flush=True)
        query.stop()
        ended = lambda: value(page(listener._agent), "query_active", query="q") == 0
        wait_for(ended, 60)
        print("ended", flush=True)
        """
    )
    assert "counted" in done.stdout, done.stdout + done.stderr[-3000:]
    assert "ended" in done.stdout, done.stdout + done.stderr[-3000:]
