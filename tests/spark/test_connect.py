"""The same listener over Connect: a real server on loopback, killed, restarted, and cut off."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from queue import Empty, Queue

import pytest
from connect_server import Proxy, Server
from stage import free_port, page, value, wait_for

EXIT = 5.0
CLIENT = """
import sys, time
from pyspark.sql import SparkSession
from streamgauge import TelemetryListener

url = sys.argv[1]
listener = TelemetryListener(metrics_address="127.0.0.1:0", watch_seconds=1, log_level="off")

def connect():
    global spark
    spark = SparkSession.builder.remote(url).getOrCreate()

def start(name, session=None, **trigger):
    rows = (session or spark).readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    trigger = trigger or {"processingTime": "300 milliseconds"}
    return rows.writeStream.format("noop").queryName(name).trigger(**trigger).start()

for line in sys.stdin:
    try:
        exec(line, globals())
        print("ok", flush=True)
    except BaseException as error:
        print("error", repr(error), flush=True)
print("last", time.monotonic(), flush=True)
"""

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
from streamgauge.listener.client import Client
client = Client(Public(spark), listener)
client.ask(30)
"""


class App:
    """An application of its own, told what to do line by line."""

    def __init__(self, port):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", CLIENT, f"sc://127.0.0.1:{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines = Queue()
        self._errors = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._complain, daemon=True).start()
        self.address = None

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def _complain(self):
        self._errors.extend(self._process.stderr)

    def tell(self, line, seconds=100, *, wait=True):
        """Have a line executed; what it printed."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        said = []
        while wait:
            try:
                said.append(self._lines.get(timeout=seconds))
            except Empty:
                raise AssertionError(f"{line!r} hangs: {''.join(self._errors)[-3000:]}") from None
            if said[-1] == "ok":
                break
            assert not said[-1].startswith("error"), said
        return said[:-1]

    def listen(self):
        """Connect, and add the listener."""
        self.tell("connect()")
        self.tell("spark.streams.addListener(listener)")
        self.address = self.tell("print(listener.address)")[0]

    def page(self):
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=20) as answer:
            return page(answer.read().decode())

    def state(self, query):
        samples = self.page()
        states = ("running", "idle", "blind", "starting", "failed", "stopped", "stalled")
        return next(
            (s for s in states if value(samples, "query_state", query=query, state=s)), None
        )

    def reason(self, query):
        """The verdict in words."""
        code = (
            "from streamgauge.listener.verdict import judge; "
            "print([judge(q, time.time()).reason for q in listener._agent.queries.values() "
            f"if q.label == {query!r}][0])"
        )
        return self.tell(code)[0]

    def batches(self, query):
        return value(self.page(), "batches_total", query=query, data="true") or 0

    def exit(self):
        """Let the script end; the whole exit from its last line on, in seconds, and the status.

        Threads, exit handlers and the interpreter's own end are in it: the clock is the machine's.
        """
        self._process.stdin.close()
        status = self._process.wait(60)
        ended = time.monotonic()
        wait_for(lambda: not self._lines.empty(), 10, "the last word")
        word, at = self._lines.get().split()
        assert word == "last"
        return ended - float(at), status

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)


@pytest.fixture(scope="module")
def one_server(tmp_path_factory):
    """One server for all tests."""
    one = Server(free_port(), tmp_path_factory.mktemp("connect"))
    yield one
    one.kill()


@pytest.fixture
def server(one_server):
    """The server, alive also after a test that killed it."""
    if not one_server.alive:
        one_server.start()
    return one_server


@pytest.fixture
def app(server):
    """Starts applications, and ends them."""
    started = []

    def start(port=None):
        started.append(App(port or server.port))
        started[-1].listen()
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def proxy(server):
    """A network that can be cut."""
    one = Proxy(server.port)
    yield one
    one.close()


def _goes_on(one, query):
    """Wait until more batches are seen, and the verdict is that it runs."""
    seen = one.batches(query)
    wait_for(lambda: one.batches(query) > seen + 1, 90, "more batches")
    wait_for(lambda: one.state(query) == "running", 30, "running")


def _exits(one):
    """The whole process ends soon, and well."""
    took, status = one.exit()
    assert status == 0
    assert took < EXIT


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
    _exits(one)


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
    _goes_on(one, "q")
    samples = one.page()
    assert value(samples, "query_terminations_total", query="q", outcome="unknown") == 0
    _exits(one)


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
    _goes_on(one, "q")
    assert len([labels for name, labels in one.page() if name == "streamgauge_query_info"]) == 1
    _exits(one)


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
    _goes_on(one, "q")
    samples = one.page()
    assert value(samples, "agent_missed_batches_total", query=None) == 0
    assert value(samples, "query_starts_total", query="q") == 1
    assert value(samples, "query_starts_total", query=label) == 1
    _exits(one)


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
    _goes_on(one, "q")


def _starts(apps):
    for one in apps:
        one.tell("query = start('q')")
    for one in apps:
        wait_for(lambda one=one: one.batches("q") >= 3, 90, "batches")


def _all_blind(apps, why):
    deadline = time.monotonic() + 30
    for one in apps:
        left = deadline - time.monotonic()
        wait_for(lambda one=one: one.state("q") == "blind", left, "blind")
    for one in apps:
        assert why in one.reason("q")


def _stay_blind(apps, until):
    while time.monotonic() < until:
        assert {one.state("q") for one in apps} == {"blind"}
        time.sleep(1)


def _ends(samples):
    """How many ends were told, by outcome."""
    found = {}
    for (name, labels), number in samples.items():
        if name == "streamgauge_query_terminations_total":
            outcome = dict(labels)["outcome"]
            found[outcome] = found.get(outcome, 0) + number
    return found


@pytest.mark.integration
@pytest.mark.timeout(500)
def test_network_cut_for_forty_seconds_loses_nothing(app, proxy):
    """Blind while it lasts; then every batch, once, and no false end; exit with and without it."""
    apps = app(proxy.port), app(proxy.port)
    _starts(apps)
    proxy.cut()
    until = time.monotonic() + 40
    _all_blind(apps, "has not answered")
    _stay_blind(apps, until)
    proxy.mend()
    for one in apps:
        wait_for(lambda one=one: one.state("q") == "running", 90, "running")
        _goes_on(one, "q")
        samples = one.page()
        assert value(samples, "agent_missed_batches_total", query=None) == 0
        assert value(samples, "agent_events_total", query=None, kind="duplicate") == 0
        assert value(samples, "query_starts_total", query="q") == 1
        assert sum(_ends(samples).values()) == 0
        batches = value(samples, "batches_total", query="q", data="true")
        assert value(samples, "last_committed_batch_id", query="q") == batches - 1
        assert value(samples, "input_rows_total", query="q") == 10 * batches
    _exits(apps[0])
    proxy.cut()
    _all_blind(apps[1:], "has not answered")
    _exits(apps[1])


@pytest.mark.integration
@pytest.mark.timeout(500)
def test_server_killed_for_sixty_seconds_is_told_and_its_successor_joined(app, server):
    """Blind soon; right soon after the application has a session; exit with and without a server."""
    apps = app(), app()
    _starts(apps)
    server.kill()
    until = time.monotonic() + 60
    _all_blind(apps, "server is gone")
    _stay_blind(apps, until)
    server.start()
    for one in apps:
        one.tell("old = spark; spark = SparkSession.builder.remote(url).create()")
        # gRPC tries the address again when it likes, up to two minutes later; then there is a session.
        one.tell("query = start('q')", 200)
        wait_for(lambda one=one: one.state("q") == "running", 30, "running")
        _goes_on(one, "q")
        samples = one.page()
        assert value(samples, "query_active", query="q") == 1
        assert len([name for name, _ in samples if name == "streamgauge_query_info"]) == 1
        assert _ends(samples) == {"failed": 0, "stopped": 0, "unknown": 1}
    _exits(apps[0])
    server.kill()
    _all_blind(apps[1:], "server is gone")
    _exits(apps[1])
