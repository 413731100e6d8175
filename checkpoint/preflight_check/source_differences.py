"""The sources of the new code against those of the checkpoint: number, kind, order, places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgauge.checkpoint.errors import CheckpointError
from streamgauge.checkpoint.reader.places import bare_path, is_inside
from streamgauge.checkpoint.reader.sources import (
    SourceKind,
    decode_offset,
    parse_file_log,
    recognise,
)
from streamgauge.checkpoint.restart import failures

from .differences import (
    KindChange,
    PlaceChange,
    PlaceUnknown,
    SourceCount,
    TopicsAdded,
    TopicsDropped,
    TopicsUnknown,
    Untold,
)
from .findings import Effect, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamgauge.checkpoint.reader.checkpoint import Checkpoint

    from .description import Description, SourceDescription


def compare_sources(checkpoint: Checkpoint, plan: Description) -> Iterator[Finding]:
    """A finding per difference; nothing for a checkpoint without offsets."""
    latest = checkpoint.latest
    if latest is None:
        return
    if plan.sources is None:
        yield Finding(Rule.SOURCES, Effect.UNKNOWN, Untold.SOURCES)
        return
    before, now = len(latest.sources), len(plan.sources)
    if latest.version == 2:
        if before != now:
            count = SourceCount(before, now, by_name=True)
            yield Finding(Rule.SOURCE_COUNT, Effect.UNKNOWN, count)
        return
    if before != now:
        failure = failures.source_count(before, now)
        yield Finding(Rule.SOURCE_COUNT, Effect.FAILS, SourceCount(before, now), failure)
        return
    for logged, new in zip(latest.sources, plan.sources, strict=True):
        yield from _compare_source(checkpoint, logged.source, logged.offset, new)


def _compare_source(
    checkpoint: Checkpoint, source: str, offset: str | None, new: SourceDescription
) -> Iterator[Finding]:
    kind = recognise(offset)
    kinds = _described_kinds(kind)
    if kinds and new.kind not in kinds:
        difference, failure = KindChange(source, kinds, new.kind), failures.other_source(new.kind)
        yield Finding(Rule.SOURCE_KIND, Effect.FAILS, difference, failure)
    elif kind is SourceKind.FILE:
        yield from _compare_folder(checkpoint, source, new)
    elif kind is SourceKind.KAFKA:
        yield from _compare_topics(source, offset, new)


def _described_kinds(kind: SourceKind) -> tuple[str, ...]:
    """The kinds that a description may give for such an offset; none when anything will do."""
    if kind is SourceKind.COUNTER:
        return "rate", "socket"
    return () if kind is SourceKind.UNKNOWN else (kind,)


def _compare_folder(
    checkpoint: Checkpoint, source: str, new: SourceDescription
) -> Iterator[Finding]:
    """A folder that does not hold the last batch's files makes Spark refuse them."""
    logged = _last_paths(checkpoint, source)
    folder = new.places[0] if new.places else ""
    if not logged or not folder or not bare_path(folder).startswith("/"):
        yield Finding(Rule.SOURCE_PLACE, Effect.UNKNOWN, PlaceUnknown(source))
        return
    if any(mark in folder for mark in "*?[{"):
        return
    outside = next((path for path in logged if not is_inside(path, folder)), None)
    if outside:
        difference, failure = PlaceChange(source, folder, outside), failures.wrong_base_path()
        yield Finding(Rule.SOURCE_PLACE, Effect.FAILS, difference, failure)


def _last_paths(checkpoint: Checkpoint, source: str) -> list[str]:
    log = checkpoint.sources.get(source)
    if log is None or log.latest is None:
        return []
    try:
        return [each.path for each in parse_file_log(checkpoint.store.read(log.name(log.latest)))]
    except CheckpointError:
        return []


def _compare_topics(source: str, offset: str | None, new: SourceDescription) -> Iterator[Finding]:
    topics = set(decode_offset(offset) or ())
    given = new.options.get("subscribe")
    if given is None:
        yield Finding(Rule.TOPICS, Effect.UNKNOWN, TopicsUnknown(source))
        return
    wanted = {topic.strip() for topic in given.split(",")}
    if topics - wanted:
        dropped = TopicsDropped(source, tuple(sorted(topics - wanted)))
        yield Finding(Rule.TOPICS, Effect.SILENTLY_WRONG, dropped)
    if wanted - topics:
        added = TopicsAdded(source, tuple(sorted(wanted - topics)))
        yield Finding(Rule.TOPICS, Effect.ALLOWED, added)
