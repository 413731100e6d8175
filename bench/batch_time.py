"""What the agent costs a batch: durations with it and without it, in turns, on one running query."""

from __future__ import annotations

import random
import tempfile
import time
from statistics import median

from figures import MEMORY, report
from harness import build_session, commits

from streamgauge import TelemetryListener

PAIRS, BATCHES = 60, 5


def main() -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        ratios = measure(folder)
    chance = random.Random(7)
    medians = sorted(median(chance.choices(ratios, k=PAIRS)) for _ in range(4000))
    report(
        "batch duration with ÷ without, bootstrap 95 % upper bound of the median",
        medians[int(0.975 * len(medians))], 1.05,
        median=median(ratios), pairs=PAIRS,
    )  # fmt: skip


def measure(folder: str) -> list[float]:
    spark = build_session(
        "bench-batches",
        **{
            "spark.sql.streaming.numRecentProgressUpdates": "20",  # each look brings them all
            "spark.sql.shuffle.partitions": "1",  # short batches: more of them in the time there is
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    listener = TelemetryListener(metrics_address="127.0.0.1:0", log_level="off")
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = (
        rows.groupBy("value").count().writeStream.format("noop").outputMode("update")
        .option("checkpointLocation", folder)
        .queryName("q").trigger(processingTime="0 seconds").start()
    )  # fmt: skip
    commits(query, 60, 120)

    def stretch() -> float:
        first = query.lastProgress["batchId"] + 2  # the one that runs now is neither
        while query.lastProgress["batchId"] < first + BATCHES - 1:
            time.sleep(0.3)  # looking is work too
        durations = [
            p["durationMs"]["triggerExecution"]
            for p in query.recentProgress
            if first <= p["batchId"] < first + BATCHES
        ]
        return median(durations)

    ratios = []
    for pair in range(PAIRS):
        found = {}
        for kind in ("with", "without") if pair % 2 else ("without", "with"):
            if kind == "with":
                spark.streams.addListener(listener)
            found[kind] = stretch()
            if kind == "with":
                spark.streams.removeListener(listener)
        ratios.append(found["with"] / found["without"])
    query.stop()
    spark.stop()
    return ratios


if __name__ == "__main__":
    main()
