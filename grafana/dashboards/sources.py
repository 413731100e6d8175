"""Sources and sinks: what comes in, what waits, what goes out."""

from __future__ import annotations

from .board import Board, Override, Panel, Row, Target
from .colours import BLUE, GREEN, GREY, ORANGE, RED, limit
from .promql import ON, QUERY, best, increase, knob, rate, recorded, series, window
from .query import DRAIN_TIME, PHASE_COLOURS, ROWS

_TELLS = "the source tells how far it is: Kafka, or another that reports its latest offset"
_SILENT = "The source does not say how many rows wait (files and sockets don't)."
_BATCHES = f"sum by ({QUERY}) (rate({series('batches_total')}[$__rate_interval]))"
_READING = "latest_offset|get_offset|get_batch|wal_commit"


def _phases(phases: str) -> str:
    spent = rate("phase_duration_seconds_total", f'phase=~"{phases}"', by="phase")
    return f"{spent}\n/ {ON} group_left () ({_BATCHES} > 0)"


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
                    steps=((None, BLUE), (knob("backlog_rows"), RED)),
                    line=True,
                ),
                Panel(
                    "Backlog: growth",
                    "timeseries",
                    "short",
                    f"Rows a second by which the backlog grows, over {window('trend_window')}. Bad is above 0"
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
                ),
                Panel(**{**DRAIN_TIME.__dict__, "width": 8}),
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
                    overrides=PHASE_COLOURS,
                ),
                Panel(
                    "Data waits",
                    "state-timeline",
                    "short",
                    "Whether the source has rows that were not read at the last look. Bad is yes while"
                    " nothing is committed.",
                    "The query was not looked at in this time range.",
                    (Target(best("max", "query_data_available"), "{{query}}"),),
                    alerts=("CommitsStalled",),
                    mappings={"0": ("nothing waits", GREY), "1": ("data waits", BLUE)},
                ),
            ),
        ),
        Row(
            "Sink",
            (
                Panel(
                    "Rows written",
                    "timeseries",
                    "short",
                    "Bad is rows that are read and never written.",
                    "The sink does not tell how many rows it wrote (foreachBatch doesn't).",
                    (
                        Target(rate("output_rows_total"), "written"),
                        Target(rate("input_rows_total"), "read"),
                    ),
                    alerts=("ThroughputDrop",),
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
                    (Target(_phases("add_batch|commit_batch|commit_offsets"), "{{phase}}"),),
                    alerts=("BatchOverrun", "ProcessingCostRegression"),
                    width=8,
                    stack=True,
                    fill=60,
                    overrides=PHASE_COLOURS,
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
                    (Target(best("max", "sink_idempotent"), "sink", instant=True),),
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
