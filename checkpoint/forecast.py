"""The forecast: what a restart on this checkpoint will do, before anyone tries it.

`forecast` reads names and a few small files and says the next batch, whether it is a replay, what
it reads, which state it needs, what the sink does with it, and a verdict. What the files can't tell
is an assumption, named as such, or makes the verdict `unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.model.sinks import SINKS, Sink, find_sink

from . import failures
from .checkpoint import PARTITIONS
from .failures import Failure
from .lines import DEFAULTS, PINNED, at_least
from .restart import Restart
from .source_checks import log_offset
from .sources import MOST_PATHS, SourceRange, measure_range, read_paths
from .start import Start, find_start
from .state_checks import CHECKSUM, StateNeed, check_state, foreign_schema_paths
from .verdict import judge

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

STOP_ACTIVE = "spark.sql.streaming.stopActiveRunOnRestart"
FORMAT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"


class Override(msgspec.Struct, frozen=True):
    """A setting of the session that the checkpoint silently overrides."""

    key: str
    session: str
    checkpoint: str


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. `written`: batches the sink gets before a failure; `then`: the batch after."""

    spark: str
    verdict: str
    reason: str = ""
    failure: Failure | None = None
    batch: int | None = None
    replayed: bool = False
    then: int | None = None
    written: tuple[int, ...] = ()
    ranges: tuple[SourceRange, ...] = ()
    watermark_ms: int | None = None
    overridden: tuple[Override, ...] = ()
    state: tuple[StateNeed, ...] = ()
    sink: str | None = None
    sink_effect: str = ""
    sink_effects: dict[str, str] = {}
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def forecast(checkpoint: Checkpoint, restart: Restart | None = None) -> Forecast:
    """What a restart will do. Never raises for anything the files hold."""
    restart = restart or Restart()
    sink = find_sink(restart.sink)
    start = find_start(checkpoint, restart.spark, async_progress=_is_async(checkpoint, restart))
    start = _with_memory_sink(checkpoint, restart, start)
    start = _with_source_count(checkpoint, restart, start)
    ranges = _find_ranges(checkpoint, start)
    needs, start = _with_state(checkpoint, restart, start)
    start = _with_active_run(checkpoint, restart, start)
    verdict, reason = judge(restart, start, sink, needs)
    return Forecast(
        spark=restart.spark,
        verdict=verdict,
        reason=reason,
        failure=start.failure,
        batch=start.batch,
        replayed=start.replayed,
        then=_next_after(restart, start),
        written=start.written if start.failure else (),
        ranges=ranges,
        watermark_ms=_watermark(checkpoint, start),
        overridden=find_overrides(checkpoint, restart),
        state=tuple(needs),
        sink=sink.name if sink else restart.sink,
        sink_effect=_sink_effect(start, sink, restart),
        sink_effects={}
        if sink or not start.replayed
        else {k: v.sentence for k, v in SINKS.items()},
        assumptions=_assume(checkpoint, restart, start, ranges),
        notes=start.notes,
    )


def _is_async(checkpoint: Checkpoint, restart: Restart) -> bool:
    if restart.async_progress is None:
        return checkpoint.mode == "async"
    return restart.async_progress


def _with_memory_sink(checkpoint: Checkpoint, restart: Restart, start: Start) -> Start:
    """The memory sink refuses every checkpoint with offsets, but in complete mode."""
    recovers = (restart.output_mode or "").lower() == "complete"
    if restart.sink != "memory" or recovers or not checkpoint.offsets.present:
        return start
    if restart.output_mode is None:
        return msgspec.structs.replace(start, unknown="the output mode (--output-mode)")
    return Start(failure=failures.memory_sink())


def _with_source_count(checkpoint: Checkpoint, restart: Restart, start: Start) -> Start:
    latest = checkpoint.latest
    if restart.sources is None or latest is None or start.failure:
        return start
    if latest.version == 1 and len(latest.sources) != restart.sources:
        return Start(failure=failures.source_count(len(latest.sources), restart.sources))
    return start


