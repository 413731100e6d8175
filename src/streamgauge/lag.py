"""`streamgauge lag`: how far behind a query is, from its checkpoint and the broker alone.

For a driver that is dead or can't be reached. Nothing is written: neither to the checkpoint nor to
Kafka, where rows are read without a group's offsets.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from msgspec import Struct, structs

from streamgauge.checkpoint import CheckpointError, make_report, read_checkpoint
from streamgauge.checkpoint.render.wording import mask_lines, to_json
from streamgauge.listener.kafka.broker import BrokerError, KafkaBroker
from streamgauge.model.sources.broker_offsets import BrokerOffsets, Positions
from streamgauge.model.thresholds import default_number

from .errors import StreamgaugeError
from .masking import mask

_COLUMNS = ("topic", "partition", "committed", "earliest", "latest", "behind", "headroom", "lost")


class PartitionLag(Struct, frozen=True, kw_only=True):
    """One partition; None: it can't be known. Times in seconds."""

    source: str
    topic: str
    partition: str
    committed: int | None  # None: the query has not seen this partition yet
    earliest: int | None = None
    latest: int | None = None
    behind: int | None = None  # rows from the committed offset to the end
    lost: int | None = None  # rows of these that retention has deleted
    lag: float | None = None  # age of the oldest row that is not read
    retention: float | None = None
    headroom: float | None = None  # until that row may be deleted
    finding: str | None = None


class Lag(Struct, frozen=True, kw_only=True):
    """A query; a sum with a part that is unknown is unknown."""

    checkpoint: str
    batch: int | None  # the last that was committed
    at: float
    behind: int | None
    lost: int | None
    headroom: float | None
    findings: list[str]
    partitions: list[PartitionLag]


class CannotLook(StreamgaugeError):  # noqa: N818 - it reads as a sentence
    """There is nothing to measure; says why."""


