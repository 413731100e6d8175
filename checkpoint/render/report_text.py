"""`show` for people: plain text, no colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.checkpoint.reader.history import BatchStage
from streamgauge.checkpoint.reader.state import DEFAULT_STORE

from .range_text import describe_range, short_text
from .wording import say_age, say_bytes, say_spans, say_time

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.history import BatchReport
    from streamgauge.checkpoint.reader.report import OperatorReport, Report

_MARKS = {
    BatchStage.DONE: ("●", "●"),
    BatchStage.PLANNED: ("●", "○"),
    BatchStage.NO_COMMIT: ("●", "·"),
    BatchStage.NO_OFFSETS: ("·", "●"),
    BatchStage.MISSING: ("·", "·"),
}


def draw_timeline(timeline: list[tuple[int, BatchStage]]) -> list[str]:
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
        lines.append(f"  {source.source}  {source.kind}  at {short_text(source.planned)}")
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
    """One line per batch and one per source: how far it read."""
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
            end = "nothing yet" if source.end is None else f"to {short_text(source.end)}"
            lines.append(f"       {source.source}  {source.kind}  {end}{rows_read}")
    return lines


def _moments(batch: BatchReport) -> tuple[str, str, str]:
    lost = batch.word is BatchStage.NO_OFFSETS
    planned = "missing" if lost else say_time(batch.planned_ms)
    absent = {BatchStage.PLANNED: "not yet", BatchStage.NO_COMMIT: "missing"}
    committed = absent.get(batch.word) or say_time(batch.committed_ms)
    return planned, committed, say_time(batch.watermark_ms)


def _batch(number: int | None, age: float | None) -> str:
    return "nothing" if number is None else f"batch {number}, {say_age(age)}"


def _numbers(batches: list[int], most: int = 10) -> str:
    shown = ", ".join(str(each) for each in batches[-most:])
    return f"… {shown}" if len(batches) > most else shown


def _operator(each: OperatorReport) -> list[str]:
    versions = (
        "no version common to all"
        if each.versions is None
        else f"versions {each.versions[0]}-{each.versions[1]}"
    )
    snapshot = "none" if each.oldest_snapshot is None else str(each.oldest_snapshot)
    stores = "" if each.stores == (DEFAULT_STORE,) else f", stores {', '.join(each.stores)}"
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
