"""The bridge without Python on Spark's threads, on a real Spark."""

import ctypes
import gc
import json
import re
import threading
import time

import pyspark
import pytest
from harness import commits, run_job
from stage import recorded, wait_for

from streamgauge.listener.classic.jvm_queue import JvmQueue
from streamgauge.listener.classic.method_handles import MethodHandles
from streamgauge.listener.classic.queue_bridge import QueueBridge
from streamgauge.listener.inbox import FAILURE, Inbox

_EVENT = "org.apache.spark.sql.streaming.StreamingQueryListener$Query{}Event"


class Heard:
    """A bridge on the session's bus, and what it has brought so far."""

    def __init__(self, spark, **options):
        self._spark = spark
        self._items = []
        self.inbox = Inbox(10_000)
        self.bridge = QueueBridge(self.inbox, **options)
        self.java = self.bridge.make_listener()

    def add(self, spark=None):
        self.bridge.listen()
        (spark or self._spark).streams._jsqm.addListener(self.java)
        return self

    def remove(self, spark=None):
        (spark or self._spark).streams._jsqm.removeListener(self.java)

    def items(self):
        """Everything up to now, the bus and the queue drained."""
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(20_000)
        assert self.bridge.drain(20)
        with self.inbox._lock:
            self._items += self.inbox._items
            self.inbox._items.clear()
        return self._items

    def batches(self, name):
        found = [json.loads(item.content)["progress"] for item in self.of("progress")]
        return [one["batchId"] for one in found if one["name"] == name]

    def of(self, kind):
        return [item for item in self.items() if item.kind == kind]

    def kinds(self):
        return [item.kind for item in self.items()]


@pytest.fixture
def hear(spark):
    """Makes bridges on the bus; takes them off again."""
    made = []

    def make(*, add=True, **options):
        heard = Heard(spark, **options)
        made.append(heard)
        return heard.add() if add else heard

    yield make
    for query in spark.streams.active:
        query.stop()
    for heard in made:
        heard.remove()
        heard.inbox.close()
    wait_for(lambda: not _threads(), what="the end of the threads")


def _threads():
    return [thread for thread in threading.enumerate() if thread.name == "streamgauge-queue"]


def _start(rows, name):
    writer = rows.writeStream.format("noop").queryName(name)
    return writer.trigger(processingTime="100 milliseconds").start()


def _run(rows, name, batches):
    """A query from its start to its end; its last batch."""
    query = _start(rows, name)
    commits(query, batches)
    query.stop()
    return query.lastProgress["batchId"]


def test_every_event_arrives_in_order_with_nothing_run_on_the_bus(hear, rows):
    """Start, every batch, end; none by a fallback, and no time spent on Spark's threads."""
    heard = hear()
    last = _run(rows, "whole", 5)
    assert heard.batches("whole") == list(range(last + 1))
    assert heard.kinds() == ["started", *["progress"] * (last + 1), "terminated"]
    assert {(item.callback_seconds, item.fallback) for item in heard.items()} == {(None, False)}
    assert json.loads(heard.items()[0].content)["name"] == "whole"


def test_time_of_receipt_is_that_of_arrival_however_late_it_is_read(hear, rows, spark):
    """The JVM knows how long an event waited: a Python that stands still does not make it look late."""
    heard = hear(add=False)
    spark.streams._jsqm.addListener(heard.java)  # nobody reads
    began = time.time()
    _run(rows, "stamped", 3)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(20_000)
    ended = time.time()
    time.sleep(0.3)
    heard.bridge.listen()
    times = [item.at for item in heard.items()]
    assert len(times) >= 5
    assert times == sorted(times)
    assert began - 0.02 <= times[0] <= times[-1] <= ended + 0.02


def test_full_queue_loses_batches_but_no_start_and_no_end(hear, rows, spark):
    """Two runs while nobody reads, in a queue of three: order is kept, losses are counted."""
    heard = hear(add=False, capacity=3)
    spark.streams._jsqm.addListener(heard.java)
    last = _run(rows, "first", 6), _run(rows, "second", 2)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(20_000)
    heard.bridge.listen()
    assert heard.kinds() == ["started", *["progress"] * 2, "terminated", "started", "terminated"]
    assert heard.batches("first") == [0, 1]
    assert heard.bridge.dropped == sum(last) + 2 - 2
    _run(rows, "third", 2)
    assert heard.kinds()[6:9] == ["started", "progress", "progress"]


