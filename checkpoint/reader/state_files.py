"""The files of one state store: which versions are there, and what loading a version needs.

Pure, on names alone. HDFS-backed: `<V>.delta`, `<V>.snapshot`. RocksDB: `<V>.zip`,
`<V>.changelog`; in format v2 `<V>_<id>.zip` and so on, where `commits/` says which id is live.
"""

from __future__ import annotations

import msgspec

SNAPSHOTS = ("snapshot", "zip")
CHANGES = ("delta", "changelog")
MOST_LINKS = 2000


class StoreFiles(msgspec.Struct, frozen=True):
    """One store of one partition. Keys of the dicts: (version, id), id empty in format v1.

    `checksums`: the files that have one of Spark's own checksum files beside them.
    """

    partition: int
    store: str
    folder: str
    snapshots: dict[tuple[int, str], str]
    changes: dict[tuple[int, str], str]
    sizes: dict[str, int]
    bytes: int
    files: int
    leftovers: int = 0
    checksums: frozenset[str] = frozenset()

    @property
    def versions(self) -> list[int]:
        """Every version that has a file, rising."""
        return sorted({version for version, _ in (*self.snapshots, *self.changes)})

    @property
    def last_snapshot(self) -> int | None:
        """Newest snapshot, None when there is none."""
        return max((version for version, _ in self.snapshots), default=None)


class LiveFileUnknown(msgspec.Struct, frozen=True):
    """Format v2: no commit says which file of this version is live."""

    folder: str
    version: int


class NoSnapshotFound(msgspec.Struct, frozen=True):
    """No snapshot in as many versions as are searched."""

    folder: str
    versions: int


class Chain(msgspec.Struct, frozen=True):
    """What loading a version takes: the files there, the files missing, and what is not known."""

    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unproved: LiveFileUnknown | NoSnapshotFound | None = None


def parse_name(name: str) -> tuple[int, str, str] | None:
    """(version, id, kind) of a state file's name; None for every other file."""
    stem, dot, kind = name.rpartition(".")
    if not dot or (kind not in CHANGES and kind not in SNAPSHOTS):
        return None
    number, _, identity = stem.partition("_")
    if not (number.isascii() and number.isdigit()):
        return None
    return int(number), identity, kind


def trace_chain(
    store: StoreFiles, version: int, ids: dict[int, str] | None = None, suffix: str = "delta"
) -> Chain:
    """The files that loading `version` reads: the newest snapshot up to it and every change since.

    `ids` (format v2): the live id of each version, from `commits/`. `suffix` names the files that
    are missed; the first one is the one that Spark will name.
    """
    needed: list[str] = []
    missing: list[str] = []
    lowest = max(0, version - MOST_LINKS)
    for current in range(version, lowest, -1):
        identity = "" if ids is None else ids.get(current, "")
        if ids is not None and not identity:
            unknown = LiveFileUnknown(store.folder, current)
            return Chain(tuple(needed), tuple(missing), unknown)
        key = (current, identity)
        if key in store.snapshots:
            needed.append(store.snapshots[key])
            return Chain(tuple(needed), tuple(reversed(missing)))
        if key in store.changes:
            needed.append(store.changes[key])
        else:
            missing.append(_missing(store, key, suffix))
    unproved = NoSnapshotFound(store.folder, MOST_LINKS) if lowest else None
    return Chain(tuple(needed), tuple(reversed(missing)), unproved)


def _missing(store: StoreFiles, key: tuple[int, str], suffix: str) -> str:
    version, identity = key
    stem = f"{version}_{identity}" if identity else f"{version}"
    return f"{store.folder}/{stem}.{suffix}"
