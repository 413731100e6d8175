"""The same listener over Connect, on a real server."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from connect_app import EXIT, exits, goes_on
from stage import value, wait_for

# A session without anything private, to look at as at one of a Spark that we don't know.
PUBLIC = """
class Public:
    def __init__(self, real):
        self.__dict__["real"] = real
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self.real, name)
        return Public(found) if name in ("client", "streams") else found
from streamgauge.listener.connect.client import Client
client = Client(Public(spark), listener)
client.ask(30)
"""


@pytest.mark.timeout(400)
def test_same_listener_same_numbers(app):
    """Every event, none the slow way; what Connect can't show is absent; stop loses nothing."""
    one = app()
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 3, 90, "batches")
    wait_for(lambda: value(one.page(), "query_trigger_active", query="q") is not None, 30)
    samples = one.page()
    assert value(samples, "query_state", query="q", state="running") == 1
    (info,) = [dict(labels) for name, labels in samples if name == "streamgauge_query_info"]
    assert info["app"] == "connect-tests"
    assert info["spark_version"].startswith("4.")
    assert info["app_id"]
    assert info["checkpoint"] == ""
    assert value(samples, "inflight_tasks", query="q", state="running") is None
    one.tell("query.stop()")
    last = json.loads(one.tell("print(query.lastProgress.json)")[0])
    one.tell("spark.stop()")
    samples = one.page()
    done = value(samples, "batches_total", query="q", data="true")
    assert done in {last["batchId"], last["batchId"] + 1}
    assert value(samples, "input_rows_total", query="q") == 10 * done
    assert value(samples, "query_starts_total", query="q") == 1
    assert value(samples, "query_terminations_total", query="q", outcome="stopped") == 1
    assert value(samples, "agent_fallback_events_total", query=None) == 0
    assert value(samples, "agent_missed_batches_total", query=None) == 0
    exits(one)


OFF = """
import sys, time
from pyspark.sql import SparkSession
from streamgauge import TelemetryListener

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
listener = TelemetryListener(metrics_address="127.0.0.1:0")
for _ in range(2):
    spark.streams.addListener(listener)
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
query = rows.writeStream.format("noop").queryName("off").trigger(availableNow=True).start()
query.awaitTermination(60)
bus = spark.streams._sqlb
print("on the bus", len(bus._listener_bus), bus._execution_thread, flush=True)
spark.streams.removeListener(listener)
spark.streams.addListener(listener)
print("last", time.time(), flush=True)
"""


