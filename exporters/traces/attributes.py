"""What a span says: every attribute, declared once, and the functions that fill them in.

Pure. Durations are seconds, times are ISO 8601 in UTC; what is not known is absent. `<i>` stands
for the index of a source or of a state operator in Spark's own order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime, timezone

import msgspec
from msgspec import Struct

from streamgauge.masking import mask
from streamgauge.model.events import Operator, Progress, Source
from streamgauge.model.observations import QueryStatus
from streamgauge.model.query import Query
from streamgauge.model.sinks import find_sink
from streamgauge.model.transitions import HOUR_SECONDS

Value = str | bool | int | float
Attributes = dict[str, Value]

PREFIX = "spark.streaming."
MOST_OFFSET_CHARACTERS = 1024
MOST_STACK_CHARACTERS = 8192
MOST_MESSAGE_CHARACTERS = 1000
MOST_PARTS = 16  # sources, and operators, that are described one by one

ERROR_TYPE = "error.type"
BATCH_SECONDS = f"{PREFIX}batch.duration"
REPLAYED = f"{PREFIX}batch.replayed"
OVERDUE = f"{PREFIX}batch.overdue"
LINK = f"{PREFIX}link"
START_KIND = f"{PREFIX}start.kind"


class Attribute(Struct, frozen=True):
    """One attribute: where it is found and what it means."""

    name: str
    spans: str  # batch, phase, start, running; "all" but phases
    meaning: str


def _of(spans: str, name: str, meaning: str) -> Attribute:
    return Attribute(PREFIX + name, spans, meaning)


TABLE = (
    _of("all", "query.id", "Spark's id of the query; the same in every run from one checkpoint"),
    _of("all", "query.name", "the query's name; absent when it has none"),
    _of("all", "query.label", "value of the label `query` in metrics and logs"),
    _of("all", "run.id", "Spark's id of the run"),
    _of("all", "trigger.kind", "processing_time, available_now, once, continuous or real_time"),
    _of("all", "trigger.interval", "trigger interval; 0 = as fast as possible"),
    _of("all", "output_mode", "append, update or complete, as Spark writes it"),
    _of("all", "checkpoint", "checkpoint location, masked"),
    _of("batch", "state.provider", "state store provider of a stateful query"),
    _of("batch, running", "batch.id", "number of the batch"),
    _of("batch", "batch.duration", "length of the whole trigger (triggerExecution)"),
    _of("batch", "batch.has_data", "whether some source's end offset differs from its start"),
    _of("batch", "batch.replayed", "whether it ran again from the offset log after a restart"),
    _of("batch, running", "batch.overdue", "it ran past the query's silence budget"),
    _of("batch", "batch.outcome", "how the run ended before an overdue batch did: stopped, failed or unknown"),
    _of("batch", "batch.start_estimated", "Spark gave no start for a batch that failed; this is the latest moment before it that was seen"),
    _of("batch", "rows.input", "rows read, as Spark counts them"),
    _of("batch", "rows.output", "rows written; absent where the sink does not tell"),
    _of("batch", "rate.input", "rows that arrived a second"),
    _of("batch", "rate.processed", "rows that were processed a second"),
    _of("batch", "event_time.watermark", "the watermark that the batch used"),
    _of("batch", "event_time.watermark_gap", "start of the trigger less the watermark"),
    _of("batch", "event_time.min", "oldest event time in the batch"),
    _of("batch", "event_time.avg", "mean event time in the batch"),
    _of("batch", "event_time.max", "newest event time in the batch"),
    _of("batch", "sink.kind", "such as `delta` or `foreachBatch`"),
    _of("batch", "sink.description", "Spark's words for the sink, masked"),
    _of("batch", "sink.replay", "what the sink does with a batch that it is handed again: `writes it again`, `skips it` or `depends on the code`"),
    _of("batch", "sink.delta.version", "version of the Delta table that the batch made, where the table is on the driver's host"),
    _of("batch", "phase.<name>.duration", "Spark's own figure for a phase, as in durationMs"),
    _of("batch", "source.count", "number of sources"),
    _of("batch", "source.<i>.kind", "such as `kafka`"),
    _of("batch", "source.<i>.description", "Spark's words for the source, masked"),
    _of("batch", "source.<i>.offset.start", "JSON, masked, at most 1,024 characters"),
    _of("batch", "source.<i>.offset.end", "the same"),
    _of("batch", "source.<i>.offset.latest", "the same: what the source had when the trigger began"),
    _of("batch", "source.<i>.version.end", "newest version of a Delta table that was begun"),
    _of("batch", "source.<i>.rows", "rows read from it"),
    _of("batch", "source.<i>.rate.input", "rows that arrived a second"),
    _of("batch", "source.<i>.rate.processed", "rows that were processed a second"),
    _of("batch", "source.<i>.backlog", "rows between the end and the latest offset; absent when it can't be known"),
    _of("batch", "state.count", "number of stateful operators"),
    _of("batch", "state.<i>.operator", "such as `stateStoreSave`"),
    _of("batch", "state.<i>.rows", "rows in the state store"),
    _of("batch", "state.<i>.memory", "bytes of memory, over all partitions"),
    _of("batch", "state.<i>.instances", "state store instances"),
    _of("batch", "state.<i>.updated", "rows added or changed"),
    _of("batch", "state.<i>.removed", "rows evicted"),
    _of("batch", "state.<i>.dropped", "rows that came too late"),
    _of("batch", "state.<i>.commit_time", "time in commits, summed over tasks"),
    _of("batch", "state.<i>.update_time", "time in updates, summed over tasks"),
    _of("batch", "state.<i>.removal_time", "time in removals, summed over tasks"),
    _of("phase", "phase", "the phase, the same as the span's name"),
    _of("phase", "phase.start_estimated", "always true: Spark gives durations, not starts; phases are laid out one after the other"),
    _of("start", "start.kind", "`first` or `restart`"),
    _of("start", "start.outcome", "`committed`; else how the run ended before its first commit: failed, stopped or unknown"),
    _of("start", "start.batch.id", "the batch it resumed at"),
    _of("start", "start.replayed", "whether that batch had been planned by an earlier run"),
    _of("start", "start.gap", "time since the run before ended"),
    _of("start", "start.last_outcome", "how the run before ended: stopped, failed, unknown"),
    _of("start", "start.last_error_type", "error class of the run before"),
    _of("start", "start.restarts_last_hour", "restarts in the last hour, this one included"),
    _of("running", "running.age", "for how long the batch had run"),
    _of("running", "running.silence_budget", "how long the query may be silent before that is wrong"),
    _of("running", "running.phase", "what it was doing: offsets, processing, other"),
    _of("running", "running.tasks.running", "tasks of the batch, at that moment"),
    _of("running", "running.tasks.completed", "the same"),
    _of("running", "running.tasks.failed", "the same"),
    _of("links", "link", "what a link points to: previous_batch, start, or failed_batch (of the run before)"),
    Attribute(ERROR_TYPE, "batch, start", "Spark's error class; else the exception's class"),
)  # fmt: skip


def describe_query(query: Query, run_id: str) -> Attributes:
    """What is the same for every span of a run."""
    details = query.details if query.run_id == run_id else None
    return _known(
        {
            "query.id": query.query_id,
            "query.name": query.name,
            "query.label": query.label,
            "run.id": run_id,
            "trigger.kind": details.trigger if details and details.trigger != "unknown" else None,
            "trigger.interval": details.trigger_seconds if details else None,
            "output_mode": details.output_mode if details else None,
            "checkpoint": details.checkpoint if details else None,
        }
    )


def describe_root(query: Query | None, run_id: str, batch_id: int) -> Attributes:
    """What is known of a batch without its progress event."""
    known = describe_query(query, run_id) if query is not None else {f"{PREFIX}run.id": run_id}
    return {**known, f"{PREFIX}batch.id": batch_id}


def describe_batch(batch: Progress, query: Query, version: int | None = None) -> Attributes:
    """Everything a progress event says, and what is known of its query and of the version it made.

    The parts that may be many come first: where a provider limits the number of attributes, the
    SDK gives up the oldest, and the ones that people search for stay.
    """
    found: Attributes = {}
    for index, operator in enumerate(batch.operators[:MOST_PARTS]):
        found.update(_describe_operator(index, operator))
    for index, source in enumerate(batch.sources[:MOST_PARTS]):
        found.update(_describe_source(index, source))
    found.update(
        _known({f"phase.{phase}.duration": length for phase, length in batch.phases.items()})
    )
    provider = query.details.state_provider if query.details and batch.operators else None
    sink = find_sink(batch.sink.kind)
    found.update(
        _known(
            {
                "source.count": len(batch.sources),
                "state.count": len(batch.operators),
                "state.provider": provider,
                "sink.kind": batch.sink.kind,
                "sink.description": batch.sink.description,
                "sink.replay": sink.replay if sink else None,
                "sink.delta.version": version,
                "rows.input": batch.input_rows,
                "rows.output": batch.sink.rows,
                "rate.input": batch.input_rate,
                "rate.processed": batch.processed_rate,
                "event_time.watermark": _iso(batch.watermark),
                "event_time.watermark_gap": _gap(batch.at, batch.watermark),
                "event_time.min": _iso(batch.event_min),
                "event_time.avg": _iso(batch.event_avg),
                "event_time.max": _iso(batch.event_max),
                "batch.duration": batch.seconds,
                "batch.has_data": batch.has_data,
                "batch.replayed": batch.replayed,
            }
        )
    )
    found.update(describe_query(query, batch.run_id))
    found[f"{PREFIX}batch.id"] = batch.batch_id
    return found


def _describe_source(index: int, source: Source) -> Attributes:
    return _known(
        {
            f"source.{index}.kind": source.kind,
            f"source.{index}.description": source.description,
            f"source.{index}.offset.start": _offset(source.start),
            f"source.{index}.offset.end": _offset(source.end),
            f"source.{index}.offset.latest": _offset(source.latest),
            f"source.{index}.version.end": source.version,
            f"source.{index}.rows": source.rows,
            f"source.{index}.rate.input": source.input_rate,
            f"source.{index}.rate.processed": source.processed_rate,
            f"source.{index}.backlog": source.backlog,
        }
    )


def _describe_operator(index: int, operator: Operator) -> Attributes:
    return _known(
        {
            f"state.{index}.operator": operator.name,
            f"state.{index}.rows": operator.rows,
            f"state.{index}.memory": operator.memory,
            f"state.{index}.instances": operator.instances,
            f"state.{index}.updated": operator.updated,
            f"state.{index}.removed": operator.removed,
            f"state.{index}.dropped": operator.dropped,
            f"state.{index}.commit_time": operator.commit_seconds,
            f"state.{index}.update_time": operator.update_seconds,
            f"state.{index}.removal_time": operator.removal_seconds,
        }
    )


def describe_phase(phase: str) -> Attributes:
    """What a phase's own span says."""
    return {f"{PREFIX}phase": phase, f"{PREFIX}phase.start_estimated": True}


