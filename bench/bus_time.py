"""Bus time: stock PySpark listener against ours, and ours against a bare `jevent.json()`.

From the JVM's own `listenerProcessingTime` timer of the streaming listener bus, on one-operator
stateful queries. Each kind gets a Spark context of its own, since the timers can't be reset; the
kinds take turns.
"""

from __future__ import annotations

import time
from statistics import median

from figures import report
from harness import build_session, commits
from pyspark.sql.streaming import StreamingQueryListener

from streamgauge import TelemetryListener
from streamgauge.listener.bridge import Bridge, wrap

BATCHES, ROUNDS = 15, 3


class Stock(StreamingQueryListener):
    """The least that a PySpark listener can do."""

    def onQueryStarted(self, event):
        pass

    def onQueryProgress(self, event):
        pass

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        pass


class Bare(Bridge):
    """One call for the JSON, and nothing is done with it."""

    def _take(self, kind, jevent):
        jevent.json()


class BareListener(Stock):
    """Puts `Bare` on the bus."""

    _jlistener = property(lambda self: self.__dict__.setdefault("java", wrap(Bare(None))))


def measure(kind: str) -> tuple[float, list[float]]:
    """Milliseconds on the bus a batch, and the times of the progress events alone."""
    spark = build_session(f"bench-{kind}", **{"spark.sql.shuffle.partitions": "1"})
    spark.sparkContext.setLogLevel("OFF")
    if kind == "ours":
        listener = TelemetryListener(metrics_address="127.0.0.1:0", log_level="off")
    else:
        listener = {"stock": Stock, "bare": BareListener}[kind]()
    spark.streams.addListener(listener)
    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 10)
        .option("numPartitions", 1)
        .load()
    )
    query = (
        rows.groupBy("value").count().writeStream.format("noop").outputMode("update")
        .trigger(processingTime="500 milliseconds").queryName(kind).start()
    )  # fmt: skip
    commits(query, BATCHES, 120)
    query.stop()
    values = _timer(spark)
    batches = query.lastProgress["batchId"] + 1
    if kind == "ours":
        listener.close()
    spark.stop()
    return sum(values) / batches, sorted(values)[-batches:]


def _timer(spark) -> list[float]:
    """Every time of the streaming listener bus so far, in milliseconds."""
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.waitUntilEmpty()
    registry = bus.metrics().metricRegistry()
    names = [str(n) for n in registry.getTimers().keySet() if "StreamingQueryListenerBus" in str(n)]
    (name,) = names
    timer = registry.timer(name)
    for _ in range(50):  # the last event may come in between the two questions
        values = list(timer.getSnapshot().getValues())
        if timer.getCount() == len(values):
            return [value / 1e6 for value in values]
        time.sleep(0.1)
    raise AssertionError("the timer forgot some")


def main() -> None:
    found = {"stock": [], "ours": [], "bare": []}
    measure("bare")  # the first Spark of a process is slow at everything
    for _ in range(ROUNDS):
        for kind, runs in found.items():
            runs.append(measure(kind))
    batch = {kind: median(run[0] for run in runs) for kind, runs in found.items()}
    event = {kind: median(e for run in runs for e in run[1]) for kind, runs in found.items()}
    report(
        "bus time a batch, stock listener ÷ ours",
        batch["stock"] / batch["ours"], 60, at_least=True,
        stock_ms=batch["stock"], ours_ms=batch["ours"],
    )  # fmt: skip
    report(
        "bus time an event, ours ÷ bare jevent.json()",
        event["ours"] / event["bare"], 1.25,
        ours_ms=event["ours"], bare_ms=event["bare"], rounds=ROUNDS,
    )  # fmt: skip


if __name__ == "__main__":
    main()