def add_parser(commands: Any) -> None:
    """Add `lag` to the command line."""
    parser = commands.add_parser(
        "lag",
        help="how far behind a Kafka query is, from its checkpoint and the broker",
        description="Works with the driver dead. Needs the extra: pip install 'streamgauge[kafka]'",
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a path, or a URL such as s3://…")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="the brokers, with commas")
    parser.add_argument(
        "--properties", metavar="FILE", help="the client's settings, as librdkafka names them"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table; 1 when rows are lost or soon will be, 2 when it can't be known."""
    try:
        found = look(args.checkpoint, KafkaBroker(args.bootstrap, args.properties))
    except (CannotLook, CheckpointError, BrokerError) as error:
        sys.stderr.write(f"streamgauge lag: {mask(str(error))}\n")
        return 2
    sys.stdout.write((to_json(found) if args.json else mask_lines(render(found))) + "\n")
    if found.findings:
        return 1
    return 2 if found.behind is None else 0


# ---- measuring ------------------------------------------------------------------------------


def look(checkpoint: str, broker: KafkaBroker) -> Lag:
    """Read the checkpoint, ask the broker; raises `CannotLook`, `CheckpointError`, `BrokerError`."""
    report = make_report(read_checkpoint(checkpoint))
    committed = {
        each.source: _positions(each.committed if each.committed is not None else each.first)
        for each in report.sources
        if each.kind == "kafka"
    }
    if not committed:
        kinds = ", ".join(sorted({each.kind for each in report.sources})) or "no batch yet"
        raise CannotLook(f"{report.root} has no Kafka source; it has {kinds}")
    if not all(committed.values()):
        raise CannotLook(f"the offsets of the last committed batch are not in {report.root}")
    seen = broker.read_offsets({topic for each in committed.values() for topic, _ in each})
    partitions = [
        part for source, read in committed.items() for part in measure(source, read, seen)
    ]
    partitions = _age(partitions, broker, seen.at)
    return Lag(
        checkpoint=report.root,
        batch=report.last_committed,
        at=seen.at,
        behind=_total([part.behind for part in partitions]),
        lost=_total([part.lost for part in partitions]),
        headroom=min((p.headroom for p in partitions if p.headroom is not None), default=None),
        findings=[
            f"{part.topic} {part.partition}: {part.finding}" for part in partitions if part.finding
        ],
        partitions=partitions,
    )


def _positions(offset: Any) -> Positions:
    if not isinstance(offset, dict):
        return {}
    return {
        (topic, partition): number
        for topic, partitions in offset.items()
        for partition, number in partitions.items()
    }


def measure(source: str, read: Positions, seen: BrokerOffsets) -> list[PartitionLag]:
    """Each partition that the query has read or the broker has, by what both say."""
    topics = {topic for topic, _ in read}
    keys = read.keys() | {key for key in seen.latest if key[0] in topics}
    return [
        _measure(source, key, read.get(key), seen)
        for key in sorted(keys, key=lambda key: (key[0], int(key[1])))
    ]


def _measure(
    source: str, key: tuple[str, str], read: int | None, seen: BrokerOffsets
) -> PartitionLag:
    topic, partition = key
    earliest, latest = seen.earliest.get(key), seen.latest.get(key)
    known: dict[str, Any] = {
        "source": source,
        "topic": topic,
        "partition": partition,
        "committed": read,
        "earliest": earliest,
        "latest": latest,
        "retention": seen.retention.get(topic),
    }
    if earliest is None or latest is None:
        asked = topic in seen.topics
        return PartitionLag(**known, finding="it is not on the broker any more" if asked else None)
    if read is not None and read > latest:
        words = f"it ends at {latest}, before the committed {read}: the topic was recreated"
        return PartitionLag(**known, finding=words)
    begin = earliest if read is None else read  # Spark reads a new partition from its beginning
    lost = max(0, earliest - begin)
    finding = f"{lost} rows were deleted before they were read" if lost else None
    return PartitionLag(**known, behind=latest - begin, lost=lost, finding=finding)


def _age(partitions: list[PartitionLag], broker: KafkaBroker, now: float) -> list[PartitionLag]:
    """With the age of each partition's first unread row, and what that leaves of the retention."""
    wanted = {
        (part.topic, part.partition): max(part.committed or 0, part.earliest or 0)
        for part in partitions
        if part.behind is not None and part.behind > (part.lost or 0)
    }
    times = broker.row_times(wanted)
    return [_aged(part, times.get((part.topic, part.partition)), now) for part in partitions]


def _aged(part: PartitionLag, written: float | None, now: float) -> PartitionLag:
    if written is None:
        return part
    lag = max(0.0, now - written)
    headroom = None if part.retention is None else part.retention - lag
    finding = part.finding
    if headroom is not None and part.retention is not None and not finding:
        share = default_number("retention_share")  # as the alert RetentionRisk has it
        if headroom < share * part.retention:
            finding = f"the oldest unread row may be deleted {_say_soon(headroom)}"
    return structs.replace(part, lag=lag, headroom=headroom, finding=finding)


def _total(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


# ---- printing -------------------------------------------------------------------------------


def render(found: Lag) -> str:
    """The answer first, then a row a partition."""
    several = len({part.source for part in found.partitions}) > 1
    columns = ("source", *_COLUMNS) if several else _COLUMNS
    rows = [columns, *([_cell(part, name) for name in columns] for part in found.partitions)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    oldest = max((part.lag for part in found.partitions if part.lag is not None), default=None)
    behind = "an unknown number of" if found.behind is None else f"{found.behind:,}"
    age = "" if oldest is None else f"; the oldest was written {_say_span(oldest)} ago"
    batch = "no committed batch" if found.batch is None else f"committed batch {found.batch}"
    return "\n".join(
        [
            f"{behind} rows behind, as of {batch}{age}",
            *(f"! {finding}" for finding in found.findings),
            "",
            *("  ".join(map(_pad, row, widths, columns)).rstrip() for row in rows),
        ]
    )


def _pad(cell: str, width: int, column: str) -> str:
    return cell.ljust(width) if column in {"topic", "headroom"} else cell.rjust(width)


def _cell(part: PartitionLag, name: str) -> str:
    value = getattr(part, name)
    if value is None:
        return "?" if name != "headroom" or part.behind else "-"
    if name == "headroom":
        return _say_span(value) if value > 0 else "none"
    return str(value)


def _say_span(seconds: float) -> str:
    """`2 h 5 min`, in at most two units."""
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count and len(parts) < 2:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def _say_soon(seconds: float) -> str:
    return f"in {_say_span(seconds)}" if seconds > 0 else "at any moment"
