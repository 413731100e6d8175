"""What listening costs Spark's listener thread, by the mean, and what it adds to `start()`.

How bus time is measured: Spark's own `listenerProcessingTime` keeps a sample of all events, some fifty per
batch that no listener of ours hears, and no sum; an event that only goes into a queue can't be told from those.
So a probe goes on the bus in the place of each listener: two readings of `System.nanoTime` around the listener's
`onQueryProgress`, composed in the JVM without Python. Every progress event counts, and the cost of the probe itself is
shown as `nobody`. Listeners take turns within one application, there and back again.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from statistics import mean, median
from unittest import mock

from figures import MEMORY, report
from harness import build_session, commits
from one_query import BareListener, Stock

from streamgauge import TelemetryListener
from streamgauge.listener.classic.method_handles import MethodHandles

KINDS = ("nobody", "ours", "bare", "callback")
ROUNDS, TURN_SECONDS = 6, 4.0  # of each kind
STOCK_ROUNDS = 2  # takes so long that few are enough, and holds up whoever comes after it
BUSY_KINDS = ("ours", "callback", "stock")
BUSY_ROUNDS = 3
SETTLING = 0.5
STARTS = 110  # pairs of a start with and one without
BUSY_LOOP = "while True: sum(n * n for n in range(1000))"
_LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener"


class Probe:
    """A Java listener that passes progress events to another, and keeps how long each took."""

    def __init__(self, spark, inner) -> None:
        gateway = spark.sparkContext._gateway
        handles = MethodHandles(gateway)
        self._times = gateway.jvm.java.util.concurrent.ConcurrentLinkedQueue()
        add = handles.bind(self._times, "add", "boolean", "Object")
        clock = handles.cast(handles.find_static("System", "nanoTime", "long"), "Object")
        read = handles.pipe(clock, handles.cast(add, "void", "Object"))
        nothing = handles.nothing("Object")
        events = {
            kind: handles.load(f"{_LISTENER}$Query{kind}Event")
            for kind in ("Progress", "Started", "Idle", "Terminated")
        }
        call = nothing
        for kind, cls in events.items():
            timed = nothing if inner is None else self._find(handles, inner, kind, cls)
            if kind == "Progress":
                end = handles.drop(read, "Object")
                timed = handles.sequence(read, timed, end)
            call = handles.if_else(handles.is_a(cls), timed, call)
        interface = handles.load("org.apache.spark.sql.streaming.PythonStreamingQueryListener")
        wrapper = gateway.jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
        self.java = wrapper(handles.implement(interface, call))

    def _find(self, handles: MethodHandles, inner, kind: str, cls):
        """(Object event) → void: the listener's method for it."""
        types = handles.jvm.java.lang.invoke.MethodType
        kind_of_method = types.methodType(handles.jvm.java.lang.Void.TYPE, cls)
        found = handles._lookup.findVirtual(inner.getClass(), f"onQuery{kind}", kind_of_method)
        return handles.cast(found.bindTo(inner), "void", "Object")

    def read(self) -> list[float]:
        """Milliseconds of each event since the last reading."""
        text = str(self._times.toString()).strip("[]")
        self._times.clear()
        stamps = [int(value) for value in text.split(",") if value.strip()]
        return [(end - begin) / 1e6 for begin, end in zip(stamps[::2], stamps[1::2], strict=False)]


class Application:
    """A Spark with one stateful query that runs batch after batch."""

    def __init__(self, folder: str, warm_up: int = 40) -> None:
        self.spark = build_session("bench-off-bus", **{"spark.sql.shuffle.partitions": "1"})
        self.spark.sparkContext.setLogLevel("OFF")
        self._rows = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10)
        self.query = (
            self._rows.load().groupBy("value").count().writeStream.format("noop").outputMode("update")
            .option("checkpointLocation", folder)
            .queryName("q").trigger(processingTime="0 seconds").start()
        )  # fmt: skip
        commits(self.query, warm_up, 120)

    @contextmanager
    def listener(self, kind: str):
        """The Java object of a listener, whatever it takes to have it; gone altogether after."""
        if kind == "nobody":
            yield None
        elif kind in {"stock", "bare"}:
            yield (Stock() if kind == "stock" else BareListener())._jlistener
        else:
            with way_of(kind):
                listener = TelemetryListener(metrics_address="127.0.0.1:0", log_level="off")
                java = listener._jlistener
            try:
                yield java
            finally:
                listener.close()

    def turn(self, kind: str, seconds: float) -> list[float]:
        """Bus time of each progress event in a turn, in milliseconds."""
        from py4j.java_gateway import java_import
        from pyspark.java_gateway import ensure_callback_server_started

        gateway = self.spark.sparkContext._gateway
        java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")  # both as `addListener` does
        ensure_callback_server_started(gateway)
        with self.listener(kind) as java:
            probe = Probe(self.spark, java)
            streams = self.spark.streams._jsqm
            streams.addListener(probe.java)
            try:
                time.sleep(SETTLING)
                probe.read()
                time.sleep(seconds)
                return probe.read()
            finally:
                streams.removeListener(probe.java)
                self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)

    def start_seconds(self) -> float:
        """How long one `start()` takes."""
        writer = self._rows.load().writeStream.format("noop").trigger(processingTime="1 hour")
        began = time.perf_counter()
        query = writer.start()
        took = time.perf_counter() - began
        query.stop()
        return took

    def close(self) -> None:
        self.spark.stop()


