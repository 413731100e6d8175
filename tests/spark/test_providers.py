"""What each of the state store providers' metrics means, seen over ten batches and more."""

import time
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Struct
from provider_batches import (
    CHANGELOG,
    HDFS,
    ROCKSDB,
    STORE,
    VERSION,
    dedupe,
    kinds_of,
    run_batches,
)
from stage import wait_for

from streamgauge.exporters.metrics.providers import NEVER_MEASURED, PROVIDER_METRICS

SNAPSHOT = frozenset(
    {
        *("rocksdbFilesCopied", "rocksdbFilesReused", "rocksdbBytesCopied"),
        "rocksdbZipFileBytesUncompressed",
    }
)
UNLOADED = {f"{STORE}.unloadOnCommit": "true"}
# A store lags soon, since maintenance is slower than the coordinator believes; that has it write a
# snapshot with its next batch.
LAGGING = {
    f"{STORE}.minDeltasForSnapshot": "2",
    f"{STORE}.maintenanceInterval": "1000",
    f"{STORE}.multiplierForMinVersionDiffToLog": "1",
    f"{STORE}.multiplierForMinTimeDiffToLog": "1",
}
HOUR = 3_600_000  # milliseconds
TASKS = 4  # of a batch at a time, and threads of RocksDB's own


# ---- queries ---------------------------------------------------------------------------------


def expire(rows):
    """Keys by their minute, with a watermark behind which they are removed."""
    return rows.withWatermark("t", "50 seconds").groupBy("t", "k").count()


def count_padded(rows):
    """Keys of ten kilobytes."""
    return rows.groupBy("k", "pad").count()


def count_in_variables(rows):
    """State in a variable of the user's own, with a time to live."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    class Counter(StatefulProcessor):
        def init(self, handle):
            self.total = handle.getValueState("total", "n long", HOUR)

        def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
            before = self.total.get()[0] if self.total.exists() else 0
            count = before + sum(len(part) for part in rows)
            self.total.update((count,))
            yield pd.DataFrame({"k": [key[0]], "n": [count]})

        def close(self):
            pass

    return rows.groupBy("k").transformWithStateInPandas(
        statefulProcessor=Counter(),
        outputStructType="k int, n long",
        outputMode="Update",
        timeMode="ProcessingTime",
    )


# ---- between two batches ---------------------------------------------------------------------


def pause(_n, _checkpoint):
    """Leave the store's maintenance its time."""
    time.sleep(1)


def await_snapshot(n, checkpoint):
    """After every fourth batch leave maintenance the time to upload; the next ones repeat what it did.

    It may have let go of a store that it could not look after, until the next batch: then there is none.
    """
    if n % 4 == 3:
        version = n + 1 if VERSION >= (4, 0) else n - 1
        stores = list((checkpoint / "state" / "0").glob("[0-9]*"))
        with suppress(AssertionError):
            wait_for(lambda: all(newest(store, "zip") >= version for store in stores), 8)
        time.sleep(0.3)  # the figures of an upload come after its file


def newest(store, suffix):
    """The version of a store's newest snapshot."""
    found = (file.stem for file in store.glob(f"*.{suffix}"))
    return max((int(version) for version in found if version.isdigit()), default=-1)


def spoil(suffix, n, checkpoint):
    """Empty each store's newest snapshot, after every other batch."""
    for store in (checkpoint / "state" / "0").iterdir() if n % 2 == 0 else ():
        found = [file for file in store.glob(f"*.{suffix}") if file.stem.isdigit()]
        if found:
            newest = max(found, key=lambda file: int(file.stem))
            newest.write_bytes(b"")
            newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


# ---- cases -----------------------------------------------------------------------------------


class Case(Struct, frozen=True):
    """Settings under which a query runs, and the metrics that only they move."""

    settings: dict[str, str]
    alone: frozenset[str] = frozenset()
    since: tuple[int, int] = (3, 5)
    more: dict[str, Any] = {}


def rare(settings, *names, since=(3, 5), **more):
    """A case for metrics that stay at 0 in others."""
    return Case(settings, frozenset(names), since, more)


