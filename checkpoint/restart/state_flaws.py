"""The form of a state file: empty, cut off, not what its checksum says. Nothing is unpacked."""

from __future__ import annotations

import enum
import io
import json
import zipfile
from typing import TYPE_CHECKING

import msgspec

from streamgauge.checkpoint.errors import CheckpointError
from streamgauge.checkpoint.reader.checksums import recorded_size

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint

_LARGEST_ENTRY_BYTES = 1024 * 1024
_BLOCK = b"LZ4Block"


class StateFlaw(enum.Enum):
    """What is wrong with a state file that is there."""

    EMPTY = enum.auto()
    CUT_OFF = enum.auto()
    NOT_ITS_CODEC = enum.auto()
    NO_SNAPSHOT = enum.auto()
    MISSING_SST = enum.auto()
    WRONG_SIZE = enum.auto()
    UNREADABLE = enum.auto()


class BrokenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A state file that can't be loaded.

    `sst`: the file that a snapshot lacks. `recorded_bytes`: the size its checksum file gives, and
    `actual_bytes` the size it has. `error`: what the store said of an unreadable one.
    """

    file: str
    flaw: StateFlaw
    sst: str = ""
    recorded_bytes: int = 0
    actual_bytes: int = 0
    error: str = ""


def find_wrong_size(checkpoint: Checkpoint, file: str, data: bytes) -> BrokenFile | None:
    """Whether a file is not of the size that Spark's own checksum file gives."""
    try:
        size = recorded_size(checkpoint.store.read(f"{file}.crc"))
    except CheckpointError:
        return None
    if size is None or size == len(data):
        return None
    return BrokenFile(
        file=file, flaw=StateFlaw.WRONG_SIZE, recorded_bytes=size, actual_bytes=len(data)
    )


def find_flaw(checkpoint: Checkpoint, file: str, data: bytes) -> BrokenFile | None:
    """What is wrong with the form of a state file, None when it looks whole."""
    if not data:
        return BrokenFile(file=file, flaw=StateFlaw.EMPTY)
    if file.endswith(".zip"):
        return _find_zip_flaw(checkpoint, file, data)
    if data.startswith(_BLOCK[: len(data)]):
        return None if _blocks_end(data) else BrokenFile(file=file, flaw=StateFlaw.CUT_OFF)
    codec = checkpoint.conf.get("spark.sql.streaming.stateStore.compression.codec", "lz4")
    return BrokenFile(file=file, flaw=StateFlaw.NOT_ITS_CODEC) if codec == "lz4" else None


def _blocks_end(data: bytes) -> bool:
    """Walk the headers of an LZ4 block stream; it ends with a block of no length."""
    at = 0
    while data[at : at + 8] == _BLOCK and at + 21 <= len(data):
        packed = int.from_bytes(data[at + 9 : at + 13], "little")
        if int.from_bytes(data[at + 13 : at + 17], "little") == 0:
            return True
        at += 21 + packed
    return False


def _find_zip_flaw(checkpoint: Checkpoint, file: str, data: bytes) -> BrokenFile | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.getinfo("metadata").file_size > _LARGEST_ENTRY_BYTES:
                return None
            text = archive.read("metadata").decode("utf-8", "replace")
    except (
        zipfile.BadZipFile,
        KeyError,
        OSError,
        EOFError,
        NotImplementedError,  # what zipfile raises for a compression or version it can't read
        RuntimeError,
        ValueError,
    ):
        return BrokenFile(file=file, flaw=StateFlaw.NO_SNAPSHOT)
    folder = file.rsplit("/", 1)[0]
    there = {entry.name for entry in checkpoint.store.list(f"{folder}/SSTs")}
    lost = [name for name in _named_ssts(text) if name not in there]
    if not lost:
        return None
    return BrokenFile(file=file, flaw=StateFlaw.MISSING_SST, sst=f"{folder}/SSTs/{lost[0]}")


def _named_ssts(text: str) -> list[str]:
    """The SST files that a snapshot's metadata names."""
    _, _, body = text.partition("\n")
    try:
        content = json.loads(body)
        return [str(each["dfsSstFileName"]) for each in content.get("sstFiles", [])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
