"""Whether every partition and store has the state that the next batch needs.

Names first; then, for the files that will really be read, a look at their form: an empty or
cut-off file is found without unpacking it. At most `MOST_FILES` are opened.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING

import msgspec

from .checkpoint import PARTITIONS, ROCKSDB
from .checksums import recorded_size
from .errors import CheckpointError, RefusedError
from .places import is_inside
from .state_files import Chain, StoreFiles, trace_chain

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .state import Operator

MOST_FILES = 500
MOST_PARTITIONS = 10_000
LARGEST_STATE_FILE = 4 * 1024 * 1024
LARGEST_ENTRY = 1024 * 1024
_BLOCK = b"LZ4Block"
CHECKSUM = "has a checksum"


class StateNeed(msgspec.Struct, frozen=True):
    """What one operator needs: the version, how many stores have it, and what is missing."""

    operator: int
    name: str
    version: int
    stores: int
    ready: int
    missing: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()


def check_state(checkpoint: Checkpoint, version: int) -> list[StateNeed]:
    """For each operator, whether `version` can be loaded in every partition and store."""
    budget = [MOST_FILES]
    return [
        _check_operator(checkpoint, each, version, budget) for each in checkpoint.state.operators
    ]


def _check_operator(
    checkpoint: Checkpoint, operator: Operator, version: int, budget: list[int]
) -> StateNeed:
    missing: list[str] = []
    broken: list[str] = []
    unproved: list[str] = []
    ready = stores = 0
    places = operator.by_place
    for part in expected_partitions(checkpoint, operator):
        for index, name in enumerate(operator.store_names or ["default"]):
            stores += 1
            files = places.get((part, name)) or _no_store(operator, part, name)
            chain = _chain(checkpoint, operator, files, index, version)
            wrong = _look(checkpoint, chain.files, files.checksums, budget, unproved)
            missing += chain.missing
            broken += wrong
            if chain.unproved:
                unproved.append(chain.unproved)
            ready += not (chain.missing or wrong or chain.unproved)
    return StateNeed(
        operator.operator, operator.name, version, stores, ready,
        tuple(missing), tuple(broken), tuple(dict.fromkeys(unproved)),
    )  # fmt: skip


def expected_partitions(checkpoint: Checkpoint, operator: Operator) -> list[int]:
    """The partitions that a restart will load: the pinned number, one where there is no key."""
    if operator.keyless:
        return [0]
    pinned = checkpoint.conf.get(PARTITIONS, "")
    if pinned.isascii() and pinned.isdigit():
        return list(range(min(int(pinned[:9]), MOST_PARTITIONS)))
    if operator.info and operator.info.stores:
        return list(range(min(operator.info.stores[0].partitions, MOST_PARTITIONS)))
    return operator.partitions


def _no_store(operator: Operator, part: int, name: str) -> StoreFiles:
    """What stands for a store that has no folder."""
    folder = f"state/{operator.operator}/{part}" + ("" if name == "default" else f"/{name}")
    return StoreFiles(part, name, folder, {}, {}, {}, 0, 0)


def _chain(
    checkpoint: Checkpoint, operator: Operator, files: StoreFiles, index: int, version: int
) -> Chain:
    ids = live_ids(checkpoint, operator.operator, files.partition, index, version)
    suffix = "changelog" if checkpoint.provider == ROCKSDB else "delta"
    return trace_chain(files, version, ids, suffix)


def live_ids(
    checkpoint: Checkpoint, operator: int, part: int, store: int, version: int
) -> dict[int, str] | None:
    """Format v2: which file of each version is live, from `commits/`; None in format v1."""
    newest = _ids_of(checkpoint, version - 1)
    if newest is None:
        return None
    ids: dict[int, str] = {}
    for number in range(version, 0, -1):
        known = _ids_of(checkpoint, number - 1)
        try:
            ids[number] = (known or {})[str(operator)][part][store]
        except (KeyError, IndexError):
            break
    return ids


def _ids_of(checkpoint: Checkpoint, batch: int) -> dict[str, list[list[str]]] | None:
    cache = checkpoint.details.setdefault("state_ids", {})
    if batch not in cache:
        commit = checkpoint.commit_of(batch)
        cache[batch] = commit.state_ids if commit else None
    found: dict[str, list[list[str]]] | None = cache[batch]
    return found


def foreign_schema_paths(checkpoint: Checkpoint) -> list[str]:
    """Schema files that the operators name and that are not files of this checkpoint.

    Decided by the paths alone: nothing outside is looked at.
    """
    return [
        path
        for operator in checkpoint.state.operators
        for store in (operator.info.stores if operator.info else ())
        for path in store.schema_paths
        if not is_inside(path, checkpoint.store.root)
    ]


def _look(
    checkpoint: Checkpoint,
    files: tuple[str, ...],
    checksums: frozenset[str],
    budget: list[int],
    unproved: list[str],
) -> list[str]:
    """Which of these files are empty, cut off, or not of the size their checksum file gives."""
    wrong: list[str] = []
    for file in files:
        if budget[0] <= 0:
            unproved.append(f"only the first {MOST_FILES} state files were opened")
            break
        budget[0] -= 1
        try:
            data = checkpoint.store.read(file, LARGEST_STATE_FILE)
        except RefusedError:
            continue
        except CheckpointError as error:
            wrong.append(str(error))
            continue
        flaw = _size_flaw(checkpoint, file, data) if file in checksums else None
        flaw = flaw or find_flaw(file, data, checkpoint)
        if flaw:
            wrong.append(f"{file}: {flaw}")
    return wrong


def _size_flaw(checkpoint: Checkpoint, file: str, data: bytes) -> str | None:
    try:
        size = recorded_size(checkpoint.store.read(f"{file}.crc"))
    except CheckpointError:
        return None
    if size is None or size == len(data):
        return None
    return f"{CHECKSUM} of {size} bytes and has {len(data)}"


def find_flaw(file: str, data: bytes, checkpoint: Checkpoint) -> str | None:
    """What is wrong with the form of a state file, None when it looks whole."""
    if not data:
        return "is empty"
    if file.endswith(".zip"):
        return _zip_flaw(file, data, checkpoint)
    if data.startswith(_BLOCK[: len(data)]):
        return None if _blocks_end(data) else "is cut off"
    codec = checkpoint.conf.get("spark.sql.streaming.stateStore.compression.codec", "lz4")
    return "is not what its codec writes" if codec == "lz4" else None


def _blocks_end(data: bytes) -> bool:
    """Walk the headers of an LZ4 block stream; it ends with a block of no length."""
    at = 0
    while data[at : at + 8] == _BLOCK and at + 21 <= len(data):
        packed = int.from_bytes(data[at + 9 : at + 13], "little")
        if int.from_bytes(data[at + 13 : at + 17], "little") == 0:
            return True
        at += 21 + packed
    return False


def _zip_flaw(file: str, data: bytes, checkpoint: Checkpoint) -> str | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.getinfo("metadata").file_size > LARGEST_ENTRY:
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
        return "is no zip with a metadata entry"
    folder = file.rsplit("/", 1)[0]
    there = {entry.name for entry in checkpoint.store.list(f"{folder}/SSTs")}
    lost = [name for name in _named_ssts(text) if name not in there]
    return f"needs {folder}/SSTs/{lost[0]}, which is missing" if lost else None


def _named_ssts(text: str) -> list[str]:
    """The SST files that a snapshot's metadata names."""
    _, _, body = text.partition("\n")
    try:
        content = json.loads(body)
        return [str(each["dfsSstFileName"]) for each in content.get("sstFiles", [])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