def way_of(kind: str):
    """Have the agent use the queue in the JVM, or the callback in Python that it falls back to."""
    if kind == "ours":
        return mock.patch.dict({})
    missing = mock.Mock(side_effect=RuntimeError("not in this bench"))
    return mock.patch("streamgauge.listener.stream_listener.make_queue_listener", missing)


@contextmanager
def application(**options):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        made = Application(folder, **options)
        try:
            yield made
        finally:
            made.close()


@contextmanager
def busy(where: str):
    """Pure Python work for as long as this lasts: a thread of the driver, or another process."""
    if where == "process":
        worker = subprocess.Popen([sys.executable, "-c", BUSY_LOOP])
        try:
            yield
        finally:
            worker.kill()
            worker.wait()
        return
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            sum(n * n for n in range(1000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def summary(name: str, times: list[float]) -> dict[str, float]:
    """Mean, median and p99, for the table."""
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return {
        f"{name}_ms": mean(times),
        f"{name}_median_ms": median(times),
        f"{name}_p99_ms": p99,
        f"{name}_events": len(times),
    }


def bench_bus(rounds: int = ROUNDS, seconds: float = TURN_SECONDS) -> None:
    found: dict[str, list[float]] = {kind: [] for kind in (*KINDS, "stock")}
    with application() as spark:
        for number in range(rounds):
            for kind in KINDS if number % 2 else reversed(KINDS):
                found[kind] += spark.turn(kind, seconds)
        for _ in range(STOCK_ROUNDS):
            found["stock"] += spark.turn("stock", seconds)
    more: dict[str, float] = {}
    for kind, times in found.items():
        more |= summary(kind, times)
    ours = mean(found["ours"])
    report(
        "bus time per progress event, mean: ours ÷ one bare jevent.json() callback",
        ours / mean(found["bare"]), 0.15, **more,
    )  # fmt: skip
    report(
        "bus time per progress event, mean: stock listener ÷ ours",
        mean(found["stock"]) / ours, 400, at_least=True,
        stock_ms=mean(found["stock"]), ours_ms=ours,
    )  # fmt: skip


def bench_busy(rounds: int = BUSY_ROUNDS, seconds: float = TURN_SECONDS) -> None:
    found = {(kind, where): [] for kind in BUSY_KINDS for where in ("thread", "process")}
    with application() as spark:
        for number in range(rounds):
            for kind in BUSY_KINDS:
                for where in ("thread", "process") if number % 2 else ("process", "thread"):
                    with busy(where):
                        found[kind, where] += spark.turn(kind, seconds)
    more: dict[str, float] = {}
    for (kind, where), times in found.items():
        more |= summary(f"{kind}_{where}", times)
    ratios = {
        kind: mean(found[kind, "thread"]) / mean(found[kind, "process"]) for kind in BUSY_KINDS
    }
    report(
        "bus time beside a busy Python thread in the driver ÷ beside a busy process, mean",
        ratios["ours"], 1.5, callback=ratios["callback"], stock=ratios["stock"], **more,
    )  # fmt: skip


def bench_start(pairs: int = STARTS) -> None:
    added = []
    with application(warm_up=1) as spark:
        spark.query.stop()
        for number in range(pairs + 5):
            times = {}
            for kind in ("nobody", "ours") if number % 2 else ("ours", "nobody"):
                with spark.listener(kind) as java:
                    if java is not None:
                        spark.spark.streams._jsqm.addListener(java)
                    times[kind] = spark.start_seconds() * 1000
                    if java is not None:
                        spark.spark.streams._jsqm.removeListener(java)
            added.append((times["ours"] - times["nobody"], times["nobody"]))
    added = added[5:]  # the first ones warm up
    differences = [difference for difference, _ in added]
    chance = random.Random(7)
    medians = sorted(median(chance.choices(differences, k=pairs)) for _ in range(4000))
    report(
        "start() of a query with the agent − without, ms, 95 % upper bound of the median",
        medians[int(0.975 * len(medians))], 5,
        median=median(differences), mean=mean(differences), pairs=pairs,
        ms_without=median(without for _, without in added),
    )  # fmt: skip


if __name__ == "__main__":
    bench_bus()
    bench_busy()
    bench_start()
