"""What each of the state store providers' metrics means, seen over ten batches and more.

The load changes from batch to batch (many rows, few rows, many rows …), so that the three kinds come
apart: a figure of a batch follows the load and falls again, a total never falls and grows with every
batch, a level is about the size of the state whatever the batch did.
"""

import json
import os
from itertools import pairwise
from statistics import mean

import pytest
from harness import commits
from stage import wait_for

from streamgauge.exporters import Exporter
from streamgauge.exporters.providers import BATCH, CUMULATIVE, LEVEL, PROVIDER_METRICS
from streamgauge.listener.events import Progress

BATCHES = 12
PROVIDERS = {
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}


class Batches(Exporter):
    """Keeps what it is told."""

    name = "batches"

    def __init__(self):
        self.custom = []

    def handle(self, event, query):
        if isinstance(event, Progress) and event.operators and event.has_data:
            self.custom.append(event.operators[0].custom)


@pytest.fixture(params=sorted(PROVIDERS))
def values(request, listen, spark, tmp_path):
    """Per metric, its value in each batch of one run."""
    source = tmp_path / "in"
    source.mkdir()
    for n in range(BATCHES):
        count = 3000 if n % 2 == 0 else 30
        lines = (json.dumps({"k": n * 1000 + i}) for i in range(count))  # two thirds known before
        path = source / f"{n:03}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + n, 1_700_000_000 + n))  # the file source reads by age
    key = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(key, PROVIDERS[request.param])
    batches = Batches()
    listen(exporters=[batches])
    try:
        stream = spark.readStream.schema("k int").option("maxFilesPerTrigger", 1)
        query = (
            stream.json(str(source))
            .groupBy("k")
            .count()
            .writeStream.format("noop")
            .outputMode("update")
            .queryName(f"kinds_{request.param}")
            .option("checkpointLocation", str(tmp_path / "ck"))
            .start()
        )
        commits(query, BATCHES, 110)
        wait_for(lambda: len(batches.custom) >= BATCHES, what="the batches")
        query.stop()
    finally:
        spark.conf.unset(key)
    names = {name for custom in batches.custom for name in custom}
    return {
        name: [custom.get(name, 0.0) for custom in batches.custom[:BATCHES]]
        for name in sorted(names)
    }


def test_kinds_over_ten_batches(values):
    """Every known metric that moves is of the kind that the table says; none is unknown."""
    assert set(values) <= set(PROVIDER_METRICS), set(values) - set(PROVIDER_METRICS)
    run = {name for name in values if PROVIDER_METRICS[name].basis == "run"}
    found = {name: kinds_of(values[name]) for name in run if any(values[name])}
    wrong = {
        name: (PROVIDER_METRICS[name].kind, kinds, values[name])
        for name, kinds in found.items()
        if PROVIDER_METRICS[name].kind not in kinds
    }
    assert not wrong
    assert run <= set(found), f"ten batches say nothing of {run - set(found)}"


def kinds_of(series):
    """The kinds that a series of values may be of, where big batches stand at even places."""
    steps = list(pairwise(series))
    if all(after >= before for before, after in steps) and series[-1] > series[0]:
        doubled = series[-1] > 1.5 * series[0]
        return {CUMULATIVE, LEVEL} if doubled else {LEVEL}
    big, small = mean(series[::2]), mean(series[1::2])
    if small < big / 2 or big < small / 2:
        return {BATCH}  # it follows the load, also where one batch's work is done in the next
    return {BATCH, LEVEL}
