"""The forecast: what a restart on this checkpoint will do, before anyone tries it.

`forecast` reads names and a few small files and says the next batch, whether it is a replay, what
it reads, which state it needs, what the sink does with it, and a verdict. What the files can't tell
is an assumption, named as such, or makes the verdict `unknown`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streamgauge.checkpoint.reader.checkpoint import PARTITIONS, Mode, foreign_schema_paths
from streamgauge.checkpoint.reader.sources import SourceKind, SourceRange, recognise
from streamgauge.checkpoint.reader.spark_lines import DEFAULTS, PINNED, at_least
from streamgauge.model.sinks import SINKS, Sink, find_sink

from . import failures
from .causes import (
    AnyNote,
    Assumption,
    Cause,
    Doubt,
    Note,
    Premise,
    SameSources,
    SchemaElsewhere,
    SinkEffect,
    SourceServes,
)
from .circumstances import Restart
from .failures import Failure
from .ranges import find_ranges
from .start import Start, find_start
from .state_checks import StateNeed, check_state
from .state_flaws import BrokenFile, StateFlaw
from .verdict import Verdict, judge
from .wording import say_assumption, say_cause, say_note, say_sink_effect

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint

STOP_ACTIVE = "spark.sql.streaming.stopActiveRunOnRestart"
FORMAT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"


class Override(msgspec.Struct, frozen=True):
    """A setting of the session that the checkpoint silently overrides."""

    key: str
    session: str
    checkpoint: str


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. `written`: batches the sink gets before a failure; `then`: the batch after.

    Decide by `verdict`, `cause`, `remarks` and `premises`; `reason`, `notes`, `assumptions`,
    `sink_effect` and `sink_effects` are the same for people.
    """

    spark: str
    verdict: Verdict
    cause: Cause | None = None
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
    effect: SinkEffect | None = None
    premises: tuple[Assumption, ...] = ()
    remarks: tuple[AnyNote, ...] = ()

    @property
    def reason(self) -> str:
        """The cause in words; empty for a plain safe start."""
        return say_cause(self.cause)

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks in words."""
        return tuple(say_note(each) for each in self.remarks)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The premises in words."""
        return tuple(say_assumption(each) for each in self.premises)

    @property
    def sink_effect(self) -> str:
        """What the sink does with the first batch; empty where it just writes it."""
        return say_sink_effect(self.effect, find_sink(self.sink), self.batch)

    @property
    def sink_effects(self) -> dict[str, str]:
        """What each sink would do with a replayed batch, where the sink is not known."""
        if find_sink(self.sink) or not self.replayed:
            return {}
        return {name: sink.sentence for name, sink in SINKS.items()}


def forecast(checkpoint: Checkpoint, restart: Restart | None = None) -> Forecast:
    """What a restart will do. Never raises for anything the files hold."""
    restart = restart or Restart()
    sink = find_sink(restart.sink)
    start = find_start(checkpoint, restart.spark, async_progress=_is_async(checkpoint, restart))
    start = _with_memory_sink(checkpoint, restart, start)
    start = _with_source_count(checkpoint, restart, start)
    ranges = find_ranges(checkpoint, start)
    needs, start = _with_state(checkpoint, restart, start)
    start = _with_active_run(checkpoint, restart, start)
    verdict, cause = judge(restart, start, sink, needs)
    return Forecast(
        spark=restart.spark,
        verdict=verdict,
        cause=cause,
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
        effect=_find_effect(start, sink, restart),
        premises=_assume(checkpoint, restart, start, ranges),
        remarks=start.notes,
    )


def _is_async(checkpoint: Checkpoint, restart: Restart) -> bool:
    if restart.async_progress is None:
        return checkpoint.mode is Mode.ASYNC
    return restart.async_progress