def test_many_queries_keep_their_order(hear, rows):
    """Eight queries at once: each one's start comes first, its end last, its batches in between."""
    heard = hear(capacity=20)
    queries = [_start(rows, f"q{number}") for number in range(8)]
    for query in queries:
        commits(query, 4)
    for query in queries:
        query.stop()
    lives = {str(query.runId): [] for query in queries}
    for item in heard.items():
        event = json.loads(item.content)
        event = event.get("progress", event)
        lives[event["runId"]].append(event.get("batchId", item.kind))
    for life in lives.values():
        assert (life[0], life[-1]) == ("started", "terminated")
        assert life[1:-1] == sorted(life[1:-1])
        assert len(life) >= 6


def test_removed_and_added_again(hear, rows, spark):
    """One Java object, found again for removal; nothing is heard in between."""
    heard = hear()
    before = len(spark.streams._jsqm.listListeners())
    _run(rows, "before", 2)
    count = len(heard.items())
    heard.remove()
    assert len(spark.streams._jsqm.listListeners()) == before - 1
    _run(rows, "between", 2)
    assert heard.bridge.drain(5)
    heard.add()
    _run(rows, "after", 2)
    assert heard.batches("between") == []
    assert heard.batches("after")[:2] == [0, 1]
    assert heard.kinds()[count] == "started"


def test_one_bridge_on_two_sessions(hear, rows, spark):
    """Both sessions' queries are heard, each once."""
    heard = hear()
    other = spark.newSession()
    heard.add(other)
    stream = other.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    last = _run(rows, "here", 2), _run(stream, "there", 2)
    assert heard.batches("here") == list(range(last[0] + 1))
    assert heard.batches("there") == list(range(last[1] + 1))
    other.streams._jsqm.removeListener(heard.java)


def test_two_listeners_of_one_bridge_are_two(hear, rows, spark):
    """Each is taken off by itself; one thread serves both."""
    heard = hear()
    second = heard.bridge.make_listener()
    spark.streams._jsqm.addListener(second)
    last = _run(rows, "both", 2)
    assert heard.batches("both") == sorted([*range(last + 1)] * 2)
    spark.streams._jsqm.removeListener(second)
    last = _run(rows, "one", 2)
    assert heard.batches("one") == list(range(last + 1))
    assert len(_threads()) == 1


def test_event_without_json_comes_through_the_public_objects(hear, rows, monkeypatch):
    """An event that throws is read by PySpark's classes, marked as a fallback, and in its place."""
    find = MethodHandles.find

    def find_broken(self, owner, name, result, *parameters):
        if name != "json":
            return find(self, owner, name, result, *parameters)
        thrown = find(self, "Object", "notify", "void")  # without owning the object's monitor
        return self.cast(thrown, "String", "Object")

    monkeypatch.setattr(MethodHandles, "find", find_broken)
    heard = hear()
    last = _run(rows, "slow", 2)
    assert heard.batches("slow") == list(range(last + 1))
    assert heard.kinds() == ["started", *["progress"] * (last + 1), "terminated"]
    assert all(item.fallback for item in heard.items())


def test_event_that_nobody_can_read_is_a_failure_and_no_more(hear, rows, spark):
    """The next event arrives as ever."""
    heard = hear()
    broken = getattr(spark._jvm, _EVENT.format("Progress"))(None)
    heard.java.onQueryProgress(broken)
    assert heard.kinds() == [FAILURE]
    _run(rows, "next", 2)
    assert heard.kinds()[1] == "started"


def test_inbox_that_raises_does_not_end_the_thread(hear, rows, monkeypatch):
    """Not even what can't happen: later events arrive."""
    heard = hear()

    def refuse(*_):
        raise MemoryError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(Inbox, "put", refuse)
        _run(rows, "refused", 5)
        assert heard.bridge.drain(20)
    last = _run(rows, "taken", 2)
    assert heard.batches("taken") == list(range(last + 1))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_killed_thread_is_replaced(hear, rows):
    """Whatever killed it: `drain` notices, and nothing that waited is lost."""
    heard = hear()
    (thread,) = _threads()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )
    thread.join(20)
    assert not thread.is_alive()
    last = _run(rows, "killed", 3)
    assert heard.batches("killed") == list(range(last + 1))


