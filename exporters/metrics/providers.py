"""The state store providers' own metrics: their names here, their units, and what a value means.

Spark reports some as a level, most as a figure of this batch alone, and a few as a total since the
executor's start. An exporter that mixes these up adds totals to totals, or shows a tenth of the
truth. Each kind and unit here was verified over ten batches and more on real Spark, under what makes the
value move (`tests/spark/test_providers.py`); where every batch has the same value, Spark's source told a
level from a batch's figure.
"""

from __future__ import annotations

from msgspec import Struct

LEVEL, BATCH, CUMULATIVE = "level", "batch", "cumulative"


class ProviderMetric(Struct, frozen=True):
    """One metric of a provider."""

    spark: str  # its name in Spark's events
    name: str  # its name here, without the prefix
    kind: str  # level, batch or cumulative: what one value of Spark's means
    scale: float  # from Spark's unit to the base unit
    help: str

    @property
    def counter(self) -> bool:
        """Whether it is a counter here; a figure of a batch is added up, a total passed on."""
        return self.kind != LEVEL


def _rocksdb(spark: str, name: str, kind: str, words: str, scale: float = 0.001) -> ProviderMetric:
    scale = scale if "_seconds" in name else 1.0
    return ProviderMetric(f"rocksdb{spark}", f"state_rocksdb_{name}", kind, scale, words)


def _hdfs(spark: str, name: str, kind: str, words: str) -> ProviderMetric:
    return ProviderMetric(spark, f"state_hdfs_{name}", kind, 1.0, words)