def _with_memory_sink(checkpoint: Checkpoint, restart: Restart, start: Start) -> Start:
    """The memory sink refuses every checkpoint with offsets, but in complete mode."""
    recovers = (restart.output_mode or "").lower() == "complete"
    if restart.sink != "memory" or recovers or not checkpoint.offsets.present:
        return start
    if restart.output_mode is None:
        return msgspec.structs.replace(start, unknown=Doubt.OUTPUT_MODE)
    return Start(failure=failures.memory_sink())


def _with_source_count(checkpoint: Checkpoint, restart: Restart, start: Start) -> Start:
    latest = checkpoint.latest
    if restart.sources is None or latest is None or start.failure:
        return start
    if latest.version == 1 and len(latest.sources) != restart.sources:
        return Start(failure=failures.source_count(len(latest.sources), restart.sources))
    return start


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
            failure = _fail_on(need.broken[0], line)
            return needs, msgspec.structs.replace(start, failure=failure)
    return needs, _with_foreign_schemas(checkpoint, start)


def _fail_on(broken: BrokenFile, line: str) -> Failure:
    wrong_size = broken.flaw is StateFlaw.WRONG_SIZE
    return failures.broken_state(
        broken.file,
        line,
        lacks_sst=broken.flaw is StateFlaw.MISSING_SST,
        checksum=wrong_size and not broken.file.endswith(".zip"),
    )


def _with_foreign_schemas(checkpoint: Checkpoint, start: Start) -> Start:
    """A transformWithState names its schema files by absolute paths; a move leaves them behind."""
    paths = foreign_schema_paths(checkpoint)
    if not paths or start.unknown:
        return start
    notes = (*start.notes, Note.FAILS_WITHOUT_SCHEMA)
    return msgspec.structs.replace(start, unknown=SchemaElsewhere(paths[0]), notes=notes)


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
        return msgspec.structs.replace(
            start,
            failure=failures.concurrent_update(start.batch),
            written=(start.batch,),
            notes=(*start.notes, Note.TWO_APPLICATIONS),
        )
    if restart.conf.get(STOP_ACTIVE, "true") == "false":
        return Start(failure=failures.already_active(checkpoint.query_id))
    return msgspec.structs.replace(start, notes=(*start.notes, Note.ACTIVE_RUN_STOPS))


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


def _find_effect(start: Start, sink: Sink | None, restart: Restart) -> SinkEffect | None:
    if sink is None or not (start.replayed or start.duplicates):
        return None
    late = restart.sink_batches is not None and restart.sink_batches < (start.batch or 0)
    if sink.name == "file" and late:
        return SinkEffect.WRITTEN_NOW
    return SinkEffect.AS_ON_REPLAY


def _assume_snapshots(checkpoint: Checkpoint) -> list[Assumption]:
    """Iceberg looks up the snapshot that it read last, also when nothing is replayed."""
    return [
        SourceServes(each.source, SourceKind.ICEBERG)
        for each in (checkpoint.latest.sources if checkpoint.latest else ())
        if recognise(each.offset) is SourceKind.ICEBERG
    ]


def _assume(
    checkpoint: Checkpoint, restart: Restart, start: Start, ranges: tuple[SourceRange, ...]
) -> tuple[Assumption, ...]:
    """What the verdict rests on and no file of the checkpoint proves."""
    found: list[Assumption] = []
    if start.replayed and start.batch is not None:
        found += [SourceServes(each.source, each.kind) for each in ranges if not each.empty]
    else:
        found += _assume_snapshots(checkpoint)
    if restart.stateful is None and not checkpoint.state.operators and checkpoint.latest:
        found.append(Premise.NO_STATEFUL_OPERATOR)
    if checkpoint.state.operators and restart.stateful is not False:
        found.append(Premise.OPERATORS_MEAN_THE_SAME)
    if restart.sources is None and checkpoint.latest:
        found.append(SameSources(len(checkpoint.latest.sources)))
    if checkpoint.mode is Mode.ASYNC and restart.async_progress is None:
        found.append(Premise.ASYNC_AGAIN)
    if checkpoint.mode is Mode.CONTINUOUS:
        found.append(Premise.CONTINUOUS_AGAIN)
    return tuple(found)