def test_closed_inbox_ends_the_thread_and_empties_the_queue(hear, rows):
    """A listener that stays on the bus after `close()` keeps nothing in the JVM."""
    heard = hear()
    query = _start(rows, "on")
    commits(query, 2)
    heard.inbox.close()
    wait_for(lambda: not _threads(), what="the end of the thread")
    commits(query, query.lastProgress["batchId"] + 4)
    assert heard.bridge._queue._main.size() == 0
    assert heard.bridge.drain(1)


def test_hundred_times_added_and_removed_leaves_no_thread(spark):
    """Neither in Python nor in the JVM; with a bridge of its own each time."""
    before = _connection_threads(spark), threading.active_count()
    for _ in range(100):
        heard = Heard(spark).add()
        heard.remove()
        heard.inbox.close()
    wait_for(lambda: not _threads(), what="the end of the threads")
    wait_for(lambda: _connection_threads(spark) <= before[0], what="the end of the JVM's threads")
    assert threading.active_count() <= before[1]


def _connection_threads(spark):
    """Threads of the JVM that serve a Py4J connection; they have no name of their own."""
    threads = spark._jvm.java.lang.Thread.getAllStackTraces().keySet().toString()
    return len(re.findall(r"Thread\[(?:#\d+,)?Thread-\d+,", threads))


def test_memory_in_the_jvm_is_bounded(spark):
    """Events of 3 x 1,000 partitions while nobody reads: the queue's bound is one of memory."""
    jvm = spark._jvm
    queue = JvmQueue(spark.sparkContext._gateway, capacity=40, reserve=10, burst=64)
    listener, before = queue.make_listener(), _used_mib(jvm)
    for number in range(80):
        listener.onQueryProgress(_long_event(jvm, number))
        if number % 40 == 39:
            wait_for(lambda: _used_mib(jvm) - before < 40 * 0.25, what="memory within its bound")
    assert _used_mib(jvm) - before > 40 * 0.05
    taken = queue.take(0)
    assert [json.loads(row.text)["progress"]["batchId"] for row in taken.main] == list(range(40))
    assert taken.dropped == 40
    queue.take(0)  # the text goes with the next one
    wait_for(lambda: _used_mib(jvm) - before < 40 * 0.05, what="the release of the memory")


@pytest.mark.parametrize("count", [1, 2, 8])
def test_long_answer_does_not_wait_for_an_acknowledgement(spark, count):
    """Py4J holds back the end of an answer above 8 KiB for 40 ms; no answer is that long."""
    event = getattr(spark._jvm, _EVENT.format("Terminated"))
    ids = [spark._jvm.java.util.UUID.randomUUID() for _ in range(2)]
    some = getattr(spark._jvm, "scala.Some")("x" * 5000)
    none = spark._jvm.scala.Option.empty()
    queue = JvmQueue(spark.sparkContext._gateway, capacity=40, reserve=10, burst=64)
    listener, times = queue.make_listener(), []
    for _ in range(20):
        for _ in range(count):
            listener.onQueryTerminated(event(*ids, some, none))
        began = time.perf_counter()
        taken = queue.take(0)
        times.append(time.perf_counter() - began)
        texts = [json.loads(row.text)["exception"] for row in taken.main]
        assert texts == ["x" * 5000] * count
    assert min(times) < 0.03


@pytest.mark.parametrize("before", range(6_720, 6_735))
def test_emoji_costs_no_event_wherever_the_answer_is_cut(spark, before):
    """Java counts it as two, and a cut may fall between them."""
    event = getattr(spark._jvm, _EVENT.format("Terminated"))
    ids = [spark._jvm.java.util.UUID.randomUUID() for _ in range(2)]
    text = "x" * before + "🚀" + "y" * 5000
    some = getattr(spark._jvm, "scala.Some")(text)
    queue = JvmQueue(spark.sparkContext._gateway, capacity=40, reserve=10, burst=64)
    listener = queue.make_listener()
    for exception in (some, spark._jvm.scala.Option.empty()):
        listener.onQueryTerminated(event(*ids, exception, spark._jvm.scala.Option.empty()))
    first, second = (json.loads(row.text) for row in queue.take(0).main)
    assert first["exception"] == text
    assert not second.get("exception")


