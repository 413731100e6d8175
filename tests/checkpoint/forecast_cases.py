"""The forecast matrix: a base checkpoint, a change, and how the query is started again.

Nothing here says what will happen: the forecast says it from the files, and Spark shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecast_bases import EVERY, FROM_4, Place, bases
from forecast_changes import both, cut, latest, lose, lose_version, nothing, put, replace, truncate
from forecast_spark import HDFS, PREFIX, PROVIDERS, ROCKSDB

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    base: str
    change: Callable[[Place], None]
    query: str | None = None
    conf: dict[str, str] | None = None
    run: dict[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = EVERY
    quick: bool = False
    active: str | None = None

    @property
    def id(self) -> str:
        """Its name in the table."""
        return f"{self.base}: {self.name}"


def log_cases() -> list[Case]:
    """Offsets, commits and metadata: 4.5 of the facts."""
    uncommitted = lose("commits/3")
    return [
        Case("untouched", "plain", nothing, quick=True),
        Case("last commit lost", "plain", uncommitted, quick=True),
        Case("last two commits lost", "plain", lose("commits/3", "commits/2"), quick=True),
        Case("commits emptied", "plain", lose("commits/0", "commits/1", "commits/2", "commits/3")),
        Case("commits removed", "plain", lose("commits")),
        Case("last offset lost", "plain", lose("offsets/3"), quick=True),
        Case("last two offsets lost", "plain", lose("offsets/3", "offsets/2")),
        Case("offset before the last lost", "plain", lose("offsets/2"), quick=True),
        Case("gap next to an uncommitted end", "plain", both(uncommitted, lose("offsets/2"))),
        Case("old offset lost", "plain", lose("offsets/0")),
        Case("old commit lost", "plain", lose("commits/1")),
        Case("last offset empty", "plain", put("offsets/3", "")),
        Case("last offset: version line only", "plain", cut("offsets/3", 1)),
        Case("last offset: no source line", "plain", cut("offsets/3", 2)),
        Case("last offset: garbage version", "plain", put("offsets/3", "garbage\n{}\n-")),
        Case("last offset: newer version", "plain", replace("offsets/3", "v1\n", "v9\n")),
        Case(
            "last offset: garbage metadata", "plain", put("offsets/3", 'v1\n{nope\n{"logOffset":3}')
        ),
        Case("last offset: no metadata", "plain", put("offsets/3", 'v1\n\n{"logOffset":3}')),
        Case(
            "last offset: void source",
            "plain",
            lambda p: p.write("offsets/3", f"v1\n{p.line('offsets/3', 1)}\n-"),
        ),
        Case(
            "last offset: garbage source",
            "plain",
            lambda p: p.write("offsets/3", f"v1\n{p.line('offsets/3', 1)}\nnope"),
        ),
        Case("offset before the last empty", "plain", put("offsets/2", "")),
        Case("last commit empty", "plain", put("commits/3", "")),
        Case("last commit: garbage", "plain", put("commits/3", "v1\n{nope")),
        Case("last commit: version line only", "plain", put("commits/3", "v1")),
        Case("last commit: newer version", "plain", put("commits/3", "v9\n{}")),
        Case("last commit: garbage version", "plain", put("commits/3", "nope\n{}")),
        Case("metadata lost", "plain", lose("metadata"), quick=True),
        Case("metadata empty", "plain", put("metadata", "")),
        Case("metadata garbage", "plain", put("metadata", "nope")),
        Case("offsets removed, commits kept", "plain", lose("offsets"), quick=True),
        Case("offsets and commits removed", "plain", lose("offsets", "commits")),
        Case("everything removed", "plain", lose("offsets", "commits", "sources", "metadata")),
        Case(
            "junk and temp files",
            "plain",
            both(
                put("offsets/.4.aa.tmp", "x"),
                put("offsets/readme", "x"),
                put("commits/.3.b.tmp", ""),
            ),
        ),
        Case(
            "Trigger.Once on an uncommitted batch",
            "plain",
            uncommitted,
            run={"trigger": {"once": True}},
        ),
        Case("rate: untouched", "rate", nothing, run={"trigger": {"availableNow": True}}),
        Case(
            "rate: last commit lost",
            "rate",
            lambda p: p.remove(f"commits/{latest(p, 'commits')}"),
            run={"trigger": {"once": True}},
        ),
        Case(
            "async, started with async", "async", nothing, run=bases()["async"].run | {"until": 60}
        ),
        Case(
            "async, started without",
            "async",
            nothing,
            run={"sink": "noop", "trigger": {"once": True}, "options": {}},
        ),
        Case("offset log v2", "offsets-v2", nothing, lines=("4.2", "4.3")),
        Case("offset log v2, last commit lost", "offsets-v2", uncommitted, lines=("4.2", "4.3")),
    ]


def source_cases() -> list[Case]:
    """Source logs, and other sources in the code."""
    return [
        Case("source log: last entry lost", "plain", lose("sources/0/3"), quick=True),
        Case("source log: older entry lost", "plain", lose("sources/0/1")),
        Case("source log: last entry empty", "plain", put("sources/0/3", "")),
        Case("source log: last entry garbage", "plain", put("sources/0/3", "v1\n{nope")),
        Case("source log: newer version", "plain", replace("sources/0/3", "v1\n", "v9\n")),
        Case(
            "source log: last entry lost, batch uncommitted",
            "plain",
            lose("sources/0/3", "commits/3"),
        ),
        Case("source log removed", "plain", lose("sources")),
        Case(
            "input file of the uncommitted batch lost",
            "plain",
            both(lose("commits/3"), replace("sources/0/3", "f3.json", "gone.json")),
        ),
        Case("a source added", "plain", nothing, query="two-sources", quick=True),
        Case("a source removed", "two-sources", nothing, query="plain"),
        Case("two sources swapped", "two-sources", nothing, query="swapped-sources"),
        Case("another folder", "plain", nothing, query="other-folder"),
        Case("another kind of source", "plain", nothing, query="rate-micro-batch"),
        Case("a filter added", "plain", nothing, query="filtered"),
        Case("another projection", "plain", nothing, query="projected"),
    ]


def sink_cases() -> list[Case]:
    """Sinks and replay: 6 of the facts."""
    return [
        Case("untouched", "parquet", nothing, quick=True),
        Case("last commit lost", "parquet", lose("commits/3"), quick=True),
        Case(
            "new checkpoint on the old output",
            "parquet",
            lose("offsets", "commits", "sources", "metadata"),
            query="at-once",
        ),
        Case("foreachBatch becomes a file sink", "plain", nothing, run={"sink": "parquet"}),
        Case("complete mode, untouched", "memory", nothing),
        Case("complete mode, last commit lost", "memory", lose("commits/3")),
        Case("append mode", "memory-append", nothing),
        Case("noop, last commit lost", "plain", lose("commits/3"), run={"sink": "noop"}),
    ]


def state_cases() -> list[Case]:
    """State stores: 4.6 and 4.7 of the facts, for each provider."""
    every: list[Case] = []
    for base, suffix in (
        ("agg-hdfs", "delta"),
        ("agg-rocksdb", "zip"),
        ("agg-changelog", "changelog"),
    ):
        quick = base == "agg-rocksdb"
        every += [
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
    every.append(Case("SST files lost", "agg-rocksdb", lose("state/0/0/SSTs")))
    return every + provider_cases() + operator_cases()


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


def cases() -> list[Case]:
    """The whole matrix."""
    return [
        *log_cases(),
        *source_cases(),
        *sink_cases(),
        *state_cases(),
        *change_cases(),
        *active_cases(),
    ]


def change_cases() -> list[Case]:
    """Changes of code and settings that Spark allows, ignores or refuses: 4.15 of the facts."""
    policy = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}
    return [
        Case("rate limit changed", "plain", nothing, query="at-once"),
        Case("trigger changed", "plain", nothing, run={"trigger": {"once": True}}),
        Case("output mode changed to complete", "agg-hdfs", nothing, run={"mode": "complete"}),
        Case("another key of the same type", "agg-hdfs", nothing, query="count-by-other-key"),
        Case("another aggregate of the same type", "agg-hdfs", nothing, query="total-by-key"),
        Case("other columns", "dedup-hdfs", nothing, query="dedup-by-key"),
        Case("other columns", "dedup-rocksdb", nothing, query="dedup-by-key"),
        Case("session asks for another watermark policy", "join-hdfs", nothing, conf=policy),
        Case("another join key", "join-hdfs", nothing, query="join-by-key"),
        Case("a side without its watermark", "join-rocksdb", nothing, query="join-unbounded"),
        Case("window removed", "windowed", nothing, query="count-by-key"),
    ]


def active_cases() -> list[Case]:
    """Two writers on one checkpoint: 4.12 of the facts."""
    once = {"trigger": {"once": True}}
    keep = {"spark.sql.streaming.stopActiveRunOnRestart": "false"}
    return [
        Case("a run is active in this application", "rate", nothing, run=once, active="same"),
        Case(
            "a run is active and may not be stopped",
            "rate",
            nothing,
            conf=keep,
            run=once,
            active="same",
        ),
        Case(
            "a run is active on the original of this copy", "rate", nothing, run=once, active="copy"
        ),
        Case("another application runs the same batch", "plain", nothing, active="other"),
    ]
