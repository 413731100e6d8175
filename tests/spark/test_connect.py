"""The same listener over Connect: a real server on loopback, killed, restarted, and cut off."""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from queue import Empty, Queue

import pytest
from connect_server import Proxy, Server
from stage import free_port, page, value, wait_for

# Kept out of CI until the whole file has passed in one run on a quiet machine: `make connect`.
pytestmark = pytest.mark.lab

EXIT = 5.0
CLIENT = """
import atexit, sys, time
atexit.register(lambda: print("left", time.monotonic() - ended, flush=True))  # runs last
from pyspark.sql import SparkSession
from streamgauge import TelemetryListener

url = sys.argv[1]
listener = TelemetryListener(metrics_address="127.0.0.1:0", watch_seconds=1, log_level="off")

def connect():
    global spark
    spark = SparkSession.builder.remote(url).getOrCreate()

def start(name, **trigger):
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    trigger = trigger or {"processingTime": "300 milliseconds"}
    return rows.writeStream.format("noop").queryName(name).trigger(**trigger).start()

for line in sys.stdin:
    try:
        exec(line, globals())
        print("ok", flush=True)
    except BaseException as error:
        print("error", repr(error), flush=True)
ended = time.monotonic()
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
        """Let the main thread end; how long threads and exit handlers took, and the status."""
        self._process.stdin.close()
        status = self._process.wait(60)
        wait_for(lambda: not self._lines.empty(), 10, "the last word")
        word, seconds = self._lines.get().split()
        assert word == "left"
        return float(seconds), status

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all tests; whoever kills it starts it again."""
    one = Server(free_port(), tmp_path_factory.mktemp("connect"))
    one.start()
    yield one
    one.kill()


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
    took, status = one.exit()
    assert status == 0
    assert took < EXIT


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
    took, status = one.exit()
    assert status == 0
    assert took < EXIT


@pytest.mark.timeout(400)
def test_listener_that_the_user_removed_stays_removed(app):
    """Taking it off is not a fault to be cured; the verdict says that we don't see."""
    one = app()
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 2, 90, "batches")
    one.tell("spark.streams.removeListener(listener)")
    wait_for(lambda: one.state("q") in {"blind", "stopped"}, 60, "blind")
    assert one.tell("print(listener in spark.streams._sqlb._listener_bus)") == ["False"]


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
    took, status = one.exit()
    assert status == 0
    assert took < EXIT


def _cut(one, proxy, seconds):
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 3, 90, "batches")
    proxy.cut()
    began = time.monotonic()
    wait_for(lambda: one.state("q") == "blind", 30, "blind")
    assert "has not answered" in one.reason("q")
    while time.monotonic() - began < seconds:
        assert one.state("q") == "blind"
        time.sleep(1)
    proxy.mend()
    wait_for(lambda: one.state("q") == "running", 90, "running")
    _goes_on(one, "q")
    samples = one.page()
    assert value(samples, "agent_missed_batches_total", query=None) == 0
    assert value(samples, "agent_events_total", query=None, kind="duplicate") == 0
    assert value(samples, "query_starts_total", query="q") == 1
    for outcome in ("failed", "unknown", "stopped"):
        found = [
            number
            for (name, labels), number in samples.items()
            if name == "streamgauge_query_terminations_total" and ("outcome", outcome) in labels
        ]
        assert sum(found) == 0
    batches = value(samples, "batches_total", query="q", data="true")
    assert value(samples, "last_committed_batch_id", query="q") == batches - 1
    assert value(samples, "input_rows_total", query="q") == 10 * batches


@pytest.mark.timeout(400)
def test_cut_network_loses_nothing(app, proxy):
    """Blind while it lasts; then every batch, once, and no false end. Cut again, it still exits."""
    one = app(proxy.port)
    _cut(one, proxy, 0)
    proxy.cut()
    wait_for(lambda: one.state("q") == "blind", 30, "blind")
    took, status = one.exit()
    assert status == 0
    assert took < EXIT


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_network_cut_for_forty_seconds_loses_nothing(app, proxy):
    """As above, for as long as the issue asks."""
    one = app(proxy.port)
    _cut(one, proxy, 40)
    took, status = one.exit()
    assert status == 0
    assert took < EXIT


def _kill(one, server, seconds):
    one.tell("query = start('q')")
    wait_for(lambda: one.batches("q") >= 3, 90, "batches")
    server.kill()
    began = time.monotonic()
    try:
        wait_for(lambda: one.state("q") == "blind", 30, "blind")
        assert "server is gone" in one.reason("q")
        while time.monotonic() - began < seconds:
            assert one.state("q") == "blind"
            time.sleep(1)
    finally:
        server.start()
    wait_for(lambda: "session is dead" in one.reason("q"), 150, "a dead session")
    assert one.state("q") == "blind"
    one.tell("old = spark")
    one.tell("spark = SparkSession.builder.remote(url).create()")
    one.tell("query = start('q')")
    wait_for(lambda: one.state("q") == "running", 30, "running")
    _goes_on(one, "q")
    samples = one.page()
    assert value(samples, "query_active", query="q") == 1
    assert (
        value(samples, "query_terminations_total", query="q", outcome="failed", error_class="other")
        == 0
    )


@pytest.mark.timeout(500)
def test_killed_server_is_told_and_its_successor_joined(app, server):
    """Blind soon; right again soon after the application has a session; exit without a server."""
    one = app()
    _kill(one, server, 0)
    server.kill()
    try:
        wait_for(lambda: one.state("q") == "blind", 30, "blind")
        took, status = one.exit()
        assert status == 0
        assert took < EXIT
    finally:
        server.start()


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_server_killed_for_sixty_seconds(app, server):
    """As above, for as long as the issue asks."""
    one = app()
    _kill(one, server, 60)
    took, status = one.exit()
    assert status == 0
    assert took < EXIT
