"""Whether every partition and store has the state that the next batch needs.

Names first; then, for the files that will really be read, a look at their form: an empty or
cut-off file is found without unpacking it. At most `MOST_FILES` are opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streamgauge.checkpoint.errors import CheckpointError, RefusedError
from streamgauge.checkpoint.reader.checkpoint import PARTITIONS, ROCKSDB
from streamgauge.checkpoint.reader.state import DEFAULT_STORE
from streamgauge.checkpoint.reader.state_files import Chain, StoreFiles, trace_chain

from .causes import FilesNotOpened, StateDoubt
from .state_flaws import BrokenFile, StateFlaw, find_flaw, find_wrong_size

if TYPE_CHECKING:
    from streamgauge.checkpoint.reader.checkpoint import Checkpoint
    from streamgauge.checkpoint.reader.state import Operator

MOST_FILES = 500
MOST_PARTITIONS = 10_000
LARGEST_STATE_FILE_BYTES = 4 * 1024 * 1024


class StateNeed(msgspec.Struct, frozen=True, kw_only=True):
    """What one operator needs: the version, how many stores have it, and what is missing."""

    operator: int
    name: str
    version: int
    stores: int
    ready: int
    missing: tuple[str, ...] = ()
    broken: tuple[BrokenFile, ...] = ()
    unproved: tuple[StateDoubt, ...] = ()


def check_state(checkpoint: Checkpoint, version: int) -> list[StateNeed]:
    """For each operator, whether `version` can be loaded in every partition and store."""
    opener = _Opener(checkpoint)
    return [_check_operator(opener, each, version) for each in checkpoint.state.operators]


class _Opener:
    """Opens state files, no more than `MOST_FILES` over all operators."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.left = MOST_FILES

    def look(
        self, files: tuple[str, ...], checksums: frozenset[str]
    ) -> tuple[list[BrokenFile], bool]:
        """The files that can't be loaded, and whether all were opened."""
        broken: list[BrokenFile] = []
        for file in files:
            if self.left <= 0:
                return broken, False
            self.left -= 1
            found = self._look_at(file, checked=file in checksums)
            if found:
                broken.append(found)
        return broken, True

    def _look_at(self, file: str, *, checked: bool) -> BrokenFile | None:
        try:
            data = self.checkpoint.store.read(file, LARGEST_STATE_FILE_BYTES)
        except RefusedError:
            return None
        except CheckpointError as error:
            return BrokenFile(file=file, flaw=StateFlaw.UNREADABLE, error=error.what)
        found = find_wrong_size(self.checkpoint, file, data) if checked else None
        return found or find_flaw(self.checkpoint, file, data)


def _check_operator(opener: _Opener, operator: Operator, version: int) -> StateNeed:
    checkpoint, places = opener.checkpoint, operator.by_place
    missing: list[str] = []
    broken: list[BrokenFile] = []
    unproved: list[StateDoubt] = []
    ready = stores = 0
    for part in expected_partitions(checkpoint, operator):
        for index, name in enumerate(operator.store_names or [DEFAULT_STORE]):
            stores += 1
            files = places.get((part, name)) or _no_store(operator, part, name)
            chain = _chain(checkpoint, operator, files, index, version)
            wrong, complete = opener.look(chain.files, files.checksums)
            missing += chain.missing
            broken += wrong
            if not complete:
                unproved.append(FilesNotOpened(MOST_FILES))
            if chain.unproved:
                unproved.append(chain.unproved)
            ready += not (chain.missing or wrong or chain.unproved)
    return StateNeed(
        operator=operator.operator,
        name=operator.name,
        version=version,
        stores=stores,
        ready=ready,
        missing=tuple(missing),
        broken=tuple(broken),
        unproved=tuple(dict.fromkeys(unproved)),
    )


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
    folder = f"state/{operator.operator}/{part}" + ("" if name == DEFAULT_STORE else f"/{name}")
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
