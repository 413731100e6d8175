"""Many queries in one driver: how many batches are seen, and how late.

Twelve with state on a 1 s trigger, and a hundred small ones on a 5 s trigger.
"""

from __future__ import annotations

import time
from statistics import median, quantiles

from figures import report
from harness import build_session
from one_query import Stock

from streamgauge import TelemetryListener
from streamgauge.exporters import Exporter
from streamgauge.model.events import Progress

QUERIES, SECONDS = 12, 45
CROWD, CROWD_SECONDS = 100, 60


class Delays(Exporter):
    """Told last, so what it is told is on the page already."""

    name = "delays"

    def __init__(self):
        self.seconds = []

    def handle(self, event, query):
        if isinstance(event, Progress):
            self.seconds.append(time.time() - event.ended_at)


class Counting(Stock):
    """The stock listener, counting."""

    seen = 0

    def onQueryProgress(self, event):
        self.seen += 1


def run(kind: str, count: int = QUERIES, seconds: float = SECONDS):
    """Seen, done, delays."""
    crowd = count > QUERIES
    spark = build_session(f"many-{kind}", **{"spark.sql.shuffle.partitions": "1"})
    spark.sparkContext.setLogLevel("OFF")
    delays = Delays()
    if kind == "ours":
        listener = TelemetryListener(
            metrics_address="127.0.0.1:0", log_level="off", exporters=[delays]
        )
    else:
        listener = Counting()
    spark.streams.addListener(listener)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    frame = rows if crowd else rows.groupBy("value").count()
    queries = [
        frame.writeStream.format("noop").outputMode("append" if crowd else "update")
        .queryName(f"q{n}").trigger(processingTime="5 seconds" if crowd else "1 second").start()
        for n in range(count)
    ]  # fmt: skip
    time.sleep(seconds)
    done = sum((q.lastProgress or {"batchId": -1})["batchId"] + 1 for q in queries)
    time.sleep(0.2)
    seen = len(delays.seconds) if kind == "ours" else listener.seen
    late = list(delays.seconds)
    for query in queries:
        query.stop()
    if kind == "ours":
        listener.close()
    spark.stop()
    return min(seen, done), done, late  # one may have ended between the two questions


def main() -> None:
    run_stock = run("stock")
    seen, done, delays = run("ours")
    report(
        "12 queries × 1 s × 45 s: events seen ÷ batches done",
        seen / done, 0.999, at_least=True,
        seen=seen, done=done, stock_seen=run_stock[0], stock_done=run_stock[1],
        stock=run_stock[0] / run_stock[1],
    )  # fmt: skip
    steady = delays[QUERIES:]  # without each query's first batch
    report("delay from batch end to metric, median ms", median(steady) * 1000, 50)
    report("delay from batch end to metric, p99 ms", quantiles(steady, n=100)[98] * 1000, 500)

    seen, done, delays = run("ours", CROWD, CROWD_SECONDS)
    steady = delays[CROWD:]
    report(
        "100 queries × 5 s × 60 s: events seen ÷ batches done",
        seen / done, 0.999, at_least=True, seen=seen, done=done,
        median_ms=median(steady) * 1000, p99_ms=quantiles(steady, n=100)[98] * 1000,
    )  # fmt: skip


if __name__ == "__main__":
    main()