def _find_ranges(checkpoint: Checkpoint, start: Start) -> tuple[SourceRange, ...]:
    """What a replayed batch reads; for a new one, where each source goes on from."""
    if start.batch is None or checkpoint.latest is None:
        return ()
    before = checkpoint.offsets_of(start.previous) if start.previous is not None else None
    if not start.replayed:
        return tuple(
            measure_range(each.source, _resume_offset(checkpoint, each.source, each.offset), None)
            for each in checkpoint.latest.sources
        )
    ranges = []
    for each in checkpoint.latest.sources:
        first = before.of(each.source) if before else None
        ranges.append(_with_paths(checkpoint, measure_range(each.source, first, each.offset)))
    return tuple(ranges)


def _resume_offset(checkpoint: Checkpoint, source: str, offset: str | None) -> str | None:
    if offset is not None or checkpoint.offsets.latest is None:
        return offset
    before = checkpoint.entries.get(checkpoint.offsets.latest - 1)
    return before.of(source) if before else None


def _with_paths(checkpoint: Checkpoint, found: SourceRange) -> SourceRange:
    """Name the files of a file source's range."""
    log = checkpoint.sources.get(found.source)
    if found.kind != "file" or log is None or found.empty:
        return found
    first, last = (_number(each) for each in (found.start, found.end))
    paths, _ = read_paths(checkpoint.store, log, first + 1, last)
    return msgspec.structs.replace(
        found, paths=tuple(paths[:MOST_PATHS]), paths_left_out=max(0, len(paths) - MOST_PATHS)
    )


def _number(offset: Any) -> int:
    return log_offset(None if offset is None else msgspec.json.encode(offset).decode())


def _with_state(
    checkpoint: Checkpoint, restart: Restart, start: Start
) -> tuple[list[StateNeed], Start]:
    """Check the state that the first batch needs; a lack of it stops the start."""
    if start.batch is None or start.failure or start.batch == 0:
        return [], start
    line = restart.spark
    stopped = _look_at_format(checkpoint, restart)
    if stopped:
        return [], msgspec.structs.replace(start, failure=stopped)
    if restart.stateful and not checkpoint.state.operators:
        failure = failures.missing_state_directory(line)
        return [], msgspec.structs.replace(start, failure=failure)
    if restart.stateful is False:
        return [], start
    needs = check_state(checkpoint, start.batch)
    for need in needs:
        if need.missing:
            failure = failures.missing_state(need.missing[0], line)
            return needs, msgspec.structs.replace(start, failure=failure)
        if need.broken:
            file, _, what = need.broken[0].partition(": ")
            failure = failures.broken_state(
                file,
                line,
                lacks_sst=what.startswith("needs "),
                checksum=what.startswith(CHECKSUM) and not file.endswith(".zip"),
            )
            return needs, msgspec.structs.replace(start, failure=failure)
    return needs, _with_foreign_schemas(checkpoint, start)


def _with_foreign_schemas(checkpoint: Checkpoint, start: Start) -> Start:
    """A transformWithState names its schema files by absolute paths; a move leaves them behind."""
    paths = foreign_schema_paths(checkpoint)
    if not paths or start.unknown:
        return start
    reason = f"whether {paths[0]} is still there: the checkpoint was moved or copied from there"
    note = "the start fails with FileNotFoundException when it is gone"
    return msgspec.structs.replace(start, unknown=reason, notes=(*start.notes, note))


def _look_at_format(checkpoint: Checkpoint, restart: Restart) -> Failure | None:
    """Format v2 must be asked for again before 4.3."""
    if checkpoint.commit is None or not checkpoint.state.operators:
        return None
    asked = restart.conf.get(FORMAT_VERSION, "1")
    return failures.format_mismatch(checkpoint.commit.version, int(asked == "2") + 1, restart.spark)


