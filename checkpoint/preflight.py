"""Compare the new code with the checkpoint, before production does.

Each difference is a finding with one of four effects: `allowed`, `ignored` (Spark keeps to the
checkpoint), `silently wrong` or `fails`; `unknown` where one side does not say. The forecast for
the same start is part of the answer.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from . import failures
from .checkpoint import Checkpoint, read_checkpoint
from .describe import describe
from .forecast import Forecast, forecast
from .lines import NEWEST, at_least
from .preflight_sources import compare_sources
from .restart import Restart
from .sink_log import read_sink_batches
from .verdict import FAILS, LOSS, SAFE, UNKNOWN

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from .description import Description, OperatorDescription
    from .failures import Failure
    from .state import Operator

ALLOWED, IGNORED, WRONG, FAILING, UNTOLD = (
    "allowed",
    "ignored",
    "silently wrong",
    "fails",
    "unknown",
)


class Finding(msgspec.Struct, frozen=True):
    """One difference: what it is about, what it does, by which rule."""

    rule: str
    effect: str
    what: str
    failure: Failure | None = None


class Preflight(msgspec.Struct, frozen=True):
    """All findings and the forecast of the same start."""

    verdict: str
    reason: str
    findings: tuple[Finding, ...]
    forecast: Forecast

    @property
    def status(self) -> int:
        """0 allowed, 1 duplicates, loss or failure, 2 could not tell."""
        if self.verdict == UNKNOWN:
            return 2
        return 0 if self.verdict == SAFE else 1


def preflight(
    checkpoint: Checkpoint,
    plan: Description,
    *,
    spark: str | None = None,
    sink_batches: int | None = None,
    active: str | None = None,
) -> Preflight:
    """Compare a described query with a checkpoint."""
    line = spark or plan.spark or NEWEST
    restart = restart_of(plan, line, sink_batches)
    expected = forecast(checkpoint, msgspec.structs.replace(restart, active=active))
    findings = (
        *(Finding(*each) for each in compare_sources(checkpoint, plan)),
        *_compare_operators(checkpoint, plan, line),
        *(
            Finding("pinned setting", IGNORED, f"{each.key}: {each.session} → {each.checkpoint}")
            for each in expected.overridden
        ),
        *_compare_sink(plan),
    )
    verdict, reason, failure = _judge(expected, findings)
    if failure is not expected.failure:
        expected = msgspec.structs.replace(
            expected, verdict=FAILS, reason=reason, failure=failure, then=None
        )
    return Preflight(verdict, reason, findings, expected)


def preflight_query(
    streaming_df: Any,
    checkpoint: str | os.PathLike[str] | Checkpoint,
    *,
    sink: str | None = None,
    output: str | None = None,
    output_mode: str | None = None,
    trigger: str | None = None,
    options: dict[str, str] | None = None,
) -> Preflight:
    """Describe a streaming DataFrame and compare it with a checkpoint, in one call.

    For a test or a deploy script; starts nothing. `output` is the file sink's directory.
    """
    plan = describe(
        streaming_df,
        sink=sink,
        output=output,
        output_mode=output_mode,
        trigger=trigger,
        options=options,
    )
    read = checkpoint if isinstance(checkpoint, Checkpoint) else read_checkpoint(checkpoint)
    return preflight(read, plan, sink_batches=None if output is None else read_sink_batches(output))


def restart_of(plan: Description, line: str, sink_batches: int | None = None) -> Restart:
    """The circumstances of a start, as the description gives them."""
    return Restart(
        spark=line,
        sink=plan.sink,
        output_mode=plan.output_mode,
        trigger=plan.trigger,
        conf=plan.conf,
        async_progress=plan.async_progress,
        sink_batches=sink_batches,
        sources=None if plan.sources is None else len(plan.sources),
        stateful=None if plan.operators is None else bool(plan.operators),
    )


def _judge(expected: Forecast, findings: tuple[Finding, ...]) -> tuple[str, str, Failure | None]:
    """The worst of the forecast and the findings; what stops the start first comes first."""
    if expected.failure and not _later(expected):
        return expected.verdict, expected.reason, expected.failure
    for finding in findings:
        if finding.effect == FAILING:
            return (
                FAILS,
                finding.failure.error if finding.failure else finding.what,
                finding.failure,
            )
    if expected.failure:
        return expected.verdict, expected.reason, expected.failure
    for finding in findings:
        if finding.effect == WRONG:
            return LOSS, finding.what, None
    if expected.verdict == SAFE:
        untold = next((each for each in findings if each.effect == UNTOLD), None)
        if untold:
            return UNKNOWN, untold.what, None
    return expected.verdict, expected.reason, None


def _later(expected: Forecast) -> bool:
    """Whether the forecast's failure comes only once the plan is made: in the tasks."""
    return expected.failure is not None and expected.failure.when.startswith("in the tasks")


