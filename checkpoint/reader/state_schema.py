"""Operator metadata and state schemas: the descriptions beside the state files.

Formats: `state/<op>/_metadata/metadata` (v1 JSON), `_metadata/v2/<N>` (transformWithState), and the
binary `_metadata/schema` that Java's DataOutputStream wrote.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import msgspec

from streamgauge.checkpoint.errors import BadFileError, Flaw

from .logs import parse_version

MOST_CHUNKS = 10_000


class StoreInfo(msgspec.Struct, frozen=True):
    """One store of an operator, as its metadata names it."""

    name: str
    partitions: int
    prefix_columns: int = 0
    schema_paths: tuple[str, ...] = ()


class OperatorInfo(msgspec.Struct, frozen=True):
    """An operator's own description (Spark 4.0 and later write it)."""

    operator: int
    name: str
    stores: tuple[StoreInfo, ...]
    properties: dict[str, Any] = {}


class StateSchema(msgspec.Struct, frozen=True):
    """Key and value of a store, as Spark's JSON of a struct type."""

    key: dict[str, Any]
    value: dict[str, Any]

    def types(self, part: str) -> list[str]:
        """The types of the key's or the value's columns, in order."""
        schema = self.key if part == "key" else self.value
        return [type_name(field.get("type")) for field in schema.get("fields", [])]

    def names(self, part: str) -> list[str]:
        """The names of the key's or the value's columns, in order."""
        schema = self.key if part == "key" else self.value
        return [str(field.get("name")) for field in schema.get("fields", [])]


def type_name(kind: Any) -> str:
    """A short, comparable name of a Spark type in JSON; names and nullability are left out."""
    if not isinstance(kind, dict):
        return str(kind)
    if kind.get("type") == "struct":
        inner = ",".join(type_name(field.get("type")) for field in kind.get("fields", []))
        return f"struct<{inner}>"
    if kind.get("type") == "array":
        return f"array<{type_name(kind.get('elementType'))}>"
    if kind.get("type") == "map":
        return f"map<{type_name(kind.get('keyType'))},{type_name(kind.get('valueType'))}>"
    return str(kind.get("type"))


def parse_operator(data: bytes) -> OperatorInfo:
    """Operator metadata, v1 or v2; raises BadFileError."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise BadFileError(Flaw.BAD_LINE, "it is not text") from error
    if lines == [""]:
        raise BadFileError(Flaw.EMPTY)
    parse_version(lines, newest=2)
    try:
        content = json.loads("\n".join(lines[1:]))
        stores = tuple(_store(each) for each in content["stateStoreInfo"])
        about = content["operatorInfo"]
        properties = json.loads(content.get("operatorPropertiesJson") or "{}")
        return OperatorInfo(
            int(about["operatorId"]), str(about["operatorName"]), stores, properties
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BadFileError(Flaw.BAD_JSON, str(error)[:80]) from error


def _store(about: dict[str, Any]) -> StoreInfo:
    return StoreInfo(
        str(about["storeName"]),
        int(about["numPartitions"]),
        int(about.get("numColsPrefixKey", 0)),
        tuple(str(path) for path in about.get("stateSchemaFilePaths") or ()),
    )


def parse_schema(data: bytes) -> StateSchema:
    """`_metadata/schema` of versions 1 and 2; raises BadFileError."""
    reader = _JavaReader(data)
    try:
        version = reader.text()
        if version == "v1":
            key, value = reader.text(), reader.text()
        elif version == "v2":
            key, value = reader.chunks(), reader.chunks()
        else:
            raise BadFileError(Flaw.NEWER_VERSION, repr(version[:20]))
        return StateSchema(_struct(key), _struct(value))
    except (struct.error, ValueError, RecursionError) as error:
        raise BadFileError(Flaw.BAD_LINE, f"state schema: {error}") from error


def _struct(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise BadFileError(Flaw.BAD_JSON, "a state schema is not an object")
    return found


class _JavaReader:
    """What DataInputStream reads: lengths are big-endian, text is UTF-8 but for odd characters."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return int(value)

    def text(self) -> str:
        length = self.number(">H")
        piece = self.data[self.at : self.at + length]
        if len(piece) < length:
            raise ValueError("it is cut off")
        self.at += length
        return piece.decode("utf-8", "replace")

    def chunks(self) -> str:
        count = self.number(">i")
        if not 0 <= count <= MOST_CHUNKS:
            raise ValueError(f"{count} chunks")
        return "".join(self.text() for _ in range(count))
