"""Set a forecast against what Spark then did: batches, rows, error, verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forecast_lab import BATCHES
from forecast_shapes import SHAPES
from forecast_spark import ROWS, new_session

from streamgauge.checkpoint.preflight_check.compare import Preflight, preflight
from streamgauge.checkpoint.preflight_check.describe import describe
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.sink_log import read_sink_batches
from streamgauge.checkpoint.restart.causes import BatchAgain

if TYPE_CHECKING:
    from forecast_bases import Place
    from forecast_case import Case
    from forecast_lab import Laboratory
    from forecast_spark import Outcome

STATELESS = ("plain", "at-once", "filtered", "projected")


@dataclass(frozen=True)
class Row:
    """One line of the table; `disagreements` is empty when the forecast was right."""

    case: str
    forecast: str
    fact: str
    disagreements: tuple[str, ...]
    unknown: bool


def foresee(lab: Laboratory, case: Case, place: Place) -> Preflight:
    """The forecast, from the checkpoint's files and the description of the code alone."""
    base = lab.bases[case.base]
    conf = base.conf if case.conf is None else base.conf | case.conf
    session = new_session(lab.spark, conf)
    settings = base.run | case.run
    sink = settings.get("sink", "foreachBatch")
    plan = describe(
        SHAPES[case.query or base.query](session, place.folder),
        sink=sink,
        output_mode=settings.get("mode", "append"),
        trigger=next(iter(case.run.get("trigger", {"availableNow": True}))),
        options=settings.get("options", {}),
    )
    batches = read_sink_batches(place.output) if place.output.is_dir() else -1
    return preflight(
        read_checkpoint(place.checkpoint),
        plan,
        sink_batches=batches if sink == "parquet" else None,
        active=case.active and ("other" if case.active == "other" else "same"),
    )


def compare(lab: Laboratory, case: Case) -> Row:
    """Foresee, then really restart, then compare."""
    place = lab.prepare(case)
    other = lab.activate(case, place)
    try:
        expected = foresee(lab, case, place)
        outcome = lab.restart(case, place)
        wrong = tuple(find_disagreements(lab, case, expected, outcome))
        if other is not None and case.active == "same" and other.isActive != outcome.failed:
            wrong += ("the other run was not treated as foreseen",)
    finally:
        if other is not None:
            other.stop()
    return Row(case.id, tell(expected), tell_fact(outcome), wrong, expected.verdict == "unknown")


def find_disagreements(
    lab: Laboratory, case: Case, expected: Preflight, outcome: Outcome
) -> list[str]:
    """Everything in which the forecast was wrong."""
    wrong = []
    if expected.verdict == "unknown" and outcome.failed:
        return wrong
    batches = expected_batches(expected)
    if outcome.batches[: len(batches)] != batches or (
        outcome.failed and outcome.batches != batches
    ):
        wrong.append(f"batches {batches} foreseen, {outcome.batches} ran")
    failure = expected.forecast.failure
    if bool(failure) != outcome.failed:
        wrong.append(
            f"foreseen {expected.verdict} {expected.reason}, Spark: {outcome.error() or 'fine'}"
        )
    elif failure and not names(failure, outcome):
        wrong.append(f"error {failure} foreseen, Spark: {outcome.error()}")
    rows = expected_rows(expected)
    if rows is not None and outcome.rows[:1] != [rows] and is_stateless(lab, case):
        wrong.append(f"{rows} rows foreseen in the first batch, {outcome.rows} written")
    fact = verdict_of(lab, case, outcome)
    if fact is not None and expected.verdict not in (fact, "unknown"):
        wrong.append(f"verdict {expected.verdict} foreseen, fact: {fact}")
    return wrong


def names(failure: Any, outcome: Outcome) -> bool:
    """Whether the chain of causes has the foreseen error and the words of its message."""
    wanted = {failure.error, *failure.instead}
    named = any(
        condition in wanted
        or name.rsplit(".", 1)[-1].rsplit("$", 1)[-1] in wanted
        or f"[{failure.error}" in text
        for name, condition, text in outcome.causes
    )
    return named and any(failure.message in text for _, _, text in outcome.causes)


def expected_batches(expected: Preflight) -> list[int]:
    """The batches that the sink will be handed first."""
    seen = expected.forecast
    if seen.failure:
        return list(seen.written)
    return [each for each in (seen.batch, seen.then) if each is not None]


def expected_rows(expected: Preflight) -> int | None:
    """Rows that a replayed batch will write, where the files tell."""
    seen = expected.forecast
    if not seen.replayed or seen.failure:
        return None
    if seen.sink == "file" and isinstance(seen.cause, BatchAgain) and seen.cause.skipped:
        return 0
    paths = [path for each in seen.ranges for path in each.paths]
    if paths and not any("gone" in path for path in paths):
        return ROWS * len(paths)
    rows = [each.rows for each in seen.ranges]
    return None if None in rows or paths else sum(row for row in rows if row is not None)


def is_stateless(lab: Laboratory, case: Case) -> bool:
    """Whether the rows written are the rows read."""
    query = case.query or lab.bases[case.base].query
    return query in (*STATELESS, "two-sources", "rate-micro-batch")


def verdict_of(lab: Laboratory, case: Case, outcome: Outcome) -> str | None:
    """What happened to the data, counted; None where rows can't be counted (noop, rate)."""
    if outcome.failed:
        return "will fail"
    base = lab.bases[case.base]
    sink = (base.run | case.run).get("sink", "foreachBatch")
    if sink in ("memory", "noop"):
        return "safe"
    if base.query == "rate-micro-batch":
        return "safe with duplicates" if outcome.batches[0] in lab.done(case.base) else "safe"
    if (case.query or base.query) in STATELESS:
        total = ROWS * BATCHES + 2
        written = sum(outcome.rows) + (ROWS * BATCHES if base.query in STATELESS else 0)
        if written == total:
            return "safe"
        return "safe with duplicates" if written > total else "loses data"
    again = [each for each in outcome.batches if each in lab.done(case.base)]
    return "safe with duplicates" if again else "safe"


def tell(expected: Preflight) -> str:
    """The forecast in one cell."""
    seen = expected.forecast
    head = expected.verdict + (f": {expected.reason}" if expected.verdict == "will fail" else "")
    batches = expected_batches(expected)
    kind = "replay " if seen.replayed else ""
    return f"{head}; {kind}{batches}" if batches else head


def tell_fact(outcome: Outcome) -> str:
    """What Spark did in one cell."""
    ran = " ".join(
        f"{batch}:{rows}" for batch, rows in zip(outcome.batches[:6], outcome.rows, strict=False)
    )
    if not outcome.failed:
        return f"ran {ran}"
    name, condition, _ = next(
        (cause for cause in reversed(outcome.causes) if cause[1] not in (None, "STREAM_FAILED")),
        outcome.causes[-1],
    )
    return (f"ran {ran}, then " if ran else "") + (condition or name.rsplit(".", 1)[-1])
