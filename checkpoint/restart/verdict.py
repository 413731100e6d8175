"""The five verdicts, and how a start comes by one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.checkpoint.reader.text_enum import TextEnum
from streamgauge.model.sinks import REMEMBER_BY_QUERY, Sink

from .causes import (
    BatchAgain,
    BatchesSkipped,
    Cause,
    Doubt,
    FirstStart,
    LostIdentity,
    SinkUnknown,
    SourceGoesBack,
)

if TYPE_CHECKING:
    from .circumstances import Restart
    from .start import Start
    from .state_checks import StateNeed


class Verdict(TextEnum):
    """What a restart does to the data."""

    SAFE = "safe"
    DUPLICATES = "safe with duplicates"
    LOSS = "loses data"
    FAILS = "will fail"
    UNKNOWN = "unknown"


Judgement = tuple[Verdict, Cause | None]


def judge(restart: Restart, start: Start, sink: Sink | None, needs: list[StateNeed]) -> Judgement:
    """The verdict and its cause, from where the start begins, the sink and the state."""
    if start.failure:
        return Verdict.FAILS, start.failure
    if start.unknown:
        return Verdict.UNKNOWN, start.unknown
    unproved = [each for need in needs for each in need.unproved]
    if unproved:
        return Verdict.UNKNOWN, unproved[0]
    skipped = _skipped_by_sink(restart, start, sink)
    if skipped:
        return Verdict.LOSS, skipped
    if start.replayed or start.duplicates:
        return _judge_replay(start, sink, restart)
    if start.batch == 0:
        return _judge_first(restart, sink)
    if any(isinstance(note, SourceGoesBack) for note in start.notes):
        return Verdict.DUPLICATES, start.notes[0]
    return Verdict.SAFE, None


def _judge_first(restart: Restart, sink: Sink | None) -> Judgement:
    """An empty checkpoint: a first start, or one whose checkpoint was deleted."""
    if sink and (sink.name in ("memory", "console", "noop") or restart.sink_batches == -1):
        return Verdict.SAFE, FirstStart()
    return Verdict.UNKNOWN, Doubt.EARLIER_RUN


def _skipped_by_sink(restart: Restart, start: Start, sink: Sink | None) -> BatchesSkipped | None:
    """New data that a file sink will take for old, since its log is ahead of the checkpoint."""
    if sink is None or sink.name != "file" or restart.sink_batches is None or start.batch is None:
        return None
    if start.replayed or restart.sink_batches < start.batch:
        return None
    return BatchesSkipped(start.batch, restart.sink_batches)


def _judge_replay(start: Start, sink: Sink | None, restart: Restart) -> Judgement:
    if sink is None:
        return Verdict.UNKNOWN, SinkUnknown(start.batch)
    if sink.name in REMEMBER_BY_QUERY and start.new_identity:
        return Verdict.DUPLICATES, LostIdentity(sink.name)
    if sink.name == "file" and restart.sink_batches is None and start.batch == 0:
        return Verdict.UNKNOWN, Doubt.OUTPUT_LOG
    if sink.idempotent and not (start.batch == 0 and not start.replayed):
        return Verdict.SAFE, BatchAgain(start.batch, sink.name, skipped=True)
    return Verdict.DUPLICATES, BatchAgain(start.batch, sink.name, skipped=False)
