"""Faults of a checkpoint, or of many: where it lies, what is missing, what grows.

Each finding names its rule; the rules are one table, so that metrics and documentation use the same
names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from streamgauge.checkpoint.errors import Flaw
from streamgauge.checkpoint.reader.checkpoint import Mode, foreign_schema_paths
from streamgauge.checkpoint.reader.checksums import find_edited
from streamgauge.model.checkpoint_names import look_at_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamgauge.checkpoint.reader.checkpoint import Checkpoint
    from streamgauge.checkpoint.reader.state_files import StoreFiles

RULES = {
    "date-in-path": "a date in the path: a new checkpoint every day forgets everything",
    "random-in-path": "a random part in the path: every start forgets everything",
    "temp-directory": "a temp directory: it goes with the machine, or with a clean-up",
    "local-disk": "a local disk: on a cluster other machines do not see it",
    "inside-another": "inside another checkpoint, or another one is inside it",
    "shared-path": "two queries on one path",
    "copied": "two checkpoints with the same query id: one is a copy",
    "missing-metadata": "`metadata` is missing: the query loses its identity",
    "unreadable-file": "a file can't be understood",
    "offset-gap": "offsets/ has a gap",
    "commit-gap": "commits/ has a gap",
    "commit-ahead": "commits/ is ahead of offsets/",
    "uncommitted": "more than one batch is planned and not committed",
    "no-offsets": "commits/ or state/ without offsets/",
    "leftovers": "temp files of interrupted writes",
    "growth": "many more batches are kept than Spark keeps by default",
    "no-snapshot": "state without a snapshot for long: a restart reads every change since",
    "incomplete-state": "a partition or store lacks the version that the next batch needs",
    "edited": "a file does not match the checksum that was written with it: it was changed by hand",
    "absolute-paths": "files in it hold absolute paths of another place: it was moved",
}
_HARMLESS = ("leftovers", "growth", "local-disk")
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d[-_./]?(?:0[1-9]|1[0-2])[-_./]?(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?:^|[/_-])(?:date|day|dt|ds|run_date|hour)=", re.IGNORECASE
)  # fmt: skip
_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-z])[0-9a-f]{32}(?![0-9a-z])",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"(?<!\d)1[5-9]\d{8}(?:\d{3})?(?!\d)")
_TEMP = re.compile(
    r"^(?:file:/*)?(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/|$)|/temporary-|/_temporary/"
)
MOST_KEPT = 1000
MOST_CHANGES = 100


class LintFinding(msgspec.Struct, frozen=True):
    """One fault of one checkpoint."""

    checkpoint: str
    rule: str
    what: str
    harmless: bool = False


def lint(checkpoints: Iterable[Checkpoint]) -> list[LintFinding]:
    """All findings over all checkpoints, and those between them."""
    every = list(checkpoints)
    findings = [finding for each in every for finding in lint_one(each)]
    return findings + list(_compare(every))


def lint_one(checkpoint: Checkpoint) -> list[LintFinding]:
    """The findings of one checkpoint."""
    root = checkpoint.store.root
    rows = (*lint_location(root), *_lint_logs(checkpoint), *_lint_state(checkpoint))
    return [LintFinding(root, rule, what, rule in _HARMLESS) for rule, what in rows]


def lint_location(root: str) -> Iterator[tuple[str, str]]:
    """(rule, what) for a path: D7 asks for a fixed, durable, self-describing one."""
    if found := _DATE.search(root):
        yield "date-in-path", f"{found[0].strip('/_-')!r} is in the path"
    if found := _RANDOM.search(root) or _EPOCH.search(root):
        yield "random-in-path", f"{found[0]!r} is in the path"
    if _TEMP.search(root):
        yield "temp-directory", "the path is a temp directory"
    elif "://" not in root or root.startswith("file:"):
        yield "local-disk", "the path is on a local disk (fine on one machine)"


def _lint_logs(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    ran = bool(checkpoint.offsets.ids or checkpoint.commits.ids)
    for problem in checkpoint.problems:
        if problem.file == "metadata" and problem.flaw is Flaw.MISSING:
            if ran:
                yield "missing-metadata", RULES["missing-metadata"]
        else:
            yield "unreadable-file", f"{problem.file}: {problem.what}"
    summary = look_at_names(
        [str(each) for each in checkpoint.offsets.ids],
        [str(each) for each in checkpoint.commits.ids],
    )
    sparse = checkpoint.mode is Mode.ASYNC
    for rule, what in summary.findings.items():
        if not (sparse and rule in ("offset-gap", "commit-gap")):
            yield rule, what
    if not checkpoint.offsets.ids and checkpoint.state.operators and not checkpoint.commits.ids:
        yield "no-offsets", "state/ is there and no batch is planned"
    for file in find_edited(checkpoint.store, _recent_files(checkpoint)):
        yield "edited", f"{file} does not match its checksum file: it was changed by hand"
    leftovers = len(checkpoint.offsets.leftovers) + len(checkpoint.commits.leftovers)
    if leftovers:
        yield "leftovers", f"{leftovers} temp files in offsets/ and commits/"
    kept = len(checkpoint.offsets.ids)
    if kept > MOST_KEPT:
        yield "growth", f"{kept} batches are kept; spark.sql.streaming.minBatchesToRetain is 100"


def _recent_files(checkpoint: Checkpoint) -> list[str]:
    """The files that decide a restart."""
    return [
        "metadata",
        *(f"offsets/{each}" for each in checkpoint.offsets.ids[-2:]),
        *(f"commits/{each}" for each in checkpoint.commits.ids[-1:]),
    ]


def _lint_state(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    committed = checkpoint.commits.latest
    for path in foreign_schema_paths(checkpoint)[:1]:
        yield "absolute-paths", f"its operators name {path}"
    for operator in checkpoint.state.operators:
        late = [store for store in operator.stores if _changes_since(store) > MOST_CHANGES]
        if late:
            yield (
                "no-snapshot",
                f"{late[0].folder}: {_changes_since(late[0])} changes since a snapshot",
            )
        if committed is None or checkpoint.offsets.latest != committed:
            continue
        for store in operator.stores:
            if committed + 1 not in store.versions:
                yield "incomplete-state", f"{store.folder} has no version {committed + 1}"
                break


def _changes_since(store: StoreFiles) -> int:
    """Changes that a restart must read on top of the last snapshot."""
    last = store.last_snapshot or 0
    return sum(version > last for version, _ in store.changes)


def _compare(every: list[Checkpoint]) -> Iterator[LintFinding]:
    """Findings between checkpoints: one path twice, copies, one inside another."""
    by_id: dict[str, list[str]] = defaultdict(list)
    roots = [checkpoint.store.root.rstrip("/") for checkpoint in every]
    for checkpoint, root in zip(every, roots, strict=True):
        if checkpoint.query_id:
            by_id[checkpoint.query_id].append(root)
        outer = next((each for each in roots if each != root and root.startswith(f"{each}/")), None)
        if outer:
            yield LintFinding(root, "inside-another", f"it lies inside {outer}")
    for root in sorted({each for each in roots if roots.count(each) > 1}):
        yield LintFinding(root, "shared-path", f"{roots.count(root)} queries name this path")
    for query_id, places in by_id.items():
        others = sorted(set(places))
        if len(others) > 1:
            for root in others:
                rest = ", ".join(each for each in others if each != root)
                yield LintFinding(root, "copied", f"query id {query_id} is also at {rest}")
