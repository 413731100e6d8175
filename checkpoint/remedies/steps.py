"""The steps of each goal, written for a person to carry out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.checkpoint.restart.wording import say_assumption
from streamgauge.model.sinks import find_sink

from .goals import Proof, Step
from .reader_options import earliest_options

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint
    from streamgauge.checkpoint.restart.circumstances import Restart
    from streamgauge.checkpoint.restart.forecast import Forecast

_FORMAT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"


def resume_steps(checkpoint: Checkpoint, seen: Forecast, proof: Proof) -> tuple[Step, ...]:
    """Stop other runs, start again, check what the forecast takes for granted."""
    alone = Step(
        do="Stop every other run on this checkpoint.",
        needs="no second writer: Spark has no lock between applications",
        proof=Proof.UNPROVED,
        effect="None.",
    )
    start = Step(
        do="Start the query again with the same code, settings and checkpoint.",
        needs="the logs and the state are whole",
        proof=proof,
        effect=seen.sink_effect if seen.effect else "New batches are written once.",
        use=(
            f'.option("checkpointLocation", "{checkpoint.store.root}")',
            *_needed_settings(checkpoint),
        ),
    )
    texts = [say_assumption(each) for each in seen.premises]
    checks = [
        Step(do=f"Make sure that {text}.", needs=text, proof=Proof.UNPROVED, effect="None.")
        for text in texts
    ]
    return (alone, start, *checks)


def _needed_settings(checkpoint: Checkpoint) -> tuple[str, ...]:
    if checkpoint.commit and checkpoint.commit.version == 2:
        return (f'spark.conf.set("{_FORMAT_VERSION}", "2")  # needed before Spark 4.3',)
    return ()


def repair_steps(checkpoint: Checkpoint, file: str | None) -> tuple[Step, ...]:
    """What a person may do about the one file that stops the start; the tool writes nothing."""
    if file is None:
        return ()
    place = f"{checkpoint.store.root}/{file}"
    step = Step(
        do=f"Restore {file}.",
        needs="a copy of it from before exists",
        proof=Proof.UNPROVED,
        effect="None by itself; afterwards run `restart` on the restored checkpoint again.",
        use=(f"restore {place} from a backup or an older version of the object",),
    )
    return (step,)


def replay_steps(
    span: tuple[int, int], options: tuple[str, ...], restart: Restart
) -> tuple[Step, ...]:
    """Read a range again with a second query and a new checkpoint, into the same sink."""
    sink = find_sink(restart.sink)
    start = Step(
        do="Start a second query from there, with a new, empty checkpoint, to the same sink.",
        needs="the sources still hold the range",
        proof=Proof.UNPROVED,
        effect=sink.reset
        if sink
        else "Every row of the range is written twice, by a new query id.",
        use=('.option("checkpointLocation", "<a new path>")',),
    )
    finish = Step(
        do="When it has passed the end of the range, stop it and start the old query again.",
        needs="the old query's start is safe: see `restart`",
        proof=Proof.UNPROVED,
        effect="Rows after the range are written once more if the second query ran on past it.",
    )
    return _stop(), _take_offsets(span, options), start, finish


def backfill_steps(span: tuple[int, int], options: tuple[str, ...]) -> tuple[Step, ...]:
    """Read a closed range as a batch job, beside the stream."""
    read = Step(
        do="Read the range with spark.read (not readStream) and the query's transformations.",
        needs="the sources still hold the range",
        proof=Proof.UNPROVED,
        effect="None yet.",
    )
    write = Step(
        do="Write it by a key: MERGE, upsert, or overwrite of the partitions it covers.",
        needs="the sink can be written by key",
        proof=Proof.UNPROVED,
        effect=(
            "Rows that are there are replaced, missing ones added; a plain append doubles them."
        ),
    )
    return _take_offsets(span, options), read, write


def reset_steps(checkpoint: Checkpoint, restart: Restart) -> tuple[Step, ...]:
    """The safe order of a true reset, as a dry run."""
    root = checkpoint.store.root
    return (
        _stop(),
        _clear_output(restart),
        Step(
            do="Move the checkpoint away (delete it once the new run is known to be good).",
            needs="the query is stopped",
            proof=Proof.UNPROVED,
            effect=(
                "None; the query's identity, its offsets and its state are gone from the new run."
            ),
            use=(f"# by hand: move {root} to {root}.before-reset",),
        ),
        Step(
            do="Start from the earliest offsets, or the result has a hole.",
            needs="the sources still hold everything that the output should have",
            proof=Proof.UNPROVED,
            effect="Everything that the sources still hold is written again, from batch 0.",
            use=earliest_options(checkpoint),
        ),
        Step(
            do="Watch the first batches, then remove the old checkpoint.",
            needs="the new run has committed a batch",
            proof=Proof.UNPROVED,
            effect="None.",
            use=(f"streamgauge checkpoint show {root}",),
        ),
    )


def _clear_output(restart: Restart) -> Step:
    sink = find_sink(restart.sink)
    harm = sink.reset if sink else "What the sink holds stays, and everything is written once more."
    return Step(
        do="Clear the output, or choose a new one.",
        needs="nobody needs the old output, or it is kept elsewhere",
        proof=Proof.UNPROVED,
        effect=f"Without this step: {harm}",
    )


def _stop() -> Step:
    return Step(
        do="Stop the query.",
        needs="nothing else writes to this checkpoint or sink meanwhile",
        proof=Proof.UNPROVED,
        effect="None; a batch that was running may have been written without its commit.",
        use=("query.stop()",),
    )


def _take_offsets(span: tuple[int, int], options: tuple[str, ...]) -> Step:
    return Step(
        do=f"Take the offsets of batches {span[0]} to {span[1]}.",
        needs="both ends are in the checkpoint",
        proof=Proof.PROVED,
        effect="None.",
        use=options,
    )