def describe_start(query: Query, run_id: str, first: Progress | None, outcome: str) -> Attributes:
    """The story of a start: what came before, where it resumed, how it went."""
    before = query.last_end
    began = query.started_at if query.run_id == run_id else None
    earlier = before is not None or len(query.starts) > 1
    resumed = first is not None and (first.replayed or first.batch_id > 0)
    recent = [at for at in query.starts if began is None or began - at <= HOUR_SECONDS]
    found = _known(
        {
            "start.kind": "restart" if earlier or resumed else "first",
            "start.outcome": outcome,
            "start.batch.id": first.batch_id if first else None,
            "start.replayed": first.replayed if first else None,
            "start.gap": round(max(0.0, began - before.at), 3)
            if before and began is not None
            else None,
            "start.last_outcome": before.outcome if before else None,
            "start.last_error_type": before.error_class if before else None,
            "start.restarts_last_hour": max(0, len(recent) - 1),
        }
    )
    found.update(describe_query(query, run_id))
    return found


def describe_running(query: Query, status: QueryStatus, batch_id: int, age: float) -> Attributes:
    """What is known of a batch that does not end."""
    tasks = status.tasks
    found = _known(
        {
            "batch.id": batch_id,
            "batch.overdue": True,
            "running.age": age,
            "running.silence_budget": query.silence_budget,
            "running.phase": status.phase,
            "running.tasks.running": tasks.running if tasks else None,
            "running.tasks.completed": tasks.completed if tasks else None,
            "running.tasks.failed": tasks.failed if tasks else None,
        }
    )
    found.update(describe_query(query, status.run_id))
    return found


