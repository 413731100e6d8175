"""A checkpoint, read: listings and the few small files that decide a restart.

`read_checkpoint` opens `metadata`, the last two files of `offsets/`, the last of `commits/` and the
operators' descriptions. Everything else is names. A file that goes or changes while we look is a
finding, never an exception.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.checkpoint.errors import CheckpointError, Flaw, MissingFileError
from streamgauge.model.checkpoint_names import batch_id

from .logs import Commit, Offsets, parse_commit, parse_metadata, parse_offsets
from .places import is_inside
from .problems import Problem, problem_of
from .sources import SourceLog, read_source_log
from .state import State, read_state
from .store import as_store
from .text_enum import TextEnum

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from .store import Store

ROCKSDB = "RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"


class BatchLog(msgspec.Struct, frozen=True):
    """The names in `offsets/` or `commits/`: batch ids, rising, and what else lies there."""

    name: str
    present: bool
    ids: tuple[int, ...]
    leftovers: tuple[str, ...] = ()

    @property
    def latest(self) -> int | None:
        """Newest batch, None when there is none."""
        return self.ids[-1] if self.ids else None

    def gaps(self) -> list[tuple[int, int]]:
        """Ranges of ids that are missing between the first and the last."""
        return [(low + 1, high - 1) for low, high in pairwise(self.ids) if high > low + 1]


class Mode(TextEnum):
    """How the query ran, by the shape of its logs."""

    MICRO_BATCH = "micro-batch"
    CONTINUOUS = "continuous"
    ASYNC = "async"


class Checkpoint(msgspec.Struct, frozen=True):
    """What is known of a checkpoint; `problems` name the files that could not be understood."""

    store: Store
    query_id: str | None
    offsets: BatchLog
    commits: BatchLog
    entries: dict[int, Offsets]
    commit: Commit | None
    sources: dict[str, SourceLog]
    state: State
    problems: tuple[Problem, ...] = ()
    names: frozenset[str] = frozenset()
    details: dict[str, Any] = {}

    @property
    def latest(self) -> Offsets | None:
        """The newest planned batch's offsets."""
        return self.entries.get(self.offsets.latest) if self.offsets.latest is not None else None

    @property
    def conf(self) -> dict[str, str]:
        """Configuration that the newest offsets file pins."""
        return (self.latest.conf or {}) if self.latest else {}

    @property
    def provider(self) -> str | None:
        """Short name of the state store provider, None when no file says it."""
        name = self.conf.get(PROVIDER)
        return name.rsplit(".", 1)[-1] if name else None

    @property
    def uncommitted(self) -> list[int]:
        """Planned batches beyond the last commit."""
        last = self.commits.latest
        return [each for each in self.offsets.ids if last is None or each > last]

    @property
    def mode(self) -> Mode:
        """Continuous: no metadata line. Async: both logs are sparse, in the same way."""
        if self.latest is not None and self.latest.conf is None:
            return Mode.CONTINUOUS if self.continuous_offsets else Mode.MICRO_BATCH
        sparse = looks_async(self.offsets, self.commits, self.state)
        return Mode.ASYNC if sparse else Mode.MICRO_BATCH

    @property
    def continuous_offsets(self) -> bool:
        """Whether every offsets file that was read lacks the metadata line."""
        return all(entry.conf is None for entry in self.entries.values())

    def problem(self, file: str) -> Problem | None:
        """What is wrong with this file, if anything."""
        return next((each for each in self.problems if each.file == file), None)

    def offsets_of(self, batch: int) -> Offsets | None:
        """The offsets of any batch; read now when it is not one of the last two."""
        if batch in self.entries or batch not in self.offsets.ids:
            return self.entries.get(batch)
        try:
            return parse_offsets(self.store.read(f"offsets/{batch}"))
        except CheckpointError:
            return None

    def commit_of(self, batch: int) -> Commit | None:
        """The commit of any batch; read now when it is not the last."""
        if batch == self.commits.latest:
            return self.commit
        if batch not in self.commits.ids:
            return None
        try:
            return parse_commit(self.store.read(f"commits/{batch}"))
        except CheckpointError:
            return None


def looks_async(offsets: BatchLog, commits: BatchLog, state: State) -> bool:
    """Whether the logs are sparse by design: gaps in both, the same batches, and no state."""
    if state.operators or not offsets.gaps():
        return False
    last = commits.latest if commits.latest is not None else -1
    shared = {each for each in offsets.ids if each <= last}
    return bool(commits.ids) and shared == {each for each in commits.ids if each >= offsets.ids[0]}


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


def read_checkpoint(place: str | os.PathLike[str] | Store, **options: Any) -> Checkpoint:
    """Read the checkpoint at a path, a URL or in a store; raises only CannotLookError."""
    store = as_store(place, **options)
    names = frozenset(entry.name for entry in store.list())
    offsets, commits = (_read_log(store, name, names) for name in ("offsets", "commits"))
    state = read_state(store)
    problems = list(state.problems)
    entries = {
        number: entry
        for number in offsets.ids[-2:]
        if (entry := _load(store, f"offsets/{number}", parse_offsets, problems)) is not None
    }
    commit = None
    if commits.latest is not None:
        commit = _load(store, f"commits/{commits.latest}", parse_commit, problems)
    query_id = _load(store, "metadata", parse_metadata, problems)
    folders = [entry.name for entry in store.list("sources") if entry.is_dir]
    sources = {name: read_source_log(store, name) for name in sorted(folders)}
    return Checkpoint(
        store, query_id, offsets, commits, entries, commit, sources, state, tuple(problems), names
    )


def _read_log(store: Store, name: str, names: frozenset[str]) -> BatchLog:
    ids: list[int] = []
    leftovers: list[str] = []
    for entry in store.list(name):
        number = None if entry.is_dir else batch_id(entry.name)
        if number is not None:
            ids.append(number)
        elif entry.name.endswith(".tmp"):
            leftovers.append(entry.name)
    return BatchLog(name, name in names, tuple(sorted(set(ids))), tuple(sorted(leftovers)))


def _load(
    store: Store, file: str, parse: Callable[[bytes], Any], problems: list[Problem]
) -> Any | None:
    """Read and parse one file; what is wrong goes to `problems`."""
    try:
        return parse(store.read(file))
    except MissingFileError:
        problems.append(Problem(file, Flaw.MISSING, "is missing"))
    except CheckpointError as error:
        problems.append(problem_of(file, error))
    return None
