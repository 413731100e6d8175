"""Reports for people: plain text, no colours, the answer first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamgauge.masking import mask

from .wording import say_age, say_bytes, say_spans, say_time

if TYPE_CHECKING:
    from .forecast import Forecast
    from .history import BatchReport
    from .report import OperatorReport, Report
    from .sources import SourceRange
    from .state_checks import StateNeed

MOST_PARTITIONS = 20
_MARKS = {
    "done": ("●", "●"),
    "planned": ("●", "○"),
    "no commit": ("●", "·"),
    "no offsets": ("·", "●"),
    "missing": ("·", "·"),
}


def draw_timeline(timeline: list[tuple[int, str]]) -> list[str]:
    """The last batches: ● there, ○ planned and not committed, · missing."""
    if not timeline:
        return ["no batch was planned yet"]
    width = max(len(str(batch)) for batch, _ in timeline) + 1
    cells = [
        (f"{batch:>{width}}", *(f"{mark:>{width}}" for mark in _MARKS[word]))
        for batch, word in timeline
    ]
    rows = ["".join(column) for column in zip(*cells, strict=True)]
    return [f"batch     {rows[0]}", f"planned   {rows[1]}", f"committed {rows[2]}"]


def render_report(report: Report) -> str:
    """`show` for people."""
    lines = [
        f"checkpoint   {report.root}",
        f"query id     {report.query_id or 'unknown'}",
        f"written by   Spark {report.written_by or 'unknown'}, {report.mode}",
        f"planned      {_batch(report.last_planned, report.planned_age)}",
        f"committed    {_batch(report.last_committed, report.committed_age)}",
        f"watermark    {say_time(report.watermark_ms)}; for the next batch {say_time(report.next_watermark_ms)}",
        f"kept         {report.planned_batches} offsets, {report.committed_batches} commits",
        "",
        *draw_timeline(report.timeline),
    ]
    if report.uncommitted:
        lines += [
            "",
            f"not committed: {_numbers(report.uncommitted)}; a restart runs the last one again",
        ]
    lines += _history(report.batches)
    lines += ["", "sources"]
    for source in report.sources:
        lines.append(f"  {source.source}  {source.kind}  at {_short(source.planned)}")
        if source.uncommitted and not source.uncommitted.empty:
            lines += [f"       {text}" for text in describe_range(source.uncommitted)]
    if report.operators:
        lines += ["", f"state        {say_bytes(report.state_bytes)}"]
        lines += [text for each in report.operators for text in _operator(each)]
    lines += _trouble(report)
    if report.conf:
        lines += ["", "pinned settings (they win over the session's)"]
        lines += [f"  {key} = {value}" for key, value in sorted(report.conf.items())]
    return "\n".join(lines)


def _history(batches: list[BatchReport]) -> list[str]:
    """A line a batch and a line a source: how far it read."""
    if not batches:
        return []
    rows = [("batch", "planned", "committed", "watermark")]
    rows += [(str(each.batch), *_moments(each)) for each in batches]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *table = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines = ["", head]
    for each, line in zip(batches, table, strict=True):
        lines.append(line)
        for source in each.sources:
            rows_read = "" if source.rows is None else f", {source.rows} rows"
            end = "nothing yet" if source.end is None else f"to {_short(source.end)}"
            lines.append(f"       {source.source}  {source.kind}  {end}{rows_read}")
    return lines


def _moments(batch: BatchReport) -> tuple[str, str, str]:
    planned = "missing" if batch.word == "no offsets" else say_time(batch.planned_ms)
    committed = {"planned": "not yet", "no commit": "missing"}.get(batch.word)
    return planned, committed or say_time(batch.committed_ms), say_time(batch.watermark_ms)


def _batch(number: int | None, age: float | None) -> str:
    return "nothing" if number is None else f"batch {number}, {say_age(age)}"


def _numbers(batches: list[int], most: int = 10) -> str:
    shown = ", ".join(str(each) for each in batches[-most:])
    return f"… {shown}" if len(batches) > most else shown


def _short(value: Any, most: int = 120) -> str:
    """A value's text; masked before it is cut, since a cut secret is not known as one."""
    text = mask(value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
    return text if len(text) <= most else f"{text[:most]}…"


def describe_range(found: SourceRange) -> list[str]:
    """What a batch reads of one source, a line a partition or file."""
    if found.end is None:
        return [f"goes on after {_short(found.start)}"]
    lines = []
    rows = "" if found.rows is None else f", {found.rows} rows"
    start = "its beginning" if found.start is None else _short(found.start)
    lines.append(f"from {start} to {_short(found.end)}{rows}")
    for each in found.partitions[:MOST_PARTITIONS]:
        count = "" if each.rows is None else f"  {each.rows} rows"
        lines.append(f"  {each.partition}: {each.start} → {each.end}{count}")
    if len(found.partitions) > MOST_PARTITIONS:
        lines.append(f"  … and {len(found.partitions) - MOST_PARTITIONS} partitions more")
    lines += [f"  {path}" for path in found.paths[:MOST_PARTITIONS]]
    hidden = len(found.paths) - MOST_PARTITIONS + found.paths_left_out
    if hidden > 0:
        lines.append(f"  … and {hidden} files more")
    return lines


def _operator(each: OperatorReport) -> list[str]:
    versions = (
        "no version common to all"
        if each.versions is None
        else f"versions {each.versions[0]}-{each.versions[1]}"
    )
    snapshot = "none" if each.oldest_snapshot is None else str(each.oldest_snapshot)
    stores = "" if each.stores == ("default",) else f", stores {', '.join(each.stores)}"
    size = f"{each.files} files, {say_bytes(each.bytes)}"
    return [
        f"  {each.operator}  {each.name}  {each.provider or 'provider unknown'}",
        f"     {each.partitions} partitions{stores}, {versions}, last snapshot {snapshot}, {size}",
    ]


def _trouble(report: Report) -> list[str]:
    lines = []
    if report.offset_gaps:
        lines.append(f"  offsets/ has gaps: {say_spans(report.offset_gaps)}")
    if report.commit_gaps:
        lines.append(f"  commits/ has gaps: {say_spans(report.commit_gaps)}")
    lines += [f"  {file}: {what}" for file, what in report.problems.items()]
    if report.leftovers:
        lines.append(f"  {len(report.leftovers)} leftover temp files (harmless)")
    return ["", "noticed", *lines] if lines else []


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
    lines.append(f"when         {failure.when}")
    if seen.written:
        lines.append(f"written before it fails: batch {', '.join(map(str, seen.written))}")
    return lines


def _need(need: StateNeed) -> list[str]:
    text = f"state        operator {need.operator} ({need.name}) needs version {need.version}: "
    lines = [f"{text}{need.ready} of {need.stores} stores have it"]
    lines += [f"  missing {file}" for file in need.missing[:5]]
    lines += [f"  broken {file}" for file in need.broken[:5]]
    lines += [f"  unproved {what}" for what in need.unproved[:5]]
    return lines
