"""State and event time: what a query remembers, what that costs, and how far its clock is."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, DASHED, GREEN, PURPLE, RED, YELLOW
from .promql import ON, QUERY, best, parameter, rate, recorded, series, window

_STATELESS = "The query has no state."
_STATEFUL = "the query is stateful"
_NO_ROCKSDB = "The state store is not RocksDB."
_ROCKSDB = "the state store is RocksDB"
_NO_WATERMARK = "The query has no watermark."
_WATERMARK = "the query has a watermark"
_IN_A_DAY = Override(".* in a day$", (("color", PURPLE), *DASHED))
_GROWTH = window("growth_window")
_HORIZON = f"{parameter('growth_horizon'):g}"
_MEMORY = series("state_memory_bytes")


def _state(title: str, unit: str, bad: str, *targets: Target, **more: object) -> Panel:
    settings: dict[str, object] = {"empty": _STATELESS, "condition": _STATEFUL} | more
    return Panel(title, "timeseries", unit, bad, targets=targets, **settings)  # type: ignore[arg-type]


def _rocksdb(title: str, unit: str, bad: str, *targets: Target, **more: object) -> Panel:
    settings = {"empty": _NO_ROCKSDB, "condition": _ROCKSDB, "width": 8} | more
    return _state(title, unit, bad, *targets, **settings)


def _event_time(title: str, unit: str, bad: str, *targets: Target, **more: object) -> Panel:
    settings = {"empty": _NO_WATERMARK, "condition": _WATERMARK, "width": 8} | more
    return _state(title, unit, bad, *targets, **settings)


def _coloured(**colours: str) -> tuple[Override, ...]:
    """A colour for the lines whose name ends so: Grafana's palette would give red to the fifth."""
    return tuple(
        Override(f".* {words.replace('_', ' ')}$", (("color", colour),))
        for words, colour in colours.items()
    )


def _by_operator(name: str) -> str:
    return rate(name, by="operator")


def _behind(name: str) -> str:
    return f"time() - {best('max', name)}"


_HITS, _MISSES = (
    rate(f"state_rocksdb_block_cache_{what}_total", by="operator") for what in ("hits", "misses")
)
_LATE = rate("state_rows_dropped_by_watermark_total", by="operator")

SNAPSHOT_LAG = _state(
    "Snapshot lag",
    "short",
    "Versions that a restart has to replay. Bad is above the line.",
    Target(best("max", "state_snapshot_lag_versions", by="operator"), "{{query}} {{operator}}"),
    alerts=("SnapshotLag",),
    empty="Spark tells it from 4.1 on, for stateful queries.",
    condition="the query is stateful, on Spark 4.1 or newer",
    axis="versions",
    width=8,
    steps=((None, BLUE), (parameter("snapshot_lag"), RED)),
    line=True,
)

