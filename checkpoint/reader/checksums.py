"""Checksum files: Hadoop's `.name.crc` on local disks, and Spark's own `name.crc` beside state.

Hadoop writes the first with every file and Spark does not enforce it when it reads, so a mismatch
is no error at a restart: it is the trace of a hand. Spark's own are enforced where they are.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING

from streamgauge.checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from .store import Store

_MAGIC = b"crc\0"
LARGEST_CHECKSUM_BYTES = 1024 * 1024


def find_edited(store: Store, files: list[str]) -> list[str]:
    """Which of these files do not match the checksum file that was written with them."""
    return [file for file in files if _differs(store, file)]


def _differs(store: Store, file: str) -> bool:
    folder, slash, name = file.rpartition("/")
    try:
        checksums = store.read(f"{folder}{slash}.{name}.crc", LARGEST_CHECKSUM_BYTES)
        return not matches(store.read(file), checksums)
    except CheckpointError:
        return False


def matches(data: bytes, checksums: bytes) -> bool:
    """Whether data has these Hadoop checksums; a file that is none says nothing."""
    if checksums[:4] != _MAGIC or len(checksums) < 8 or len(checksums) % 4:
        return True
    (chunk,) = struct.unpack_from(">I", checksums, 4)
    if chunk == 0:
        return True
    sums = struct.unpack_from(f">{len(checksums) // 4 - 2}I", checksums, 8)
    return sums == tuple(zlib.crc32(data[at : at + chunk]) for at in range(0, len(data), chunk))


def recorded_size(data: bytes) -> int | None:
    """The size that Spark's own checksum file gives for its main file; None when it has none."""
    try:
        size = json.loads(data)["mainFileSize"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return size if isinstance(size, int) else None
