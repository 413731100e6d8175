"""The Spark lines this package knows, and what of a checkpoint tells which line wrote it."""

from __future__ import annotations

LINES = ("3.5", "4.0", "4.1", "4.2", "4.3")
NEWEST = LINES[-1]

_SQL = "spark.sql."
# Key of the offset log's conf → (first line that writes it, value assumed where it is absent).
# None: the session's own value.
PINNED: dict[str, tuple[str, str | None]] = {
    f"{_SQL}shuffle.partitions": ("3.5", None),
    f"{_SQL}streaming.stateStore.providerClass": ("3.5", None),
    f"{_SQL}streaming.multipleWatermarkPolicy": ("3.5", "min"),
    f"{_SQL}streaming.flatMapGroupsWithState.stateFormatVersion": ("3.5", "1"),
    f"{_SQL}streaming.aggregation.stateFormatVersion": ("3.5", "1"),
    f"{_SQL}streaming.join.stateFormatVersion": ("3.5", "1"),
    f"{_SQL}streaming.stateStore.compression.codec": ("3.5", "lz4"),
    f"{_SQL}streaming.stateStore.rocksdb.formatVersion": ("3.5", None),
    f"{_SQL}streaming.statefulOperator.useStrictDistribution": ("3.5", "false"),
    f"{_SQL}optimizer.pruneFiltersCanPruneStreamingSubplan": ("3.5", "true"),
    f"{_SQL}streaming.stateStore.encodingFormat": ("4.0", "unsaferow"),
    f"{_SQL}streaming.stateStore.rocksdb.mergeOperatorVersion": ("4.2", "1"),
    f"{_SQL}streaming.stateStore.rowChecksum.enabled": ("4.2", "false"),
    f"{_SQL}function.protobufExtensions.enabled": ("4.2", "false"),
    f"{_SQL}streaming.queryEvolution.enableSourceEvolution": ("4.2", "false"),
    f"{_SQL}streaming.statefulOperator.alwaysNullableOutput.enabled": ("4.3", "false"),
    f"{_SQL}dropDuplicates.deterministicKeyOrder.enabled": ("4.3", "false"),
}

# What a session has when nobody set anything; the pinned value wins over it on a restart.
DEFAULTS: dict[str, str] = {
    f"{_SQL}shuffle.partitions": "200",
    f"{_SQL}streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    f"{_SQL}streaming.multipleWatermarkPolicy": "min",
    f"{_SQL}streaming.flatMapGroupsWithState.stateFormatVersion": "2",
    f"{_SQL}streaming.aggregation.stateFormatVersion": "2",
    f"{_SQL}streaming.join.stateFormatVersion": "2",
    f"{_SQL}streaming.stateStore.compression.codec": "lz4",
    f"{_SQL}streaming.stateStore.rocksdb.formatVersion": "5",
    f"{_SQL}streaming.statefulOperator.useStrictDistribution": "true",
    f"{_SQL}optimizer.pruneFiltersCanPruneStreamingSubplan": "false",
    f"{_SQL}streaming.stateStore.encodingFormat": "unsaferow",
    f"{_SQL}streaming.stateStore.rocksdb.mergeOperatorVersion": "2",
    f"{_SQL}streaming.stateStore.rowChecksum.enabled": "false",
    f"{_SQL}function.protobufExtensions.enabled": "false",
    f"{_SQL}streaming.queryEvolution.enableSourceEvolution": "false",
    f"{_SQL}streaming.statefulOperator.alwaysNullableOutput.enabled": "true",
    f"{_SQL}dropDuplicates.deterministicKeyOrder.enabled": "true",
}


def at_least(line: str, other: str) -> bool:
    """Whether a line is `other` or newer; an unknown, newer one counts as newest."""
    return _rank(line) >= _rank(other)


def _rank(line: str) -> tuple[int, int]:
    major, _, minor = line.partition(".")
    return int(major), int(minor.split(".")[0] or 0) if minor else 0


def parse_line(text: str) -> str:
    """`4.3.0` or `4.3` → `4.3`; raises ValueError with the known ones."""
    try:
        major, minor = _rank(text)
    except ValueError:
        major, minor = 0, 0
    line = f"{major}.{minor}"
    if line not in LINES:
        raise ValueError(f"{text!r} is no Spark line this knows; known: {', '.join(LINES)}")
    return line


def writer_line(conf: dict[str, str] | None, *, checksums: bool = False) -> str | None:
    """Which Spark wrote these pinned settings, as well as the keys tell; None without any."""
    if not conf:
        return None
    newest = max((PINNED[key][0] for key in conf if key in PINNED), key=_rank, default="3.5")
    if newest == "4.0":
        return "4.1" if checksums else "4.0 or 4.1"
    return "3.5 or older" if newest == "3.5" else newest
