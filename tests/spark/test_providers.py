"""What each of the state store providers' metrics means, seen over ten batches and more.

The load changes from batch to batch (many rows, few rows, many rows …), so that the three kinds come
apart: a figure of a batch follows the load and falls again, a total never falls and grows with every
batch, a level is about the size of the state whatever the batch did.
"""

import json
import os
from itertools import pairwise
from statistics import mean

import pyspark
import pytest
from harness import commits
from msgspec import Struct
from stage import wait_for

from streamgauge.exporters import Exporter
from streamgauge.exporters.providers import BATCH, CUMULATIVE, LEVEL, PROVIDER_METRICS
from streamgauge.listener.events import Progress

BATCHES = 12
VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
STORE = "spark.sql.streaming.stateStore"
ROCKSDB = {
    f"{STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
}
HDFS = {
    f"{STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
}


class Case(Struct, frozen=True):
    """Settings under which a query runs, and the metrics that only they move."""

    settings: dict[str, str]
    alone: frozenset[str] = frozenset()
    evicts: bool = False  # with a watermark, so that state is scanned and removed


CHANGELOG = {
    "rocksdbChangeLogWriterCommitLatencyMs": (4, 1),
    "rocksdbLoadLatencyMs": (4, 1),
}
CASES = {
    "rocksdb": Case(ROCKSDB),
    "hdfs": Case(HDFS),
    "rocksdb with a changelog": Case(
        {**ROCKSDB, f"{STORE}.rocksdb.changelogCheckpointing.enabled": "true"},
        frozenset(name for name, since in CHANGELOG.items() if since <= VERSION),
    ),
    "rocksdb that compacts": Case(
        {**ROCKSDB, f"{STORE}.rocksdb.compactOnCommit": "true"},
        frozenset({"rocksdbCommitCompactLatency"}),
    ),
    "rocksdb that evicts": Case(
        ROCKSDB, frozenset({"rocksdbTotalBytesReadThroughIterator"}), evicts=True
    ),
    "hdfs without its cache": Case(
        {**HDFS, "spark.sql.streaming.maxBatchesToRetainInMemory": "0"},
        frozenset({"loadedMapCacheMissCount"}),
    ),
}
ALONE = frozenset().union(*(case.alone for case in CASES.values()))


class Batches(Exporter):
    """Keeps what it is told."""

    name = "batches"

    def __init__(self):
        self.custom = []

    def handle(self, event, query):
        if isinstance(event, Progress) and event.operators and event.has_data:
            self.custom.append(event.operators[0].custom)


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.integration] if " " in name else [])
        for name, case in CASES.items()
        if case.alone or " " not in name  # on an old Spark there is nothing more to see in some
    ]
)
def ran(request, listen, spark, tmp_path):
    """A case, and per metric its value in each batch of one run."""
    case, source = CASES[request.param], tmp_path / "in"
    source.mkdir()
    for n in range(BATCHES):
        many = n % 4 < 2 if case.evicts else n % 2 == 0
        first, at = n * 1000, f"2026-01-01T00:{n:02}:00"  # two thirds of the keys are known before
        lines = (json.dumps({"k": first + i, "t": at}) for i in range(3000 if many else 30))
        path = source / f"{n:03}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + n, 1_700_000_000 + n))  # the file source reads by age
    for key, value in case.settings.items():
        spark.conf.set(key, value)
    batches = Batches()
    listen(exporters=[batches])
    try:
        stream = spark.readStream.schema("k int, t timestamp").option("maxFilesPerTrigger", 1)
        rows = stream.json(str(source))
        if case.evicts:
            rows = rows.withWatermark("t", "50 seconds")
        query = (
            rows.groupBy(*(("t", "k") if case.evicts else ("k",)))
            .count()
            .writeStream.format("noop")
            .outputMode("append" if case.evicts else "update")
            .queryName(f"kinds_{request.param}")
            .option("checkpointLocation", str(tmp_path / "ck"))
            .start()
        )
        commits(query, BATCHES, 110)
        wait_for(lambda: len(batches.custom) >= BATCHES, what="the batches")
        query.stop()
    finally:
        for key in case.settings:
            spark.conf.unset(key)
    names = {name for custom in batches.custom for name in custom}
    return case, {
        name: [custom.get(name, 0.0) for custom in batches.custom[:BATCHES]]
        for name in sorted(names)
    }


def test_kinds_over_ten_batches(ran):
    """Every known metric that moves is of the kind that the table says; none is unknown."""
    case, values = ran
    assert set(values) <= set(PROVIDER_METRICS), set(values) - set(PROVIDER_METRICS)
    run = {name for name in values if PROVIDER_METRICS[name].basis == "run"}
    proved = case.alone or run - ALONE
    found = {name: kinds_of(values[name]) for name in proved if any(values.get(name, ()))}
    wrong = {
        name: (PROVIDER_METRICS[name].kind, kinds, values[name])
        for name, kinds in found.items()
        if PROVIDER_METRICS[name].kind not in kinds
    }
    assert not wrong
    assert proved <= set(found), f"ten batches say nothing of {proved - set(found)}: {values}"


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