def _with_active_run(checkpoint: Checkpoint, restart: Restart, start: Start) -> Start:
    """A second run: in one application Spark stops the first; between two there is no lock."""
    if restart.active is None or start.failure or start.batch is None:
        return start
    if restart.active == "other":
        failure = failures.concurrent_update(start.batch)
        note = "two applications on one checkpoint: both run the batch, then one of them fails"
        return msgspec.structs.replace(
            start, failure=failure, written=(start.batch,), notes=(*start.notes, note)
        )
    if restart.conf.get(STOP_ACTIVE, "true") == "false":
        return Start(failure=failures.already_active(checkpoint.query_id))
    note = "the run that is active now will be stopped first"
    return msgspec.structs.replace(start, notes=(*start.notes, note))


def _next_after(restart: Restart, start: Start) -> int | None:
    """The batch after a replayed one; none when it fails or runs only once."""
    if start.failure or start.batch is None or not start.replayed:
        return None
    return None if restart.trigger == "once" else start.batch + 1


def _watermark(checkpoint: Checkpoint, start: Start) -> int | None:
    """The watermark that the first batch will use."""
    latest = checkpoint.latest
    if latest is None or start.batch is None or latest.watermark_ms is None:
        return None
    if start.replayed or checkpoint.commit is None:
        return latest.watermark_ms
    return max(latest.watermark_ms, checkpoint.commit.next_watermark_ms)


def find_overrides(checkpoint: Checkpoint, restart: Restart) -> tuple[Override, ...]:
    """Settings of the session (or else Spark's defaults) that the checkpoint wins over."""
    if checkpoint.latest is None or checkpoint.latest.conf is None:
        return ()
    found = []
    for key, (since, otherwise) in PINNED.items():
        if not at_least(restart.spark, since):
            continue
        if key == PARTITIONS and not checkpoint.state.operators and at_least(restart.spark, "4.1"):
            continue  # since 4.1 a shuffle without state follows the session
        pinned = checkpoint.conf.get(key, otherwise)
        session = restart.conf.get(key, DEFAULTS[key])
        if pinned is not None and pinned != session:
            found.append(Override(key, session, pinned))
    return tuple(found)


def _sink_effect(start: Start, sink: Sink | None, restart: Restart) -> str:
    if sink is None or not (start.replayed or start.duplicates):
        return ""
    late = restart.sink_batches is not None and restart.sink_batches < (start.batch or 0)
    if sink.name == "file" and late:
        return f"The output does not have batch {start.batch} yet: it is written now."
    return sink.sentence


def _assume(
    checkpoint: Checkpoint, restart: Restart, start: Start, ranges: tuple[SourceRange, ...]
) -> tuple[str, ...]:
    """What the verdict rests on and no file of the checkpoint proves."""
    found: list[str] = []
    if start.replayed and start.batch is not None:
        found += [_serve(each) for each in ranges if not each.empty]
    if restart.stateful is None and not checkpoint.state.operators and checkpoint.latest:
        found.append("the query has no stateful operator (there is no state in the checkpoint)")
    if checkpoint.state.operators and restart.stateful is not False:
        found.append("the stateful operators mean the same: Spark compares names and types alone")
    if restart.sources is None and checkpoint.latest:
        found.append(
            f"the code still has {len(checkpoint.latest.sources)} source(s), in this order"
        )
    if checkpoint.mode == "async" and restart.async_progress is None:
        found.append("async progress tracking is on again; without it the start fails")
    if checkpoint.mode == "continuous":
        found.append("the continuous trigger is used again")
    return tuple(found)


def _serve(found: SourceRange) -> str:
    if found.kind == "file":
        return (
            f"source {found.source}: its files are still there; "
            "a file that is gone is read as empty, without an error"
        )
    if found.kind == "kafka":
        return f"source {found.source}: Kafka still holds these offsets (retention)"
    return f"source {found.source}: it can still serve this range"
