"""The three logs at the heart of a checkpoint: `metadata`, `offsets/`, `commits/`.

Pure: bytes in, frozen records out. What Spark would stumble over raises `BadFileError` with a
`Flaw` that says how, since the forecast needs to know *which* error Spark will give.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from streamgauge.checkpoint.errors import BadFileError, Flaw

VOID = "-"
LONGEST_LINE_CHARACTERS = 4 * 1024 * 1024


class SourceOffset(msgspec.Struct, frozen=True):
    """One source's line: its id (position, or the user's name in v2) and its offset as text."""

    source: str
    offset: str | None


class Offsets(msgspec.Struct, frozen=True):
    """`offsets/<N>`: what batch N was planned to read. `conf` is None in continuous mode."""

    version: int
    sources: tuple[SourceOffset, ...]
    watermark_ms: int | None = None
    timestamp_ms: int | None = None
    conf: dict[str, str] | None = None

    def of(self, source: str) -> str | None:
        """The offset of a source, None when there is none yet."""
        return next((each.offset for each in self.sources if each.source == source), None)


class Commit(msgspec.Struct, frozen=True):
    """`commits/<N>`: batch N is done. `state_ids` (format v2): operator → partition → store."""

    version: int
    next_watermark_ms: int = 0
    state_ids: dict[str, list[list[str]]] | None = None
    sinks: dict[str, Any] | None = None


def parse_metadata(data: bytes) -> str:
    """The query id in `metadata`."""
    text = _text(data)
    if not text.strip():
        raise BadFileError(Flaw.EMPTY)
    found = _json_object(text)
    identity = found.get("id")
    if not isinstance(identity, str):
        raise BadFileError(Flaw.BAD_JSON, "there is no id in it")
    return identity


def parse_offsets(data: bytes) -> Offsets:
    """One file of `offsets/`, v1 or v2."""
    lines = _lines(data)
    version = parse_version(lines, newest=2)
    if len(lines) < 2:
        raise BadFileError(Flaw.NO_METADATA)
    parse = _named_line if version == 2 else _numbered_line
    sources = tuple(parse(index, line) for index, line in enumerate(lines[2:]))
    if not lines[1].strip():
        return Offsets(version, sources)
    metadata = _json_object(lines[1])
    return Offsets(
        version,
        sources,
        watermark_ms=_number(metadata.get("batchWatermarkMs", 0)),
        timestamp_ms=_number(metadata.get("batchTimestampMs", 0)),
        conf=_strings(metadata.get("conf") or {}),
    )


def parse_commit(data: bytes) -> Commit:
    """One file of `commits/`, v1 to v3; the JSON line may be missing."""
    lines = _lines(data)
    version = parse_version(lines, newest=3)
    if len(lines) < 2:
        return Commit(version)
    content = _json_object(lines[1])
    ids = content.get("stateUniqueIds")
    sinks = content.get("sinkMetadataMap")
    return Commit(
        version,
        _number(content.get("nextBatchWatermarkMs", 0)) or 0,
        _state_ids(ids) if ids is not None else None,
        sinks if isinstance(sinks, dict) else None,
    )


def parse_version(lines: list[str], newest: int) -> int:
    """The version in the first line, `v1`; raises for none and for one beyond `newest`."""
    if not lines:
        raise BadFileError(Flaw.EMPTY)
    found = re.fullmatch(r"v(\d{1,9})", lines[0].strip(), re.ASCII)
    if found is None or int(found[1]) < 1:
        raise BadFileError(Flaw.BAD_VERSION, repr(lines[0][:40]))
    if int(found[1]) > newest:
        raise BadFileError(Flaw.NEWER_VERSION, lines[0].strip())
    return int(found[1])


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadFileError(Flaw.BAD_LINE, "it is not text") from error


def _lines(data: bytes) -> list[str]:
    """Lines as Scala's getLines gives them; none for an empty file."""
    lines = _text(data).split("\n")
    if lines[-1] == "":
        lines.pop()
    if any(len(line) > LONGEST_LINE_CHARACTERS for line in lines):
        raise BadFileError(
            Flaw.REFUSED, f"a line is longer than {LONGEST_LINE_CHARACTERS} characters"
        )
    return [line.rstrip("\r") for line in lines]


def _json_object(text: str) -> dict[str, Any]:
    """A JSON object at the start of the text; Jackson does not look at what follows it."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError) as error:
        raise BadFileError(Flaw.BAD_JSON, str(error)[:80]) from error
    if not isinstance(found, dict):
        raise BadFileError(Flaw.BAD_JSON, "it is not an object")
    return found


def _numbered_line(index: int, line: str) -> SourceOffset:
    return SourceOffset(str(index), None if line == VOID else line)


def _named_line(index: int, line: str) -> SourceOffset:
    name, colon, offset = line.partition(":")
    if not colon:
        raise BadFileError(Flaw.BAD_LINE, f"source line {index + 1} has no name")
    return SourceOffset(name, None if offset == VOID else offset)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise BadFileError(Flaw.BAD_JSON, "conf is not an object")
    return {str(key): str(each) for key, each in value.items()}


def _state_ids(value: Any) -> dict[str, list[list[str]]]:
    try:
        return msgspec.convert(value, dict[str, list[list[str]]])
    except msgspec.ValidationError as error:
        raise BadFileError(Flaw.BAD_JSON, f"stateUniqueIds: {error}") from error