def describe_exception(exception: str, error_type: str) -> Attributes:
    """The exception event, by OpenTelemetry's names; masked, and bounded."""
    text = mask(exception)
    return {
        "exception.type": error_type,
        "exception.message": _headline(text)[:MOST_MESSAGE_CHARACTERS],
        "exception.stacktrace": text[:MOST_STACK_CHARACTERS],
    }


def _headline(text: str) -> str:
    """What happened, in a line: the first; of an error in Python code, which Py4J wraps, its last."""
    words, _, _ = text.strip().partition("\n\tat ")
    lines = [line.strip() for line in words.splitlines() if line.strip()] or [""]
    return lines[-1] if lines[0].startswith("py4j.") else lines[0]


def _known(values: Mapping[str, Value | None]) -> Attributes:
    return {PREFIX + name: value for name, value in values.items() if value is not None}


def _offset(offset: str | None) -> str | None:
    """An offset's text; masked before it is cut, since a cut secret is not known as one."""
    if offset is None:
        return None
    with contextlib.suppress(msgspec.DecodeError):
        offset = msgspec.json.format(offset, indent=-1)
    text = mask(offset)
    return text if len(text) <= MOST_OFFSET_CHARACTERS else text[: MOST_OFFSET_CHARACTERS - 1] + "…"


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return None  # an event time that no calendar has
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _gap(at: float, watermark: float | None) -> float | None:
    return None if watermark is None else round(at - watermark, 3)
