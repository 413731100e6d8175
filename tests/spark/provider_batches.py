"""Batches of a stateful query, and what Spark reported of its state store in each of them.

The load changes from batch to batch (many rows, few rows, many rows …), so that the three kinds come
apart: a figure of a batch follows the load and falls again, a total never falls and grows with every
batch, a level is about the size of the state whatever the batch did.
"""

import json
import os
from itertools import pairwise
from statistics import mean

import pyspark
from harness import commits
from stage import wait_for

from streamgauge.exporters import Exporter
from streamgauge.exporters.metrics.providers import BATCH, CUMULATIVE, LEVEL
from streamgauge.model.events import Progress

BATCHES = 12
VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
STORE = "spark.sql.streaming.stateStore"
_PROVIDER = f"{STORE}.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB = {_PROVIDER: f"{_STATE}.RocksDBStateStoreProvider"}
HDFS = {_PROVIDER: f"{_STATE}.HDFSBackedStateStoreProvider"}
CHANGELOG = {**ROCKSDB, f"{STORE}.rocksdb.changelogCheckpointing.enabled": "true"}


class Batches(Exporter):
    """Keeps what it is told."""

    name = "batches"

    def __init__(self):
        self.custom = []
        self.seconds = []

    def handle(self, event, query):
        if isinstance(event, Progress) and event.operators and event.has_data:
            self.seconds.append(event.seconds)
            self.custom.append(event.operators[0].custom)


def count(rows):
    """Rows by key: the state grows by a third of a big batch."""
    return rows.groupBy("k").count()


def dedupe(rows):
    """Rows by key, in an operator that opens its store once: Spark tells of the last opening alone."""
    return rows.dropDuplicates(["k"])


def run_batches(
    spark, listen, folder, settings, *,
    plan=count, by_two=False, mode="update", pad=0, after=None, enough=lambda _: True, own_pace=False,
    maintained_ms=None,
):  # fmt: skip
    """The values of each metric, and the length of each batch; `after` is called between two of them.

    Then there are more batches, three times as many at most, until their values are `enough`. The stores'
    maintenance has the pace of the settings (`own_pace`), of `maintained_ms` whatever the settings
    say, or that of the first store of this JVM, maybe another test's.
    """
    source, checkpoint = folder / "in", folder / "ck"
    source.mkdir()
    batches = Batches()
    if maintained_ms is not None:
        _maintain_every(spark, maintained_ms)
    listen(exporters=[batches])
    if own_pace:
        _end_maintenance(spark)
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        if after is None:
            for n in range(BATCHES):
                _write(source, n, by_two, pad)
        stream = spark.readStream.schema("k int, t timestamp, pad string")
        rows = stream.option("maxFilesPerTrigger", 1).json(str(source))
        writer = plan(rows).writeStream.format("noop").outputMode(mode).queryName("kinds")
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        for n in range(3 * BATCHES if after else 0):
            if n >= BATCHES and n % 2 == 0 and enough(_by_name(batches.custom)):
                break
            _write(source, n, by_two, pad)
            wait_for(lambda n=n: len(batches.custom) > n, 60, what=f"batch {n}")
            after(n, checkpoint)
        commits(query, BATCHES, 110)
        wait_for(lambda: len(batches.custom) >= BATCHES, what="the batches")
        query.stop()
    finally:
        for key in settings:
            spark.conf.unset(key)
        if maintained_ms is not None:
            _end_maintenance(spark)
    return _by_name(batches.custom), batches.seconds


def _end_maintenance(spark):
    """Have it begin anew: the first store of a JVM, maybe another test's, says how often all are looked after."""
    state = spark._jvm.org.apache.spark.sql.execution.streaming.state
    getattr(getattr(state, "StateStore$"), "MODULE$").stop()


def _maintain_every(spark, milliseconds):
    """Have maintenance begin at this pace, with a store of a query that does nothing else."""
    _end_maintenance(spark)
    spark.conf.set(f"{STORE}.maintenanceInterval", str(milliseconds))
    try:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        query = rows.groupBy().count().writeStream.format("noop").outputMode("update").start()
        commits(query, 1, 60)
        query.stop()
    finally:
        spark.conf.unset(f"{STORE}.maintenanceInterval")


def _by_name(customs):
    names = {name for custom in customs for name in custom}
    return {name: [custom.get(name, 0.0) for custom in customs] for name in sorted(names)}


def _write(source, n, by_two, pad):
    """The n-th file; two thirds of its keys are known before."""
    many = n % 4 < 2 if by_two else n % 2 == 0
    first, at = n * 1000, f"2026-01-01T00:{n:02}:00"
    keys = range(first, first + (3000 if many else 30))
    lines = (json.dumps({"k": k, "t": at, "pad": f"{k:0{pad}}"}) for k in keys)
    hidden = source.parent / "next.json"
    hidden.write_text("\n".join(lines) + "\n")
    os.utime(hidden, (1_700_000_000 + n, 1_700_000_000 + n))  # the file source reads by age
    hidden.rename(source / f"{n:03}.json")


def kinds_of(series):
    """The kinds that a series of values may be of, where big batches stand at even places."""
    steps = list(pairwise(series))
    grows = sum(after > before for before, after in steps) > 1
    if grows and all(after >= before for before, after in steps):
        doubled = series[-1] > 1.5 * series[0]
        return {CUMULATIVE, LEVEL} if doubled else {LEVEL}
    big, small = mean(series[::2]), mean(series[1::2])
    if small < big / 2 or big < small / 2:
        return {BATCH}  # it follows the load, also where one batch's work is done in the next
    return {BATCH, LEVEL}
