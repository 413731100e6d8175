"""The remedy, step by step, for this very query: resume, replay, backfill or reset.

It only prints. Every step says what must be true before it and whether the files prove it, what it
does to the sink's data, and the option or command to use.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.model.sinks import find_sink

from .forecast import Forecast, forecast
from .restart import Restart
from .source_checks import log_offset
from .sources import decode_offset, read_paths, recognise
from .verdict import DUPLICATES, FAILS, LOSS, SAFE, UNKNOWN

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

GOALS = ("resume", "replay", "backfill", "reset")
PROVED, UNPROVED = "proved", "unproved"
MOST_FILES = 20


class Step(msgspec.Struct, frozen=True):
    """One step: what to do, what must hold before it, what it does to the sink's data."""

    do: str
    needs: str
    proof: str
    effect: str
    use: tuple[str, ...] = ()


class Goal(msgspec.Struct, frozen=True):
    """One way out: whether the files allow it, why, and its steps."""

    goal: str
    possible: bool | None
    why: str
    steps: tuple[Step, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """The goals asked for, and the least harmful of all."""

    root: str
    advice: str
    goals: tuple[Goal, ...]
    forecast: Forecast


def make_plan(
    checkpoint: Checkpoint,
    goal: str | None = None,
    restart: Restart | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
) -> Plan:
    """Plan one goal, or say of each whether it is possible. `first`, `last`: batches to read again."""
    restart = restart or Restart()
    seen = forecast(checkpoint, restart)
    span = choose_span(checkpoint, first, last)
    everything = (
        _resume(checkpoint, seen),
        _replay(checkpoint, restart, span),
        _backfill(checkpoint, span),
        _reset(checkpoint, restart),
    )
    wanted = tuple(each for each in everything if goal in (None, each.goal))
    return Plan(checkpoint.store.root, _advise(seen, everything), wanted, seen)


def choose_span(
    checkpoint: Checkpoint, first: int | None, last: int | None
) -> tuple[int, int] | None:
    """The batches to read again: those asked for, else the last planned one."""
    newest = checkpoint.offsets.latest
    if newest is None:
        return None
    last = newest if last is None else last
    return (last if first is None else first), last


def _advise(seen: Forecast, goals: tuple[Goal, ...]) -> str:
    """The least harmful goal that the files allow."""
    if seen.verdict == SAFE:
        return "resume: a plain restart is safe"
    if seen.verdict == DUPLICATES:
        return f"resume, and expect batch {seen.batch} twice: {seen.reason}"
    if seen.verdict == UNKNOWN:
        return f"find out first: {seen.reason}"
    if seen.verdict == LOSS:
        return f"reset with a cleared or new output: {seen.reason}"
    possible = [each.goal for each in goals if each.possible and each.goal != "resume"]
    return (
        f"not resume ({seen.reason}); least harmful of what is left: {possible[0]}"
        if possible
        else (f"nothing safe is left: a start fails with {seen.reason}")
    )


def _resume(checkpoint: Checkpoint, seen: Forecast) -> Goal:
    possible = {SAFE: True, DUPLICATES: True, LOSS: True, FAILS: False}.get(seen.verdict)
    why = f"{seen.verdict}{': ' if seen.reason else ''}{seen.reason}"
    if possible is False:
        return Goal("resume", possible=False, why=why, steps=_repair(checkpoint, seen))
    effect = seen.sink_effect or "New batches are written once."
    steps = [
        Step(
            "Stop every other run on this checkpoint.",
            "no second writer: Spark has no lock between applications",
            UNPROVED,
            "None.",
        ),
        Step(
            "Start the query again with the same code, settings and checkpoint.",
            "the logs and the state are whole",
            PROVED if possible else UNPROVED,
            effect,
            (
                f'.option("checkpointLocation", "{checkpoint.store.root}")',
                *_needed_settings(checkpoint),
            ),
        ),
    ]
    steps += [Step(f"Make sure that {text}.", text, UNPROVED, "None.") for text in seen.assumptions]
    return Goal("resume", possible, why, tuple(steps))


def _needed_settings(checkpoint: Checkpoint) -> tuple[str, ...]:
    if checkpoint.commit and checkpoint.commit.version == 2:
        key = "spark.sql.streaming.stateStore.checkpointFormatVersion"
        return (f'spark.conf.set("{key}", "2")  # needed before Spark 4.3',)
    return ()


def _repair(checkpoint: Checkpoint, seen: Forecast) -> tuple[Step, ...]:
    """What a person may do about the one file that stops the start; the tool writes nothing."""
    file = seen.failure.file if seen.failure else None
    if file is None:
        return ()
    effect = "None by itself; afterwards run `restart` on the restored checkpoint again."
    use = (
        f"restore {checkpoint.store.root}/{file} from a backup or an older version of the object",
    )
    return (Step(f"Restore {file}.", "a copy of it from before exists", UNPROVED, effect, use),)


def _replay(checkpoint: Checkpoint, restart: Restart, span: tuple[int, int] | None) -> Goal:
    """Read a range again with a second query and a new checkpoint, into the same sink."""
    options = starting_options(checkpoint, span)
    if span is None or options is None:
        return Goal("replay", possible=False, why=_NOT_KEPT)
    sink = find_sink(restart.sink)
    effect = sink.reset if sink else "Every row of the range is written twice, by a new query id."
    possible, why = _judge_state(checkpoint, f"offsets of batches {span[0]} to {span[1]} are kept")
    steps = (
        _stop(),
        _take_offsets(span, options),
        Step(
            "Start a second query from there, with a new, empty checkpoint, to the same sink.",
            "the sources still hold the range",
            UNPROVED,
            effect,
            ('.option("checkpointLocation", "<a new path>")',),
        ),
        Step(
            "When it has passed the end of the range, stop it and start the old query again.",
            "the old query's start is safe: see `restart`",
            UNPROVED,
            "Rows after the range are written once more if the second query ran on past it.",
        ),
    )
    return Goal("replay", possible, why, steps)


def _backfill(checkpoint: Checkpoint, span: tuple[int, int] | None) -> Goal:
    """Read a closed range as a batch job, beside the stream."""
    options = starting_options(checkpoint, span, end=True)
    if span is None or options is None:
        return Goal("backfill", possible=False, why=_NOT_KEPT)
    possible, why = _judge_state(
        checkpoint, f"batches {span[0]} to {span[1]} can be read beside the running stream"
    )
    steps = (
        _take_offsets(span, options),
        Step(
            "Read the range with spark.read (not readStream) and the query's transformations.",
            "the sources still hold the range",
            UNPROVED,
            "None yet.",
        ),
        Step(
            "Write it by a key: MERGE, upsert, or overwrite of the partitions it covers.",
            "the sink can be written by key",
            UNPROVED,
            "Rows that are there are replaced, missing ones added; a plain append doubles them.",
        ),
    )
    return Goal("backfill", possible, why, steps)


_NOT_KEPT = "the offsets of this range are not in the checkpoint"


def _judge_state(checkpoint: Checkpoint, why: str) -> tuple[bool | None, str]:
    """A range alone does not rebuild state."""
    if not checkpoint.state.operators:
        return True, why
    return None, f"{why}, but the query keeps state, which rows of this range alone do not rebuild"


def _take_offsets(span: tuple[int, int], options: tuple[str, ...]) -> Step:
    return Step(
        f"Take the offsets of batches {span[0]} to {span[1]}.",
        "both ends are in the checkpoint",
        PROVED,
        "None.",
        options,
    )


def starting_options(
    checkpoint: Checkpoint, span: tuple[int, int] | None, *, end: bool = False
) -> tuple[str, ...] | None:
    """Reader options that start (and end) where the checkpoint's batches do; None when unknown."""
    if span is None:
        return None
    before = checkpoint.offsets_of(span[0] - 1) if span[0] > 0 else None
    after = checkpoint.offsets_of(span[1])
    if after is None or (before is None and span[0] > 0):
        return None
    lines: list[str] = []
    for each in after.sources:
        start = before.of(each.source) if before else None
        if recognise(each.offset) == "file":
            lines += _list_files(checkpoint, each.source, start, each.offset)
        else:
            lines += _source_options(each.source, start, each.offset, end=end)
    return tuple(lines)


def _list_files(
    checkpoint: Checkpoint, source: str, start: str | None, stop: str | None
) -> list[str]:
    """The files of a range, for spark.read; a stream has no option for them."""
    first, last = log_offset(start) + 1, log_offset(stop)
    log = checkpoint.sources.get(source)
    paths = read_paths(checkpoint.store, log, first, last)[0] if log else []
    shown = [f"#   {path}" for path in paths[:MOST_FILES]]
    if len(paths) > MOST_FILES:
        shown.append(f"#   … and {len(paths) - MOST_FILES} files more")
    return [
        f"# source {source}: {len(paths)} file(s), entries {first} to {last} of its log",
        *shown,
    ]


def _source_options(source: str, start: str | None, stop: str | None, *, end: bool) -> list[str]:
    kind = recognise(stop)
    if kind == "kafka":
        first = _quote(start) if start else "earliest"
        lines = [f".option(\"startingOffsets\", '{first}')  # source {source}"]
        if end:
            lines.append(f".option(\"endingOffsets\", '{_quote(stop)}')")
        return lines
    if kind == "delta":
        version = _member(start, "reservoirVersion")
        lines = [
            f'.option("startingVersion", "{0 if version is None else version}")  # source {source}'
        ]
        if end:
            lines.append(f'.option("endingVersion", "{_member(stop, "reservoirVersion")}")')
        return lines
    return [f"# source {source} ({kind}): from {start or 'its beginning'} to {stop}"]


def _quote(offset: str | None) -> str:
    return json.dumps(decode_offset(offset), separators=(",", ":"), sort_keys=True)


def _member(offset: str | None, key: str) -> Any:
    value = decode_offset(offset)
    return value.get(key) if isinstance(value, dict) else None


def _stop() -> Step:
    return Step(
        "Stop the query.",
        "nothing else writes to this checkpoint or sink meanwhile",
        UNPROVED,
        "None; a batch that was running may have been written without its commit.",
        ("query.stop()",),
    )


def _reset(checkpoint: Checkpoint, restart: Restart) -> Goal:
    """The safe order of a true reset, as a dry run."""
    sink = find_sink(restart.sink)
    harm = sink.reset if sink else "What the sink holds stays, and everything is written once more."
    root = checkpoint.store.root
    earliest = [
        f'.option("startingOffsets", "earliest")  # source {each.source}'
        for each in (checkpoint.latest.sources if checkpoint.latest else ())
        if recognise(each.offset) == "kafka"
    ]
    steps = (
        _stop(),
        Step(
            "Clear the output, or choose a new one.",
            "nobody needs the old output, or it is kept elsewhere",
            UNPROVED,
            f"Without this step: {harm}",
        ),
        Step(
            "Move the checkpoint away (delete it once the new run is known to be good).",
            "the query is stopped",
            UNPROVED,
            "None; the query's identity, its offsets and its state are gone from the new run.",
            (f"# by hand: move {root} to {root}.before-reset",),
        ),
        Step(
            "Start from the earliest offsets, or the result has a hole.",
            "the sources still hold everything that the output should have",
            UNPROVED,
            "Everything that the sources still hold is written again, from batch 0.",
            tuple(earliest),
        ),
        Step(
            "Watch the first batches, then remove the old checkpoint.",
            "the new run has committed a batch",
            UNPROVED,
            "None.",
            (f"streamgauge checkpoint show {root}",),
        ),
    )
    return Goal("reset", possible=True, why="always possible; the most harmful", steps=steps)
