"""Sources and sinks: what comes in, what waits, what goes out."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, limit
from .promql import ON, QUERY, best, increase, parameter, rate, recorded, series, window
from .query import ROWS
from .query_batches import phase_colours

_TELLS = "the source tells how far it is: Kafka, or another that reports its latest offset"
_SILENT = "The source does not say how many rows wait (files and sockets don't)."
_PROBED = "the probe looks at the source itself"
_BATCHES = f"sum by ({QUERY}) (rate({series('batches_total')}[$__rate_interval]))"
_READING = "latest_offset|get_offset|get_batch|wal_commit"
_WRITING = "add_batch|commit_batch|commit_offsets"


def _phases(phases: str) -> str:
    spent = rate("phase_duration_seconds_total", f'phase=~"{phases}"', by="phase")
    return f"{spent}\n/ {ON} group_left () ({_BATCHES} > 0)"


_MEAN = "({backlog} / on ({by}) {partitions} > 0)".format(
    backlog=best("max", "source_backlog_rows", by="source"),
    partitions=best("max", "source_partitions", by="source"),
    by=f"{QUERY}, source",
)

BEHIND = Row(
    "How far behind",
    (
        Panel(
            "Lag",
            "timeseries",
            "s",
            "Age of the oldest row that was not read. Bad is growth, and what comes near the retention.",
            "The source does not say how many rows wait, or its oldest row is from before the agent's"
            " first look.",
            (Target(best("max", "source_lag_seconds", by="source"), "{{source}}"),),
            alerts=("FallingBehind", "RetentionRisk"),
            condition=_TELLS,
            width=8,
        ),
        Panel(
            "Time until it is drained",
            "timeseries",
            "s",
            "At the pace of the last batches, less what comes in. Bad is a line that ends while rows"
            " wait: at this pace they will never be read.",
            "Nothing is known of what waits, or more comes in than is read.",
            (Target(best("max", "source_drain_seconds", by="source"), "{{source}}"),),
            alerts=("FallingBehind",),
            condition="the source tells how far it is, and less comes in than is read",
            width=8,
        ),
        Panel(
            "Time until retention deletes unread rows",
            "timeseries",
            "s",
            "Bad is less than half of the retention; at 0 rows are lost.",
            "The probe is off, the source keeps its rows for ever, or the age of its oldest row is not known.",
            (Target(best("min", "source_retention_headroom_seconds", by="source"), "{{source}}"),),
            alerts=("RetentionRisk",),
            condition=_PROBED,
            width=8,
        ),
        Panel(
            "Backlog by partition",
            "timeseries",
            "short",
            "Rows that wait in the partitions furthest behind. Bad is one that grows while the others don't.",
            _SILENT,
            (
                Target(
                    f"topk(10, {best('max', 'source_partition_backlog_rows', by='source, topic, partition')})",
                    "{{topic}} {{partition}}",
                ),
            ),
            alerts=("FallingBehind",),
            condition=_TELLS,
            axis="rows",
            width=8,
        ),
        Panel(
            "Skew between partitions",
            "timeseries",
            "short",
            "The largest backlog of a partition over the mean: 1 is even. Bad is a number near that of the"
            " partitions: one of them has it all.",
            "No row waits, or the source has no partitions.",
            (
                Target(
                    best("max", "source_partition_backlog_max_rows", by="source")
                    + f"\n/ on ({QUERY}, source) {_MEAN}",
                    "{{source}}",
                ),
            ),
            alerts=("FallingBehind",),
            condition=_TELLS,
            axis="times the mean",
            width=8,
        ),
        Panel(
            "Partitions that changed or stand still",
            "timeseries",
            "short",
            "Bad is one that has rows and gives none, one that is gone, and offsets that went backwards: a"
            " topic was made anew.",
            "The source has no partitions.",
            (
                Target(best("max", "source_partitions_stalled", by="source"), "stalled"),
                Target(increase("source_partitions_added_total", by="source"), "added"),
                Target(increase("source_partitions_removed_total", by="source"), "gone"),
                Target(increase("source_offset_resets_total", by="source"), "made anew"),
            ),
            alerts=("SourceNotAdvancing",),
            condition=_TELLS,
            axis="partitions",
            width=8,
            overrides=(
                Override("^stalled$", (("color", RED),)),
                Override("^added$", (("color", GREEN),)),
                Override("^gone$", (("color", ORANGE),)),
                Override("^made anew$", (("color", PURPLE),)),
            ),
        ),
    ),
)

SOURCES = Board(
    "sources",
    "Sources and sinks",
    "One query's sources: rows, backlog and pace; its sink: rows, commits and replays.",
    (
        Row(
            "Sources",
            (
                Panel(
                    "Rows read by source",
                    "timeseries",
                    "short",
                    "Bad is a source that stops while the others go on.",
                    "No rows in this time range.",
                    (Target(rate("source_input_rows_total", by="source"), "{{source}}"),),
                    alerts=("SourceNotAdvancing",),
                    axis="rows/s",
                ),
                ROWS,
                Panel(
                    "Backlog by source",
                    "timeseries",
                    "short",
                    "Rows that wait at each source after the last batch. Bad is above the line and rising.",
                    _SILENT,
                    (Target(best("max", "source_backlog_rows", by="source"), "{{source}}"),),
                    alerts=("FallingBehind", "SourceNotAdvancing", "RetentionRisk"),
                    condition=_TELLS,
                    axis="rows",
                    width=8,
                    steps=((None, BLUE), (parameter("backlog_rows"), RED)),
                    line=True,
                ),
                Panel(
                    "Backlog: growth",
                    "timeseries",
                    "short",
                    f"Rows per second by which the backlog grows, over {window('trend_window')}. Bad is above 0"
                    " for long; below 0 it is catching up.",
                    _SILENT,
                    (
                        Target(
                            f"deriv({recorded('query:streamgauge_backlog:rows')}[{window('trend_window')}])",
                            "growth",
                        ),
                    ),
                    alerts=("FallingBehind",),
                    condition=_TELLS,
                    axis="rows/s",
                    width=8,
                    minimum=None,
                    steps=((None, GREEN), (0, ORANGE)),
                    line=True,
                ),
                Panel(
                    "Cut short by its limit",
                    "state-timeline",
                    "short",
                    "Whether the last batch read less than there was (maxOffsetsPerTrigger). Bad is always:"
                    " the limit is what holds the query back.",
                    _SILENT,
                    (Target(best("max", "source_rate_limited", by="source"), "{{source}}"),),
                    alerts=("FallingBehind",),
                    condition=_TELLS,
                    width=8,
                    mappings={"0": ("read all", GREEN), "1": ("cut short", ORANGE)},
                ),
                Panel(
                    "Time to find and plan the rows of a batch",
                    "timeseries",
                    "s",
                    "Asking for offsets, planning the batch, writing the plan down. Bad is a source that"
                    " takes long to say what it has (a listing of many files).",
                    "No batch in this time range.",
                    (Target(_phases(_READING), "{{phase}}"),),
                    alerts=("BatchOverrun",),
                    stack=True,
                    fill=60,
                    overrides=phase_colours(_READING),
                ),
                Panel(
                    "Data available",
                    "state-timeline",
                    "short",
                    "Whether the source has rows that were not read at the last look. Bad is yes while"
                    " nothing is committed.",
                    "The query was not looked at in this time range.",
                    (Target(best("max", "query_data_available"), "{{query}}"),),
                    alerts=("CommitsStalled",),
                    mappings={"0": ("no", GREY), "1": ("yes", BLUE)},
                ),
            ),
        ),
        BEHIND,
        Row(
            "Sink",
            (
                Panel(
                    "Rows written",
                    "timeseries",
                    "short",
                    "Beside the rows that were read. Bad is rows that are read and never written.",
                    "The sink does not tell how many rows it wrote (files and foreachBatch don't).",
                    (
                        Target(rate("output_rows_total"), "written"),
                        Target(
                            f"{rate('input_rows_total')}\nand {ON} {rate('output_rows_total')}",
                            "read",
                        ),
                    ),
                    alerts=("ThroughputDrop",),
                    condition="the sink tells how many rows it wrote",
                    axis="rows/s",
                    width=8,
                    overrides=(
                        Override("^written$", (("color", GREEN),)),
                        Override("^read$", (("color", BLUE),)),
                    ),
                ),
                Panel(
                    "Time in the sink of a batch",
                    "timeseries",
                    "s",
                    "Computing the rows and writing them, then committing. Bad is growth with the same rows.",
                    "No batch in this time range.",
                    (Target(_phases(_WRITING), "{{phase}}"),),
                    alerts=("BatchOverrun", "ProcessingCostRegression"),
                    width=8,
                    stack=True,
                    fill=60,
                    overrides=phase_colours(_WRITING),
                ),
                Panel(
                    "Since the last commit",
                    "timeseries",
                    "s",
                    "Bad is past the budget while data waits.",
                    "No recorded series: load streamgauge.rules.yml into Prometheus.",
                    (
                        Target(recorded("query:streamgauge_commit_age:seconds"), "last commit"),
                        Target(recorded("query:streamgauge_silence_budget:seconds"), "budget"),
                    ),
                    alerts=("CommitsStalled",),
                    width=8,
                    overrides=(
                        Override("^last commit$", (("color", BLUE),)),
                        limit("^budget$"),
                    ),
                ),
                Panel(
                    "A replayed batch",
                    "stat",
                    "short",
                    "Whether the sink writes the rows of a replayed batch twice. Bad is twice, together"
                    " with replays.",
                    "It can't be known from outside (foreach, foreachBatch).",
                    (
                        Target(
                            f"bottomk(1, {best('max', 'sink_idempotent')})",
                            "{{query}}",
                            instant=True,
                        ),
                    ),
                    alerts=("DuplicateRisk",),
                    condition="the sink is one whose manners are known: files, Delta, Kafka, memory, console",
                    width=8,
                    height=6,
                    mappings={"0": ("writes rows twice", ORANGE), "1": ("changes nothing", GREEN)},
                ),
                Panel(
                    "Batches replayed",
                    "timeseries",
                    "short",
                    "Batches run again from the offset log after a restart. Bad is one into a sink that"
                    " writes twice.",
                    "The query was not seen in this time range.",
                    (Target(increase("batches_replayed_total"), "replayed"),),
                    alerts=("DuplicateRisk",),
                    axis="batches",
                    width=8,
                    height=6,
                    overrides=(Override("^replayed$", (("color", ORANGE),)),),
                ),
                Panel(
                    "Empty batches, of all",
                    "timeseries",
                    "percentunit",
                    "Batches that read nothing. Bad is many while data waits; each costs a commit.",
                    "No batch in this time range.",
                    (
                        Target(
                            "{empty} / {on} ({all} > 0)".format(
                                empty=rate("batches_total", 'data="false"'), on=ON, all=_BATCHES
                            ),
                            "empty",
                        ),
                    ),
                    alerts=("SourceNotAdvancing",),
                    width=8,
                    height=6,
                    maximum=1,
                    overrides=(Override("^empty$", (("color", GREY),)),),
                ),
            ),
        ),
    ),
    many=False,
    since="now-1h",
)
