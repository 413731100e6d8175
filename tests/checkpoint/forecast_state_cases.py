"""The state's part of the forecast matrix: stores, providers, operators."""

from __future__ import annotations

from forecast_bases import FROM_4
from forecast_case import Case
from forecast_changes import both, latest, lose, lose_version, nothing, put, replace, truncate
from forecast_spark import HDFS, PREFIX, PROVIDERS, ROCKSDB


def state_cases() -> list[Case]:
    """State stores: 4.6 and 4.7 of the facts, for each provider."""
    return [
        *store_cases("agg-hdfs", "delta"),
        *store_cases("agg-rocksdb", "zip"),
        *store_cases("agg-changelog", "changelog"),
        Case("SST files lost", "agg-rocksdb", lose("state/0/0/SSTs")),
        *provider_cases(),
        *operator_cases(),
    ]


def store_cases(base: str, suffix: str) -> list[Case]:
    """What may happen to the state of one provider, whose files end with `suffix`."""
    quick = base == "agg-rocksdb"
    return [
        Case("untouched", base, nothing),
        Case("last commit lost", base, lose("commits/3"), quick=base != "agg-changelog"),
        Case("last two commits lost", base, lose("commits/3", "commits/2")),
        Case("needed state file lost", base, lose(f"state/0/1/4.{suffix}"), quick=quick),
        Case("older state file lost", base, lose(f"state/0/1/2.{suffix}")),
        Case(
            "state file of the replayed batch lost",
            base,
            lose("commits/3", f"state/0/0/3.{suffix}"),
        ),
        Case(
            "state file after the replayed batch lost",
            base,
            lose("commits/3", f"state/0/0/4.{suffix}"),
        ),
        Case("needed state file truncated", base, truncate(f"state/0/0/4.{suffix}")),
        Case("needed state file empty", base, put(f"state/0/0/4.{suffix}", b"")),
        Case("one partition removed", base, lose("state/0/1")),
        Case("state removed", base, lose("state")),
        Case("operator removed from state", base, lose("state/0")),
        Case("state schema lost", base, lose("state/0/0/_metadata")),
        Case("offsets and commits removed, state kept", base, lose("offsets", "commits")),
        Case(
            "partitions edited in the log",
            base,
            replace("offsets/3", 'shuffle.partitions":"2"', 'shuffle.partitions":"3"'),
        ),
        Case(
            "session asks for 5 partitions",
            base,
            nothing,
            conf={"spark.sql.shuffle.partitions": "5"},
        ),
        Case("another key", base, nothing, query="count-by-number"),
        Case("a key added", base, nothing, query="count-by-two-keys"),
        Case("another aggregate", base, nothing, query="sum-by-key"),
        Case("stateful operator removed", base, nothing, query="plain", run={"mode": "append"}),
        Case("stateful operator added before", base, nothing, query="count-of-distinct"),
    ]


def provider_cases() -> list[Case]:
    """Another provider in the session; checkpoint format v2."""
    other = {f"{PREFIX}providerClass": ROCKSDB}
    no_changelog = {f"{PREFIX}rocksdb.changelogCheckpointing.enabled": "false"}
    format_v1 = {f"{PREFIX}checkpointFormatVersion": "1"}
    return [
        Case(
            "everything but metadata removed",
            "agg-hdfs",
            lose("offsets", "commits", "state", "sources"),
        ),
        Case("operator metadata lost", "agg-hdfs", lose("state/0/_metadata"), lines=FROM_4),
        Case(
            "repartition left unfinished",
            "agg-hdfs",
            both(
                lose("commits/3"),
                replace("offsets/3", 'shuffle.partitions":"2"', 'shuffle.partitions":"3"'),
            ),
        ),
        Case("session asks for RocksDB", "agg-hdfs", nothing, conf=other),
        Case(
            "session asks for HDFS", "agg-rocksdb", nothing, conf={f"{PREFIX}providerClass": HDFS}
        ),
        Case("changelog turned off", "agg-changelog", nothing, conf=no_changelog),
        Case("changelog turned on", "agg-rocksdb", nothing, conf=PROVIDERS["changelog"]),
        Case("format v2, asked for again", "agg-v2", nothing, lines=FROM_4),
        Case("format v2, last commit lost", "agg-v2", lose("commits/3"), lines=FROM_4),
        Case("format v2, not asked for", "agg-v2", nothing, conf=format_v1, lines=FROM_4),
        Case("format v2, live file lost", "agg-v2", lose_version(4), lines=FROM_4),
        Case("format v2, older file lost", "agg-v2", lose_version(2), lines=FROM_4),
        Case(
            "format v2 asked for on v1",
            "agg-changelog",
            nothing,
            conf=PROVIDERS["v2"],
            lines=FROM_4,
        ),
    ]


def operator_cases() -> list[Case]:
    """Other stateful operators."""
    every = [
        Case("untouched", "global", nothing),
        Case("needed state file lost", "global", lose("state/0/0/4.delta")),
        Case("untouched", "limit", nothing),
        Case("untouched", "windowed", nothing),
        Case("keys reordered", "agg-hdfs", nothing, query="windowed"),
        Case("copied whole", "transform", nothing, lines=("4.3",)),
        Case(
            "moved whole",
            "transform",
            replace("state/0/_metadata/v2/0", "/transform/checkpoint", "/old/checkpoint"),
            lines=("4.3",),
        ),
    ]
    for provider, suffix in (("hdfs", "delta"), ("rocksdb", "zip")):
        store = f"state/0/1/right-keyToNumValues/4.{suffix}"
        every += [
            Case("untouched", f"join-{provider}", nothing),
            Case(
                "last commit lost",
                f"join-{provider}",
                lambda p: p.remove(f"commits/{latest(p, 'commits')}"),
            ),
            Case("one store's file lost", f"join-{provider}", lose(store)),
            Case("untouched", f"dedup-{provider}", nothing),
            Case(
                "other duplicate columns",
                f"dedup-{provider}",
                nothing,
                query="count-of-distinct",
                run={"mode": "update"},
            ),
        ]
    return every
