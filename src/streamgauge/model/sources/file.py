"""Files: `{"logOffset": 3}` counts batches of its own log, not rows; Spark tells no latest offset.

Auto Loader reports what waits (`numFilesOutstanding`). For Spark's own source it is what the folder holds
less what the source's log in the checkpoint lists up to the committed offset.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec

from .reader import Reader
from .waiting import Files, Place, Waiting

_MOST_BYTES = 4 << 20  # of the log
_LONGEST_AGE_SECONDS = 7 * 86400.0  # Spark's default of maxFileAge: an older file is never read
_SCHEME = re.compile(r"^[\w.+-]+:/+")
_GLOB = re.compile(r"[*?{}\[\]\\]")
# With these it takes more than names to tell what will be read.
_OPTIONS = re.compile("pathglobfilter|recursivefilelookup|maxfileage|latestfirst|filenameonly")


class _Entry(msgspec.Struct, rename="camel"):
    path: str
    timestamp: int
    batch_id: int


_ENTRY = msgspec.json.Decoder(_Entry)


def _waiting(files: Files, place: Place, offset: Any) -> Waiting | None:
    last = offset.get("logOffset") if isinstance(offset, dict) else None
    if type(last) is not int or place.options is None:
        return None
    if _GLOB.search(place.path) or _OPTIONS.search(place.options):
        return None
    read = _read(files, place, last)
    there = files.list(place.path) if read else None
    if not read or there is None:
        return None
    data = [file for file in there if not _hidden(file.name)]
    if any(file.folder for file in data) or any(file.name == "_spark_metadata" for file in there):
        return None  # partitions, or the output of a file sink: its log says what counts
    oldest = max(read.values()) - _LONGEST_AGE_SECONDS
    waits = [file for file in data if file.name not in read and file.modified >= oldest]
    return Waiting(files=len(waits), bytes=sum(file.length for file in waits))


def _read(files: Files, place: Place, last: int) -> dict[str, float] | None:
    """Names and times of the files read up to an offset.

    None when the log has gaps, is too long, or is that of another folder.
    """
    sizes = {file.name: file.length for file in files.list(place.log) or ()}
    compact = max((int(n[:-8]) for n in sizes if re.fullmatch(r"\d+\.compact", n)), default=-1)
    if last - compact > len(sizes):
        return None
    wanted = [f"{compact}.compact"] if compact >= 0 else []
    wanted += [str(number) for number in range(compact + 1, last + 1)]
    if not sizes.keys() >= set(wanted) or sum(sizes[name] for name in wanted) > _MOST_BYTES:
        return None
    read, home = {}, _SCHEME.sub("/", place.path)
    for name in wanted:
        version, *lines = (files.read(f"{place.log}/{name}", _MOST_BYTES) or "").split("\n")
        if version != "v1":
            return None
        for entry in map(_ENTRY.decode, filter(None, lines)):
            folder, _, own = _SCHEME.sub("/", unquote(entry.path)).rpartition("/")
            if folder != home:
                return None
            if entry.batch_id <= last:
                read[own] = entry.timestamp / 1000.0
    return read


def _hidden(name: str) -> bool:
    """What Spark passes over in a folder."""
    return (
        name.startswith(".") or (name[:1] == "_" and "=" not in name) or name.endswith("._COPYING_")
    )


READER = Reader(kind="file", beginnings=("FileStreamSource[",), waiting=_waiting)
CLOUD_FILES = Reader(kind="cloudfiles", beginnings=("CloudFilesSource[",))
