"""The forecast matrix: a base checkpoint, a change, and how the query is started again.

Nothing here says what will happen: the forecast says it from the files, and Spark shows it.
"""

from __future__ import annotations

from forecast_bases import bases
from forecast_case import Case
from forecast_changes import both, cut, latest, lose, nothing, put, replace
from forecast_state_cases import state_cases

UNCOMMITTED = lose("commits/3")


def log_cases() -> list[Case]:
    """Offsets, commits and metadata: 4.5 of the facts."""
    return [
        Case("untouched", "plain", nothing, quick=True),
        Case("last commit lost", "plain", UNCOMMITTED, quick=True),
        Case("last two commits lost", "plain", lose("commits/3", "commits/2"), quick=True),
        Case("commits emptied", "plain", lose("commits/0", "commits/1", "commits/2", "commits/3")),
        Case("commits removed", "plain", lose("commits")),
        Case("last offset lost", "plain", lose("offsets/3"), quick=True),
        Case("last two offsets lost", "plain", lose("offsets/3", "offsets/2")),
        Case("offset before the last lost", "plain", lose("offsets/2"), quick=True),
        Case("gap next to an uncommitted end", "plain", both(UNCOMMITTED, lose("offsets/2"))),
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
        *identity_cases(),
        *mode_cases(),
    ]


def identity_cases() -> list[Case]:
    """The identity lost, whole logs removed, files that are none of Spark's."""
    return [
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
    ]


def mode_cases() -> list[Case]:
    """Other triggers, async progress tracking, the second format of the offset log."""
    return [
        Case(
            "Trigger.Once on an uncommitted batch",
            "plain",
            UNCOMMITTED,
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
        Case("offset log v2, last commit lost", "offsets-v2", UNCOMMITTED, lines=("4.2", "4.3")),
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