def _compare_operators(checkpoint: Checkpoint, plan: Description, line: str) -> list[Finding]:
    if plan.operators is None:
        if checkpoint.state.operators:
            return [Finding("stateful operators", UNTOLD, "which stateful operators the code has")]
        return []
    before, now = checkpoint.state.operators, plan.operators
    if not before or checkpoint.offsets.latest is None:
        return []
    found = _compare_names(before, now, line)
    if found:
        return found
    findings = []
    for old, new in zip(before, now, strict=False):
        findings += _compare_schema(old, new, line)
    return findings


def _compare_names(
    before: tuple[Operator, ...], now: list[OperatorDescription], line: str
) -> list[Finding]:
    old = [each.name for each in before]
    new = [each.name for each in now]
    rule = "stateful operators"
    if "unknown" not in old and at_least(line, "4.0"):
        if Counter(old) == Counter(new):
            return []
        what = f"the checkpoint has {', '.join(old)}; the code has {', '.join(new) or 'none'}"
        return [Finding(rule, FAILING, what, failures.operator_mismatch())]
    if not new:
        what = "the code has no stateful operator any more; the state is left behind"
        return [Finding(rule, WRONG, what)]
    if len(new) > len(old):
        what = f"the checkpoint has state of {len(old)} operator(s), the code has {len(new)}"
        return [Finding(rule, FAILING, what, failures.missing_operator_state(len(old)))]
    if len(new) < len(old):
        what = f"state of {len(old) - len(new)} operator(s) is left behind"
        return [Finding(rule, WRONG, what)]
    return []


def _compare_schema(old: Operator, new: OperatorDescription, line: str) -> list[Finding]:
    """Key and value types, as Spark compares them; names, which it does not look at."""
    if old.schema is None or old.keyless:
        return []
    findings = []
    for part, types, names in (
        ("key", new.key_types, new.key_names),
        ("value", new.value_types, new.value_names),
    ):
        if types is None:
            if part == "key":
                what = f"the types of the {part} of {new.name}"
                findings.append(Finding("state schema", UNTOLD, what))
            continue
        logged = old.schema.types(part)
        if Counter(types) != Counter(logged) or (_in_order(new, part) and types != logged):
            what = f"{part} of {new.name}: {_show(logged)} in the checkpoint, {_show(types)} now"
            failure = failures.schema_mismatch(part, line)
            findings.append(Finding(f"state {part} schema", FAILING, what, failure))
        elif names and None not in names and Counter(names) != Counter(old.schema.names(part)):
            what = (
                f"{part} of {new.name}: {_show(old.schema.names(part))} before, {_show(names)} now"
            )
            text = f"{what}; right only if it is a mere rename, since Spark compares types alone"
            findings.append(Finding("state names", UNTOLD, text))
    return findings


def _in_order(new: OperatorDescription, part: str) -> bool:
    """Whether the order of columns is known before planning."""
    return part == "key" and not new.name.startswith(("dedupe", "symmetricHashJoin"))


def _show(types: Sequence[str | None]) -> str:
    return f"({', '.join(str(each) for each in types)})"


def _compare_sink(plan: Description) -> list[Finding]:
    if plan.sink is None:
        return []
    what = f"sink {plan.sink}, mode {plan.output_mode or 'unknown'}: Spark does not compare sinks"
    return [Finding("sink", ALLOWED, what)]
