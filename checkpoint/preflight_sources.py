"""The sources of the new code against those of the checkpoint: number, kind, order, places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import failures
from .errors import CheckpointError
from .places import bare_path, is_inside
from .sources import decode_offset, parse_file_log, recognise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .checkpoint import Checkpoint
    from .description import Description, SourceDescription
    from .failures import Failure

Row = tuple[str, str, str, "Failure | None"]


def compare_sources(checkpoint: Checkpoint, plan: Description) -> Iterator[Row]:
    """(rule, effect, what, failure) of each difference; nothing for a checkpoint without offsets."""
    latest = checkpoint.latest
    if latest is None:
        return
    if plan.sources is None:
        yield "sources", "unknown", "which sources the code has", None
        return
    if latest.version == 2:
        yield from _compare_named(checkpoint, plan)
        return
    before, now = len(latest.sources), len(plan.sources)
    if before != now:
        what = f"{before} in the checkpoint, {now} in the code"
        yield "number of sources", "fails", what, failures.source_count(before, now)
        return
    for logged, new in zip(latest.sources, plan.sources, strict=True):
        yield from _compare_source(checkpoint, logged.source, logged.offset, new)


def _compare_named(checkpoint: Checkpoint, plan: Description) -> Iterator[Row]:
    latest = checkpoint.latest
    if latest is not None and plan.sources is not None and len(latest.sources) != len(plan.sources):
        what = f"{len(latest.sources)} in the checkpoint, {len(plan.sources)} in the code"
        yield "number of sources", "unknown", f"{what}; sources are matched by name", None


def _compare_source(
    checkpoint: Checkpoint, source: str, offset: str | None, new: SourceDescription
) -> Iterator[Row]:
    kind = recognise(offset)
    if kind == "counter":
        kind = new.kind if new.kind in ("rate", "socket") else "rate or socket"
    if kind not in ("unknown", new.kind):
        what = f"source {source}: {kind} in the checkpoint, {new.kind} in the code"
        yield "kind of source", "fails", what, failures.other_source(new.kind)
    elif kind == "file":
        yield from _compare_folder(checkpoint, source, new)
    elif kind == "kafka":
        yield from _compare_topics(source, offset, new)


def _compare_folder(checkpoint: Checkpoint, source: str, new: SourceDescription) -> Iterator[Row]:
    """A folder that does not hold the last batch's files makes Spark refuse them."""
    logged = _last_paths(checkpoint, source)
    folder = new.places[0] if new.places else ""
    if not logged or not folder or not bare_path(folder).startswith("/"):
        yield "place of a source", "unknown", f"source {source}: its old or new folder", None
        return
    if any(mark in folder for mark in "*?[{"):
        return
    outside = next((path for path in logged if not is_inside(path, folder)), None)
    if outside:
        what = f"source {source}: now {folder}, but the checkpoint has {outside}"
        yield "place of a source", "fails", what, failures.wrong_base_path()


def _last_paths(checkpoint: Checkpoint, source: str) -> list[str]:
    log = checkpoint.sources.get(source)
    if log is None or log.latest is None:
        return []
    try:
        return [each.path for each in parse_file_log(checkpoint.store.read(log.name(log.latest)))]
    except CheckpointError:
        return []


def _compare_topics(source: str, offset: str | None, new: SourceDescription) -> Iterator[Row]:
    topics = set(decode_offset(offset) or ())
    given = new.options.get("subscribe")
    if given is None:
        yield "topics", "unknown", f"source {source}: its topics are not a plain list", None
        return
    wanted = {topic.strip() for topic in given.split(",")}
    if topics - wanted:
        what = f"source {source}: {', '.join(sorted(topics - wanted))} is no longer subscribed"
        yield "topics", "silently wrong", what, None
    if wanted - topics:
        what = f"source {source}: {', '.join(sorted(wanted - topics))} starts from its beginning"
        yield "topics", "allowed", what, None
