"""Compare the new code with the checkpoint, before production does.

Each difference is a finding with one of four effects: `allowed`, `ignored` (Spark keeps to the
checkpoint), `silently wrong` or `fails`; `unknown` where one side does not say. The forecast for
the same start is part of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.checkpoint.reader.checkpoint import Checkpoint, read_checkpoint
from streamgauge.checkpoint.reader.sink_log import read_sink_batches
from streamgauge.checkpoint.reader.spark_lines import NEWEST
from streamgauge.checkpoint.restart.causes import Cause
from streamgauge.checkpoint.restart.circumstances import Restart
from streamgauge.checkpoint.restart.failures import Failure
from streamgauge.checkpoint.restart.forecast import Forecast, forecast
from streamgauge.checkpoint.restart.verdict import Verdict
from streamgauge.checkpoint.restart.wording import say_cause

from .describe import describe
from .differences import SinkNamed
from .findings import Effect, Finding, Rule
from .operator_differences import compare_operators
from .source_differences import compare_sources

if TYPE_CHECKING:
    import os

    from .description import Description


class Preflight(msgspec.Struct, frozen=True):
    """All findings and the forecast of the same start."""

    verdict: Verdict
    cause: Cause | Finding | None
    findings: tuple[Finding, ...]
    forecast: Forecast

    @property
    def reason(self) -> str:
        """The cause in words; empty for a plain safe start."""
        return self.cause.what if isinstance(self.cause, Finding) else say_cause(self.cause)

    @property
    def status(self) -> int:
        """0 allowed, 1 duplicates, loss or failure, 2 could not tell."""
        if self.verdict is Verdict.UNKNOWN:
            return 2
        return 0 if self.verdict is Verdict.SAFE else 1


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
        *compare_sources(checkpoint, plan),
        *compare_operators(checkpoint, plan, line),
        *(Finding(Rule.PINNED_SETTING, Effect.IGNORED, each) for each in expected.overridden),
        *_compare_sink(plan),
    )
    verdict, cause = _judge(expected, findings)
    if isinstance(cause, Failure) and cause is not expected.failure:
        expected = msgspec.structs.replace(
            expected, verdict=verdict, cause=cause, failure=cause, then=None
        )
    return Preflight(verdict, cause, findings, expected)


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


def _judge(
    expected: Forecast, findings: tuple[Finding, ...]
) -> tuple[Verdict, Cause | Finding | None]:
    """The worst of the forecast and the findings; what stops the start first comes first."""
    failing = next((each.failure for each in findings if each.effect is Effect.FAILS), None)
    if expected.failure and not (failing and expected.failure.moment.in_tasks):
        return expected.verdict, expected.cause
    if failing:
        return Verdict.FAILS, failing
    wrong = _first(findings, Effect.SILENTLY_WRONG)
    if wrong:
        return Verdict.LOSS, wrong
    untold = _first(findings, Effect.UNKNOWN)
    if untold and expected.verdict is Verdict.SAFE:
        return Verdict.UNKNOWN, untold
    return expected.verdict, expected.cause


def _first(findings: tuple[Finding, ...], effect: Effect) -> Finding | None:
    return next((each for each in findings if each.effect is effect), None)


def _compare_sink(plan: Description) -> list[Finding]:
    if plan.sink is None:
        return []
    return [Finding(Rule.SINK, Effect.ALLOWED, SinkNamed(plan.sink, plan.output_mode))]