_TABLE = (
    _rocksdb("GetCount", "gets_total", BATCH, "Reads of single keys."),
    _rocksdb("GetLatency", "get_seconds_total", BATCH, "Time in reads of single keys."),
    _rocksdb("PutCount", "puts_total", BATCH, "Writes of single keys."),
    _rocksdb("PutLatency", "put_seconds_total", BATCH, "Time in writes of single keys."),
    _rocksdb("ReadBlockCacheHitCount", "block_cache_hits_total", BATCH, "Block reads that the cache served."),
    _rocksdb("ReadBlockCacheMissCount", "block_cache_misses_total", BATCH, "Block reads that went to files."),
    _rocksdb("TotalBytesRead", "read_bytes_total", BATCH, "Bytes read by single keys."),
    _rocksdb("TotalBytesWritten", "written_bytes_total", BATCH, "Bytes written by keys, uncompressed."),
    _rocksdb("TotalBytesReadThroughIterator", "iterator_read_bytes_total", BATCH, "Bytes read by scans."),
    _rocksdb("TotalBytesReadByCompaction", "compaction_read_bytes_total", BATCH, "Bytes that compaction read."),
    _rocksdb("TotalBytesWrittenByCompaction", "compaction_written_bytes_total", BATCH, "Bytes that compaction wrote."),
    _rocksdb("TotalBytesWrittenByFlush", "flush_written_bytes_total", BATCH, "Bytes that flushes wrote."),
    _rocksdb("TotalCompactionLatencyMs", "compaction_seconds_total", BATCH, "Time in compaction, in the background too."),
    # Spark multiplies microseconds by 1,000 and calls them milliseconds.
    _rocksdb("WriterStallLatencyMs", "writer_stall_seconds_total", BATCH, "Time that writers waited for compaction or flush.", 1e-9),
    _rocksdb("CommitFlushLatency", "commit_flush_seconds_total", BATCH, "Commit: flushing memory to files."),
    _rocksdb("CommitCompactLatency", "commit_compact_seconds_total", BATCH, "Commit: compacting, when it is asked for."),
    _rocksdb("CommitCheckpointLatency", "commit_checkpoint_seconds_total", BATCH, "Commit: taking the local snapshot."),
    _rocksdb("CommitFileSyncLatencyMs", "commit_file_sync_seconds_total", BATCH, "Commit: writing files to the checkpoint."),
    _rocksdb("ChangeLogWriterCommitLatencyMs", "commit_changelog_seconds_total", BATCH, "Commit: writing the changelog (Spark 4.1+)."),
    _rocksdb("SaveZipFilesLatencyMs", "commit_zip_seconds_total", BATCH, "Commit: writing the zip file of a snapshot (Spark 4.1+)."),
    # With a changelog, Spark repeats these in every batch until the next snapshot: a level, not a batch's.
    _rocksdb("FilesCopied", "snapshot_copied_files", LEVEL, "Files copied for the newest snapshots, over all stores."),
    _rocksdb("FilesReused", "snapshot_reused_files", LEVEL, "Files of the newest snapshots that were in the checkpoint already."),
    _rocksdb("BytesCopied", "snapshot_copied_bytes", LEVEL, "Bytes copied for the newest snapshots."),
    _rocksdb("ZipFileBytesUncompressed", "snapshot_zip_uncompressed_bytes", LEVEL, "Bytes in the newest snapshots' zip files, before compression."),
    _rocksdb("SstFileSize", "sst_file_bytes", LEVEL, "Size of all table files, over all stores."),
    _rocksdb("PinnedBlocksMemoryUsage", "pinned_blocks_bytes", LEVEL, "Memory of pinned blocks, over all stores."),
    _rocksdb("NumExternalColumnFamilies", "external_column_families", LEVEL, "Column families of the user's state variables (Spark 4.0+)."),
    _rocksdb("NumInternalColumnFamilies", "internal_column_families", LEVEL, "Column families of Spark's own (Spark 4.0+)."),
    _rocksdb("NumInternalColFamiliesKeys", "internal_column_family_keys", LEVEL, "Keys in Spark's own column families (Spark 4.0+)."),
    _rocksdb("LoadLatencyMs", "load_seconds_total", BATCH, "Time to load a version (Spark 4.1+)."),
    _rocksdb("ReplayChangeLogLatencyMs", "load_changelog_seconds_total", BATCH, "Loading: replaying changelogs (Spark 4.1+)."),
    _rocksdb("NumReplayChangelogFiles", "load_changelog_files_total", BATCH, "Loading: changelogs replayed (Spark 4.1+)."),
    _rocksdb("NumLoadedFromDfs", "dfs_loads_total", BATCH, "Loads that went to the checkpoint's file system (Spark 4.2+)."),
    _rocksdb("ForceSnapshotCount", "forced_snapshots_total", BATCH, "Snapshots that were forced (Spark 4.2+)."),
    _rocksdb("NumSnapshotsAutoRepaired", "repaired_snapshots_total", BATCH, "Bad snapshots that were passed over (Spark 4.2+)."),
    _hdfs("loadedMapCacheHitCount", "map_cache_hits_total", CUMULATIVE, "Versions found in memory."),
    _hdfs("loadedMapCacheMissCount", "map_cache_misses_total", CUMULATIVE, "Versions loaded from files."),
    _hdfs("stateOnCurrentVersionSizeBytes", "current_version_bytes", LEVEL, "Estimated size of the newest version alone."),
    _hdfs("forceSnapshotCount", "forced_snapshots_total", BATCH, "Snapshots that were forced (Spark 4.2+)."),
    _hdfs("numSnapshotsAutoRepaired", "repaired_snapshots_total", BATCH, "Bad snapshots that were passed over (Spark 4.2+)."),
)  # fmt: skip

PROVIDER_METRICS = {metric.spark: metric for metric in _TABLE}

# Spark names these and measures them in no batch: the first two since 3.5, the last only where a reader
# of state loads a snapshot. Always 0, which would be a lie.
NEVER_MEASURED = frozenset(
    {
        *("rocksdbCommitWriteBatchLatency", "rocksdbCommitPauseLatency"),
        "rocksdbLoadFromSnapshotLatencyMs",
    }
)