def _long_event(jvm, batch_id):
    """A real event with three topics of a thousand partitions."""
    version = "3.5.9" if pyspark.__version__.startswith("3.") else "4.3.0"
    progress = json.loads(recorded(version, "progress-kafka-limited"))["progress"]
    offsets = {
        topic: {str(n): 123_456_789 + n for n in range(1000)}
        for topic in ("orders", "payments", "returns")
    }
    for when in ("startOffset", "endOffset", "latestOffset"):
        # What Spark 3.5 reads is not what it writes.
        progress["sources"][0][when] = json.dumps(offsets) if version == "3.5.9" else offsets
    # Spark's own reader leaves maps that are not there as null, which its writer does not take.
    for part, name in ((progress, "eventTime"), (progress, "observedMetrics")):
        part.setdefault(name, {})
    for part in (*progress["sources"], progress["sink"]):
        part.setdefault("metrics", {})
    progress["batchId"] = batch_id
    progresses = getattr(jvm, "org.apache.spark.sql.streaming.StreamingQueryProgress$")
    parsed = getattr(progresses, "MODULE$").fromJson(json.dumps(progress))
    return getattr(jvm, _EVENT.format("Progress"))(parsed)


def _used_mib(jvm):
    gc.collect()  # lets go of the JVM's objects
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(2):
        jvm.java.lang.System.gc()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20


def test_stopped_application_ends_the_thread_and_the_next_one_is_heard():
    """All events are there before; the process ends in time with a bridge still on the bus."""
    job = run_job(
        """
        import threading
        from streamgauge.listener.inbox import Inbox
        from streamgauge.listener.classic.queue_bridge import QueueBridge

        def run(name):
            spark = build_session(name)
            spark.sparkContext.setLogLevel("OFF")
            bridge.listen()
            spark.streams._jsqm.addListener(bridge.make_listener())
            rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
            query = rows.writeStream.format("noop").start()
            commits(query, 2)
            return spark, query

        build_session("first")
        inbox = Inbox(1000)
        bridge = QueueBridge(inbox)
        spark, query = run("first")
        query.stop()
        spark.stop()
        deadline = time.monotonic() + 20
        while any(t.name == "streamgauge-queue" for t in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        kinds = [item.kind for item in inbox._items]
        print(kinds[0], kinds[-1], bridge.drain(1))
        inbox._items.clear()
        build_session("second")
        spark, query = run("second")
        assert bridge.drain(5)
        print(inbox._items[0].kind, len(inbox._items) > 2, flush=True)
        print("at", time.time())
        """
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.splitlines()[:2] == ["started terminated True", "started True"]
    assert "Traceback" not in job.stderr
    assert time.time() - float(job.stdout.split()[-1]) < 15


def test_dead_jvm_is_tried_seldom():
    """The thread neither spins nor holds up the exit, and nobody is told that all is here."""
    job = run_job(
        """
        import os, signal, threading
        from streamgauge.listener.inbox import Inbox
        from streamgauge.listener.classic.queue_bridge import QueueBridge

        spark = build_session("dead")
        spark.sparkContext.setLogLevel("OFF")
        inbox = Inbox(1000)
        bridge = QueueBridge(inbox)
        bridge.listen()
        (thread,) = [t for t in threading.enumerate() if t.name == "streamgauge-queue"]
        pid = spark._jvm.java.lang.ProcessHandle.current().pid()
        os.kill(pid, signal.SIGKILL)
        began = time.process_time()
        thread.join(8)
        idle = time.process_time() - began < 1
        print(thread.daemon, idle, len(inbox) <= 1, bridge.drain(1), flush=True)
        os._exit(0)
        """
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.split() == ["True", "True", "True", "False"]
