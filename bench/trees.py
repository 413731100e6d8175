"""The working tree against an earlier commit, in turns, each run in a Python of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from figures import ROOT


@contextmanager
def base_tree(commit: str) -> Iterator[Path]:
    """A worktree of an earlier commit, removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "base"
        _git("worktree", "add", "--detach", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, cwd=ROOT, capture_output=True)


def take_turns(
    runs: int, once: Callable[[str], float], names: Iterable[str]
) -> dict[str, list[float]]:
    """What each run gave, by name; the first run of each is not counted: it compiles."""
    order = list(names)
    taken: dict[str, list[float]] = {name: [] for name in order}
    for run in range(runs + 1):
        for name in order if run % 2 else reversed(order):
            value = once(name)
            if run:
                taken[name].append(value)
    return taken


def python(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run this Python on the package in a tree; raises when that fails."""
    environ = {**os.environ, "PYTHONPATH": str(tree / "src")}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # both trees run compiled
    return subprocess.run(
        [sys.executable, *words],
        check=True, capture_output=True, text=True, cwd=tempfile.gettempdir(), env=environ,
    )  # fmt: skip