STATE_BOARD = Board(
    "state",
    "State and event time",
    "The state of one query by operator, its store, and its event time.",
    (
        Row(
            "State",
            (
                _state(
                    "Rows by operator, and in a day",
                    "short",
                    "Dashed: where the growth of the last hours leads in a day. Bad is past the line"
                    " and still rising.",
                    Target(best("max", "state_rows", by="operator"), "{{query}} {{operator}}"),
                    Target(
                        f"predict_linear({recorded('query_operator:streamgauge_state_rows:max')}"
                        f"[{_GROWTH}], {_HORIZON}) >= 0",
                        "{{query}} {{operator}} in a day",
                    ),
                    alerts=("StateBloat", "StateNotEvicting"),
                    axis="rows",
                    steps=((None, BLUE), (parameter("state_rows"), RED)),
                    line=True,
                    log=10,
                    minimum=None,
                    overrides=(_IN_A_DAY,),
                ),
                _state(
                    "Bytes by operator, and in a day",
                    "bytes",
                    "Dashed: where the growth of the last hours leads in a day. Bad is past the line.",
                    Target(
                        f"sum by ({QUERY}, operator) ({_MEMORY})",
                        "{{query}} {{operator}}",
                    ),
                    Target(
                        f"sum by ({QUERY}, operator) (predict_linear({_MEMORY}[{_GROWTH}], {_HORIZON})) >= 0",
                        "{{query}} {{operator}} in a day",
                    ),
                    alerts=("StateBloat",),
                    steps=((None, BLUE), (parameter("state_limit_bytes"), RED)),
                    line=True,
                    log=2,
                    minimum=None,
                    overrides=(_IN_A_DAY,),
                ),
                _state(
                    "Rows updated and removed",
                    "short",
                    "Bad is updates with no removal for longer than the longest window.",
                    Target(
                        _by_operator("state_rows_updated_total"), "{{query}} {{operator}} updated"
                    ),
                    Target(
                        _by_operator("state_rows_removed_total"), "{{query}} {{operator}} removed"
                    ),
                    alerts=("StateNotEvicting",),
                    axis="rows/s",
                    width=8,
                    overrides=_coloured(updated=BLUE, removed=GREEN),
                ),
                _state(
                    "Commit time of one store",
                    "s",
                    "What one store takes to commit one batch. Bad is above the line: every batch"
                    " waits for it.",
                    Target(
                        recorded("query_operator:streamgauge_state_commit:seconds_per_store"),
                        "{{query}} {{operator}}",
                    ),
                    alerts=("StateCommitSlow",),
                    width=8,
                    steps=((None, BLUE), (parameter("commit_seconds"), RED)),
                    line=True,
                ),
                _state(
                    "Task time a second: update, remove, commit",
                    "s",
                    "Summed over tasks, so it may exceed a second. Bad is commits that outweigh updates.",
                    Target(
                        _by_operator("state_update_seconds_total"), "{{query}} {{operator}} update"
                    ),
                    Target(
                        _by_operator("state_removal_seconds_total"), "{{query}} {{operator}} remove"
                    ),
                    Target(
                        _by_operator("state_commit_seconds_total"), "{{query}} {{operator}} commit"
                    ),
                    alerts=("StateCommitSlow",),
                    width=8,
                    overrides=_coloured(update=BLUE, remove=GREEN, commit=PURPLE),
                ),
            ),
        ),
        Row(
            "Event time",
            (
                _event_time(
                    "Behind the clock",
                    "s",
                    "Bad is a watermark that climbs as fast as time goes by (it stands still), or"
                    " anything far below 0: event time from the future.",
                    Target(_behind("watermark_timestamp_seconds"), "watermark"),
                    Target(_behind("event_time_max_timestamp_seconds"), "newest event"),
                    Target(_behind("event_time_avg_timestamp_seconds"), "mean event"),
                    alerts=("WatermarkStuck", "FutureEventTime"),
                    minimum=None,
                    overrides=(
                        Override("^watermark$", (("color", PURPLE), ("custom.lineWidth", 2))),
                        Override("^newest event$", (("color", GREEN),)),
                        Override("^mean event$", (("color", BLUE),)),
                    ),
                ),
                _event_time(
                    "Rows that came too late",
                    "short",
                    "Rows that the watermark had passed, and that were dropped. Bad is any that stay.",
                    Target(_LATE, "{{query}} {{operator}}"),
                    alerts=("LateRowsDropped", "AllRowsLate"),
                    empty=_STATELESS,
                    condition=_STATEFUL,
                    axis="rows/s",
                ),
                _event_time(
                    "Share of the input that was late",
                    "percentunit",
                    "Bad is above the line; 100 % is an event from the future that moved the watermark.",
                    Target(
                        f"sum by ({QUERY}) ({_LATE}) / {ON} ({rate('input_rows_total')} > 0)",
                        "{{query}}",
                    ),
                    alerts=("LateRowsDropped", "AllRowsLate"),
                    empty="The query has no state, or read nothing.",
                    condition="the query is stateful and reads rows",
                    steps=((None, BLUE), (parameter("late_ratio"), RED)),
                    line=True,
                ),
            ),
        ),
        Row(
            "RocksDB",
            (
                _rocksdb(
                    "Block cache: share of reads that it served",
                    "percentunit",
                    "Bad is a fall below what is usual here: reads go to files.",
                    Target(f"{_HITS} / ({_HITS} + {_MISSES} > 0)", "{{query}} {{operator}}"),
                    alerts=("StateCommitSlow",),
                    empty="The state store is not RocksDB, or read nothing.",
                    condition="the state store is RocksDB and reads blocks",
                    maximum=1,
                ),
                _rocksdb(
                    "Memory and files",
                    "bytes",
                    "Bad is growth that removals don't bring back.",
                    Target(
                        f"sum by ({QUERY}, operator) ({series('state_rocksdb_sst_file_bytes')})",
                        "{{query}} {{operator}} files",
                    ),
                    Target(
                        f"sum by ({QUERY}, operator) ({series('state_rocksdb_pinned_blocks_bytes')})",
                        "{{query}} {{operator}} pinned blocks",
                    ),
                    alerts=("StateBloat",),
                    overrides=_coloured(files=BLUE, pinned_blocks=PURPLE),
                ),
                _rocksdb(
                    "Keys read and written",
                    "short",
                    "Bad is more reads or writes for the same rows: a changed plan.",
                    Target(
                        _by_operator("state_rocksdb_gets_total"), "{{query}} {{operator}} reads"
                    ),
                    Target(
                        _by_operator("state_rocksdb_puts_total"), "{{query}} {{operator}} writes"
                    ),
                    alerts=("ProcessingCostRegression",),
                    axis="keys/s",
                    overrides=_coloured(reads=GREEN, writes=BLUE),
                ),
                _rocksdb(
                    "Bytes flushed and compacted",
                    "Bps",
                    "Bad is compaction that outgrows what is written.",
                    Target(
                        f"sum by ({QUERY}) ({_by_operator('state_rocksdb_flush_written_bytes_total')})",
                        "flushed",
                    ),
                    Target(
                        f"sum by ({QUERY}) ({_by_operator('state_rocksdb_compaction_written_bytes_total')})",
                        "compacted",
                    ),
                    alerts=("StateCommitSlow",),
                    overrides=_coloured(flushed=BLUE, compacted=YELLOW),
                ),
                _rocksdb(
                    "Files of the newest snapshots",
                    "short",
                    "Over all stores. Bad is copies without reuse: every snapshot is written whole.",
                    Target(
                        best("max", "state_rocksdb_snapshot_copied_files", by="operator"),
                        "{{query}} {{operator}} copied",
                    ),
                    Target(
                        best("max", "state_rocksdb_snapshot_reused_files", by="operator"),
                        "{{query}} {{operator}} reused",
                    ),
                    alerts=("StateCommitSlow",),
                    axis="files",
                    overrides=_coloured(copied=BLUE, reused=GREEN),
                ),
                _rocksdb(
                    "Task time a second: flush, snapshot, upload, compaction",
                    "s",
                    "Bad is one that takes over: uploads are the checkpoint's file system, stalls are"
                    " compaction that can't keep up.",
                    *(
                        Target(f"sum by ({QUERY}) ({_by_operator(f'state_rocksdb_{name}')})", words)
                        for name, words in (
                            ("commit_flush_seconds_total", "flush"),
                            ("commit_checkpoint_seconds_total", "local snapshot"),
                            ("commit_file_sync_seconds_total", "upload"),
                            ("compaction_seconds_total", "compaction"),
                            ("writer_stall_seconds_total", "writers stalled"),
                        )
                    ),
                    alerts=("StateCommitSlow",),
                    overrides=_coloured(
                        flush=BLUE,
                        local_snapshot=GREEN,
                        upload=PURPLE,
                        compaction=YELLOW,
                        writers_stalled=RED,
                    ),
                ),
            ),
        ),
        Row(
            "Snapshots and Spark's in-memory store",
            (
                SNAPSHOT_LAG,
                _state(
                    "In-memory store: versions found and loaded",
                    "short",
                    "Bad is loads from files that go on after a start: state moves between executors.",
                    Target(
                        _by_operator("state_hdfs_map_cache_hits_total"),
                        "{{query}} {{operator}} found",
                    ),
                    Target(
                        _by_operator("state_hdfs_map_cache_misses_total"),
                        "{{query}} {{operator}} loaded",
                    ),
                    empty="The state store is not the HDFS-backed one.",
                    condition="the state store is the HDFS-backed one, Spark's default",
                    axis="versions/s",
                    width=8,
                    overrides=_coloured(found=GREEN, loaded=YELLOW),
                ),
                _state(
                    "In-memory store: newest version",
                    "bytes",
                    "Bad is growth towards the executors' memory.",
                    Target(
                        f"sum by ({QUERY}, operator) ({series('state_hdfs_current_version_bytes')})",
                        "{{query}} {{operator}}",
                    ),
                    alerts=("StateBloat",),
                    empty="The state store is not the HDFS-backed one.",
                    condition="the state store is the HDFS-backed one, Spark's default",
                    width=8,
                ),
            ),
        ),
    ),
    many=False,
)