@pytest.mark.timeout(400)
def test_kill_switch_registers_nothing_and_the_process_ends(server):
    """No listener on the bus or on the server, no thread; it can be removed, and exit is as without us."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OFF, f"sc://127.0.0.1:{server.port}"],
        env={**os.environ, "STREAMGAUGE_DISABLED": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    ended = time.time()
    assert done.returncode == 0, done.stderr[-3000:]
    bus, last = done.stdout.splitlines()
    assert bus == "on the bus 0 None"
    assert ended - float(last.split()[1]) < EXIT


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_cleared_listeners_are_added_again(app):
    """Spark clears them when their stream breaks, and never again adds them itself."""
    one = app()
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 2, 90, "batches")
    one.tell("before = spark.streams._sqlb._execution_thread")
    one.tell(
        "from pyspark.sql.connect.client.reattach import "
        "ExecutePlanResponseReattachableIterator as Stream"
    )
    one.tell(
        "[s._stub.ReleaseExecute(s._create_release_execute_request(None), metadata=s._metadata) "
        "for s in list(Stream._instances) if not s._result_complete]"
    )
    again = "print(spark.streams._sqlb._execution_thread not in (None, before))"
    wait_for(lambda: one.tell(again) == ["True"], 60, "our listener on the bus again")
    goes_on(one, "q")
    samples = one.page()
    assert value(samples, "query_terminations_total", query="q", outcome="unknown") == 0
    exits(one)


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_listener_that_the_user_removed_stays_removed(app):
    """Taking it off is not a fault to be cured; the verdict says that we don't see."""
    one = app()
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 2, 90, "batches")
    one.tell("spark.streams.removeListener(listener)")
    wait_for(lambda: one.state("q") in {"blind", "stopped"}, 60, "blind")
    assert one.tell("print(listener in spark.streams._sqlb._listener_bus)") == ["False"]


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_dead_session_is_told_and_the_new_one_joined(app):
    """The server has let go of the session and its queries; the application's next one is seen."""
    one = app()
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 2, 90, "batches")
    one.tell("old = spark; spark.client.release_session()")
    wait_for(lambda: one.state("q") in {"blind", "stopped"}, 30, "the end")
    one.tell("spark = SparkSession.builder.remote(url).create()")
    one.tell("query = start('q')")
    wait_for(lambda: one.state("q") == "running", 30, "running")
    goes_on(one, "q")
    assert len([labels for name, labels in one.page() if name == "streamgauge_query_info"]) == 1
    exits(one)


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_every_session_of_the_client_and_the_end_of_one(app):
    """`attach` follows new sessions; one name does not mix; a session's end disturbs no other."""
    one = app()
    one.tell("listener.close(); import streamgauge")
    one.tell(
        "listener = streamgauge.attach(spark, metrics_address='127.0.0.1:0', watch_seconds=1, "
        "log_level='off')"
    )
    one.address = one.tell("print(listener.address)")[0]
    one.tell("other = SparkSession.builder.remote(url).create()")
    wait_for(
        lambda: one.tell("print(listener in other.streams._sqlb._listener_bus)") == ["True"],
        30,
        "our listener on the new session",
    )
    one.tell("query = start('q')")
    one.tell("second = start('q', other)")
    label = f"q-{one.tell('print(second.id[:8])')[0]}"
    for query in ("q", label):
        wait_for(lambda query=query: one.batches(query) >= 3, 60, "batches")
    last = json.loads(one.tell("print(second.lastProgress.json)")[0])["batchId"]
    one.tell("other.stop()")
    assert one.batches(label) >= last + 1
    goes_on(one, "q")
    samples = one.page()
    assert value(samples, "agent_missed_batches_total", query=None) == 0
    assert value(samples, "query_starts_total", query="q") == 1
    assert value(samples, "query_starts_total", query=label) == 1
    exits(one)


JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
rows.writeStream.format("noop").queryName("q").trigger(once=True).start().awaitTermination()
sys.exit(5)
"""


@pytest.mark.integration
@pytest.mark.timeout(200)
def test_unchanged_job_is_seen_whole(server, tmp_path):
    """`streamgauge run` attaches to a Connect session as to any other; the status is the job's."""
    (tmp_path / "job.py").write_text(JOB)
    tool = str(Path(sys.executable).parent / "streamgauge")
    done = subprocess.run(
        [tool, "run", str(tmp_path / "job.py"), f"sc://127.0.0.1:{server.port}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "STREAMGAUGE_METRICS_ADDRESS": "127.0.0.1:0"},
    )
    assert done.returncode == 5, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    told = [line["event"] for line in lines if line["event"].startswith("query ")]
    assert told == ["query started", "query stopped"], done.stderr[-3000:]


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_connect_with_other_insides_is_still_seen(app):
    """Nothing private is there: looks go by public calls, and nothing is called a fault."""
    one = app()
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 2, 90, "batches")
    one.tell(f"exec({PUBLIC!r}, globals())")
    assert one.tell("print(client.listens(), client.blindness(), client.unreachable)") == [
        "True None False"
    ]
    assert one.tell("print(list(client.answer.running) == [query.runId])") == ["True"]
    assert one.tell("print(client.answer.version == spark.version)") == ["True"]
    one.tell("client.leave(1)")
    assert one.tell("print(listener in spark.streams._sqlb._listener_bus)") == ["True"]
    goes_on(one, "q")
