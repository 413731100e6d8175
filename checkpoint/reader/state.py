"""State on disk: operators, their stores and partitions, and the versions they hold.

Listings only, but for the operator's own small description files; nothing of the state itself is
read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from streamgauge.checkpoint.errors import CheckpointError
from streamgauge.model.checkpoint_names import batch_id

from .problems import Problem, problem_of
from .state_files import StoreFiles, parse_name
from .state_schema import OperatorInfo, StateSchema, parse_operator, parse_schema

if TYPE_CHECKING:
    from .store import Entry, Store

DEFAULT_STORE = "default"
_NOT_STORES = ("_metadata", "_stateSchema", "SSTs", "logs", "archive")


class Operator(msgspec.Struct, frozen=True):
    """One stateful operator: what it says of itself and what is in its folder."""

    operator: int
    info: OperatorInfo | None
    stores: tuple[StoreFiles, ...]
    schema: StateSchema | None = None
    schemas: dict[str, StateSchema] = {}

    @property
    def name(self) -> str:
        """Spark's name of the operator; 3.5 did not write one down."""
        return self.info.name if self.info else "unknown"

    @property
    def store_names(self) -> list[str]:
        """The stores of each partition, by the description or else by the folders."""
        if self.info:
            return [store.name for store in self.info.stores]
        return sorted({store.store for store in self.stores})

    @property
    def by_place(self) -> dict[tuple[int, str], StoreFiles]:
        """The stores by partition and name."""
        return {(store.partition, store.store): store for store in self.stores}

    @property
    def partitions(self) -> list[int]:
        """Partitions that have a folder."""
        return sorted({store.partition for store in self.stores})

    @property
    def keyless(self) -> bool:
        """Whether everything goes to one partition: a global aggregate, or a limit."""
        if self.name == "globalLimit" or self.schema is None:
            return self.name == "globalLimit"
        return all(kind == "void" for kind in self.schema.types("key"))


class State(msgspec.Struct, frozen=True):
    """All of `state/`; `problems` are files that could not be understood."""

    present: bool
    operators: tuple[Operator, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def bytes(self) -> int:
        """Size of all state files that were listed."""
        return sum(store.bytes for each in self.operators for store in each.stores)


def read_state(store: Store) -> State:
    """List `state/` and read the descriptions of its operators."""
    found = store.list("state")
    numbers = sorted(int(each.name) for each in found if each.is_dir and each.name.isdigit())
    problems: list[Problem] = []
    operators = tuple(_read_operator(store, number, problems) for number in numbers)
    present = bool(found) or any(each.name == "state" and each.is_dir for each in store.list())
    return State(present, operators, tuple(problems))


def _read_operator(store: Store, number: int, problems: list[Problem]) -> Operator:
    folder = f"state/{number}"
    names = [each.name for each in store.list(folder) if each.is_dir]
    info = _read_info(store, folder, problems) if "_metadata" in names else None
    parts = sorted(int(name) for name in names if name.isdigit())
    stores: list[StoreFiles] = []
    for part in parts:
        stores += _read_partition(store, f"{folder}/{part}", part, many=_has_named_stores(info))
    schemas = _read_schemas(store, stores, problems)
    first = next(iter(schemas.values()), None)
    return Operator(number, info, tuple(stores), first, schemas)


def _has_named_stores(info: OperatorInfo | None) -> bool | None:
    """Whether partitions hold one folder a store; None when nothing says it."""
    return None if info is None else any(each.name != DEFAULT_STORE for each in info.stores)


def _read_info(store: Store, folder: str, problems: list[Problem]) -> OperatorInfo | None:
    name = f"{folder}/_metadata/metadata"
    listed = {each.name for each in store.list(f"{folder}/_metadata")}
    if "metadata" not in listed:
        numbers = [batch_id(each.name) for each in store.list(f"{folder}/_metadata/v2")]
        known = [number for number in numbers if number is not None]
        if not known:
            return None
        name = f"{folder}/_metadata/v2/{max(known)}"
    try:
        return parse_operator(store.read(name))
    except CheckpointError as error:
        problems.append(problem_of(name, error))
    return None


def _read_partition(store: Store, folder: str, part: int, *, many: bool | None) -> list[StoreFiles]:
    entries = store.list(folder, details=True)
    inner = sorted(each.name for each in entries if each.is_dir and each.name not in _NOT_STORES)
    if many is None:
        many = bool(inner)
    if not many:
        return [_sort_files(store, folder, (part, DEFAULT_STORE), entries)]
    return [
        _sort_files(store, inside, (part, name), store.list(inside, details=True))
        for name in inner
        for inside in (f"{folder}/{name}",)
    ]


def _sort_files(
    store: Store, folder: str, where: tuple[int, str], entries: list[Entry]
) -> StoreFiles:
    snapshots: dict[tuple[int, str], str] = {}
    changes: dict[tuple[int, str], str] = {}
    sizes: dict[str, int] = {}
    checksums: set[str] = set()
    total = files = leftovers = 0
    for entry in entries:
        if entry.is_dir:
            if entry.name == "SSTs":  # RocksDB's own files: most of its bytes
                shared = store.list(f"{folder}/SSTs", details=True)
                total += sum(each.size or 0 for each in shared)
                files += len(shared)
            continue
        size = entry.size or 0
        total += size
        files += 1
        parsed = parse_name(entry.name)
        if parsed is None:
            if entry.name.endswith(".crc") and parse_name(entry.name[:-4]):
                checksums.add(f"{folder}/{entry.name[:-4]}")
            leftovers += entry.name.endswith(".tmp")
            continue
        version, identity, kind = parsed
        path = f"{folder}/{entry.name}"
        (changes if kind in ("delta", "changelog") else snapshots)[version, identity] = path
        if entry.size is not None:
            sizes[path] = size
    return StoreFiles(
        *where, folder, snapshots, changes, sizes, total, files, leftovers, frozenset(checksums)
    )


def _read_schemas(
    store: Store, stores: list[StoreFiles], problems: list[Problem]
) -> dict[str, StateSchema]:
    """The schema files of partition 0, where Spark keeps them."""
    schemas: dict[str, StateSchema] = {}
    for each in stores:
        if each.partition != 0:
            continue
        name = f"{each.folder}/_metadata/schema"
        if not any(entry.name == "schema" for entry in store.list(f"{each.folder}/_metadata")):
            continue
        try:
            schemas[each.store] = parse_schema(store.read(name))
        except CheckpointError as error:
            problems.append(problem_of(name, error))
    return schemas