CASES = {
    "rocksdb": Case(ROCKSDB),
    "hdfs": Case(HDFS),
    "rocksdb with a changelog": rare(
        {**CHANGELOG, f"{STORE}.minDeltasForSnapshot": "2", f"{STORE}.maintenanceInterval": "2000"},
        "rocksdbChangeLogWriterCommitLatencyMs",
        "rocksdbLoadLatencyMs",
        *SNAPSHOT,
        own_pace=True,
        after=await_snapshot,
        enough=lambda values: is_repeated(find_repeated(values)),
    ),
    "rocksdb that compacts": rare(
        {**ROCKSDB, f"{STORE}.rocksdb.compactOnCommit": "true"}, "rocksdbCommitCompactLatency"
    ),
    "rocksdb that evicts": rare(
        *(ROCKSDB, "rocksdbTotalBytesReadThroughIterator"), plan=expire, by_two=True, mode="append"
    ),
    "rocksdb that stalls": rare(
        {
            **ROCKSDB,
            f"{STORE}.rocksdb.writeBufferSizeMB": "1",
            f"{STORE}.rocksdb.maxWriteBufferNumber": "1",
        },
        "rocksdbWriterStallLatencyMs",
        plan=count_padded,
        pad=10_000,
    ),
    "rocksdb with variables": rare(
        ROCKSDB,
        "rocksdbNumExternalColumnFamilies",
        "rocksdbNumInternalColumnFamilies",
        "rocksdbNumInternalColFamiliesKeys",
        since=(4, 0),
        plan=count_in_variables,
    ),
    "rocksdb that is unloaded": rare(
        {**CHANGELOG, **UNLOADED, f"{STORE}.minDeltasForSnapshot": "3"},
        "rocksdbReplayChangeLogLatencyMs",
        "rocksdbNumReplayChangelogFiles",
        "rocksdbNumLoadedFromDfs",
        since=(4, 1),
        plan=dedupe,
    ),
    "rocksdb with bad snapshots": rare(
        {**CHANGELOG, **UNLOADED, f"{STORE}.minDeltasForSnapshot": "1"},
        "rocksdbNumSnapshotsAutoRepaired",
        since=(4, 2),
        plan=dedupe,
        after=partial(spoil, "zip"),
    ),
    "rocksdb that lags": rare(
        {**CHANGELOG, **LAGGING},
        "rocksdbForceSnapshotCount",
        since=(4, 2),
        after=pause,
        maintained_ms=HOUR,
    ),
    "hdfs without its cache": rare(
        {**HDFS, "spark.sql.streaming.maxBatchesToRetainInMemory": "0"}, "loadedMapCacheMissCount"
    ),
    "hdfs with bad snapshots": rare(
        {**HDFS, **UNLOADED, f"{STORE}.minDeltasForSnapshot": "1"},
        "numSnapshotsAutoRepaired",
        since=(4, 2),
        plan=dedupe,
        after=partial(spoil, "snapshot"),
    ),
    "hdfs that lags": rare(
        {**HDFS, **LAGGING}, "forceSnapshotCount", since=(4, 2), after=pause, maintained_ms=HOUR
    ),
}
ALONE = frozenset().union(*(case.alone for case in CASES.values()))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=[pytest.mark.integration] if case.alone else [])
        for name, case in CASES.items()
        if case.since <= VERSION
    ],
)
def test_kinds_over_ten_batches(case, listen, spark, tmp_path):
    """Every known metric that moves is of the kind and unit that the table says; none is unknown."""
    values, seconds = run_batches(spark, listen, tmp_path, case.settings, **case.more)
    known = set(PROVIDER_METRICS) & set(values)
    others = {name for name in set(values) - known if not case.more or name.startswith("rocksdb")}
    assert others <= NEVER_MEASURED  # what is not the store's is the operator's
    assert not any(sum(values[name]) for name in NEVER_MEASURED & set(values))
    proved = (case.alone & known) if case.alone else known - ALONE
    if VERSION >= (4, 3):  # the newest has them all: none of the table is left out
        store = "state_rocksdb_" if "rocksdbGetCount" in values else "state_hdfs_"
        listed = {m.spark for m in PROVIDER_METRICS.values() if m.name.startswith(store)}
        assert proved == (case.alone or listed - ALONE)
    if case.alone >= SNAPSHOT:
        assert_repeated(values)
        proved -= SNAPSHOT  # uploads come when they come, whatever the batches do
    found = {name: kinds_of(values[name]) for name in proved if any(values[name])}
    wrong = {
        name: (PROVIDER_METRICS[name].kind, kinds, values[name])
        for name, kinds in found.items()
        if PROVIDER_METRICS[name].kind not in kinds
    }
    assert not wrong
    assert proved <= set(found), f"ten batches say nothing of {proved - set(found)}: {values}"
    for name in known:
        if "_seconds" in PROVIDER_METRICS[name].name:
            taken = sum(values[name]) * PROVIDER_METRICS[name].scale
            assert taken < TASKS * sum(seconds), (name, values[name], seconds)


def find_repeated(values):
    """The figures of a snapshot that two batches in a row gave alike."""
    return {
        name
        for name in SNAPSHOT
        if any(before == after > 0 for before, after in pairwise(values[name]))
    }


def is_repeated(found):
    """Whether these are all; before 4.0 some batches have none, and any will do."""
    return found == SNAPSHOT or (bool(found) and VERSION < (4, 0))


def assert_repeated(values):
    """What Spark says of a snapshot is said again in the batches without one, however much they write."""
    assert is_repeated(find_repeated(values)), values
    assert max(values["rocksdbPutCount"]) > 50 * min(values["rocksdbPutCount"])
