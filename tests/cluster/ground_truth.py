"""What a query has done by the files that Spark left, without the agent: its logs, its sink, its input."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse


class Truth:
    """The folder of one query: `in`, `out`, `checkpoint`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._checkpoint = folder / "checkpoint"

    def planned(self) -> list[int]:
        """The batches in the offset log."""
        return _numbers(self._checkpoint / "offsets")

    def committed(self) -> list[int]:
        """The batches in the commit log."""
        return _numbers(self._checkpoint / "commits")

    def committed_at(self, batch: int) -> float:
        """When a batch was committed."""
        return (self._checkpoint / "commits" / str(batch)).stat().st_mtime

    def with_data(self, batch: int) -> bool:
        """Whether a batch moved the source's offset."""
        return self._offset(batch) != (self._offset(batch - 1) if batch else -1)

    def _offset(self, batch: int) -> int:
        lines = (self._checkpoint / "offsets" / str(batch)).read_text().splitlines()
        return json.loads(lines[2])["logOffset"]

    def input_ids(self, batch: int) -> list[int]:
        """The ids of all rows that a batch has read, by the source's log."""
        log = self._checkpoint / "sources" / "0" / str(batch)
        return [row["id"] for entry in _entries(log) for row in _rows(entry["path"])]

    def output_ids(self) -> list[int]:
        """The ids of all rows in the sink that readers see, by the sink's log."""
        log = self._folder / "out" / "_spark_metadata"
        files = [entry["path"] for number in _numbers(log) for entry in _entries(log / str(number))]
        return [row["id"] for path in files for row in _rows(path)]


def _numbers(log: Path) -> list[int]:
    names = [file.name for file in log.iterdir()] if log.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal())


def _entries(file: Path) -> list[dict]:
    version, *lines = file.read_text().splitlines()
    assert version == "v1"
    return [json.loads(line) for line in lines]


def _rows(url: str) -> list[dict]:
    path = Path(unquote(urlparse(url).path))
    return [json.loads(line) for line in path.read_text().splitlines()]
