"""The five verdicts, and how a start comes by one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgauge.model.sinks import Sink

    from .restart import Restart
    from .start import Start
    from .state_checks import StateNeed

SAFE, DUPLICATES, LOSS = "safe", "safe with duplicates", "loses data"
FAILS, UNKNOWN = "will fail", "unknown"


def judge(
    restart: Restart, start: Start, sink: Sink | None, needs: list[StateNeed]
) -> tuple[str, str]:
    """The verdict and its reason, from where the start begins, the sink and the state."""
    if start.failure:
        return FAILS, start.failure.error
    if start.unknown:
        return UNKNOWN, start.unknown
    unproved = [text for need in needs for text in need.unproved]
    if unproved:
        return UNKNOWN, unproved[0]
    skipped = _skipped_by_sink(restart, start, sink)
    if skipped:
        return LOSS, skipped
    if start.batch == 0 and not (start.replayed or start.duplicates):
        return _judge_first(restart, sink)
    if not (start.replayed or start.duplicates):
        return (DUPLICATES, start.notes[0]) if _goes_back(start) else (SAFE, "")
    return _judge_replay(start, sink, restart)


def _judge_first(restart: Restart, sink: Sink | None) -> tuple[str, str]:
    """An empty checkpoint: a first start, or one whose checkpoint was deleted."""
    if sink and (sink.name in ("memory", "console", "noop") or restart.sink_batches == -1):
        return SAFE, "a first start"
    return (
        UNKNOWN,
        "whether an earlier run has written to the sink: everything is read from the start",
    )


def _goes_back(start: Start) -> bool:
    return any("goes on from batch" in note for note in start.notes)


def _skipped_by_sink(restart: Restart, start: Start, sink: Sink | None) -> str:
    """New data that a file sink will take for old, since its log is ahead of the checkpoint."""
    if sink is None or sink.name != "file" or restart.sink_batches is None or start.batch is None:
        return ""
    if start.replayed or restart.sink_batches < start.batch:
        return ""
    return (
        f"the file sink has batches up to {restart.sink_batches} and silently skips "
        f"{start.batch} to {restart.sink_batches}"
    )


def _judge_replay(start: Start, sink: Sink | None, restart: Restart) -> tuple[str, str]:
    what = f"batch {start.batch} may have been written already"
    if sink is None:
        return UNKNOWN, f"what the sink does with batch {start.batch} again (--sink)"
    if sink.name == "delta" and start.new_identity:
        return DUPLICATES, "the new query id defeats Delta's memory of its batches"
    if sink.name == "file" and restart.sink_batches is None and start.batch == 0:
        return UNKNOWN, "whether the output has a `_spark_metadata` of an earlier run (--output)"
    if sink.idempotent and not (start.batch == 0 and not start.replayed):
        return SAFE, f"{what}; the sink {sink.replay}"
    return DUPLICATES, f"{what}; {sink.name} {sink.replay}"
