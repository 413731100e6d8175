"""`restart` for people: the verdict first, then why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.checkpoint.restart.wording import say_broken, say_moment, say_state_doubt

from .range_text import describe_range
from .wording import say_time

if TYPE_CHECKING:
    from streamgauge.checkpoint.restart.forecast import Forecast
    from streamgauge.checkpoint.restart.state_checks import StateNeed

_MOST_FILES = 5


def render_forecast(seen: Forecast) -> str:
    """`restart` for people: the verdict, then why."""
    verdict = f"{seen.verdict}: {seen.reason}" if seen.reason else seen.verdict
    lines = [f"on Spark {seen.spark}: {verdict}", ""]
    if seen.failure:
        lines += _failure(seen)
    if seen.batch is not None:
        kind = "run again, with the logged offsets" if seen.replayed else "new"
        lines.append(f"first batch  {seen.batch}, {kind}")
        if seen.then is not None:
            lines.append(f"then         {seen.then}, new")
        for each in seen.ranges:
            first, *rest = describe_range(each)
            lines.append(f"  source {each.source} ({each.kind}): {first}")
            lines += [f"  {text}" for text in rest]
        lines.append(f"watermark    {say_time(seen.watermark_ms)}")
    lines += [text for need in seen.state for text in _need(need)]
    if seen.sink_effect:
        lines.append(f"sink         {seen.sink}: {seen.sink_effect}")
    for name, effect in seen.sink_effects.items():
        lines.append(f"  sink {name}: {effect}")
    lines += [
        f"overridden   {key.key}: {key.session} → {key.checkpoint}" for key in seen.overridden
    ]
    lines += [f"note         {text}" for text in seen.notes]
    lines += [f"assumed      {text}" for text in seen.assumptions]
    return "\n".join(lines)


def _failure(seen: Forecast) -> list[str]:
    failure = seen.failure
    if failure is None:
        return []
    names = " or ".join((failure.error, *failure.instead))
    lines = [f"error        {names}" + (f" ({failure.message})" if failure.message else "")]
    if failure.file:
        lines.append(f"look at      {failure.file}")
    lines.append(f"when         {say_moment(failure)}")
    if seen.written:
        lines.append(f"written before it fails: batch {', '.join(map(str, seen.written))}")
    return lines


def _need(need: StateNeed) -> list[str]:
    text = f"state        operator {need.operator} ({need.name}) needs version {need.version}: "
    lines = [f"{text}{need.ready} of {need.stores} stores have it"]
    lines += [f"  missing {file}" for file in need.missing[:_MOST_FILES]]
    lines += [f"  broken {say_broken(each)}" for each in need.broken[:_MOST_FILES]]
    lines += [f"  unproved {say_state_doubt(each)}" for each in need.unproved[:_MOST_FILES]]
    return lines
