"""Spark's own file system, which has the credentials, through Py4J: few calls, and nothing written."""

from __future__ import annotations

import re
from typing import Any

from streamgauge.model.sources.waiting import File

_MOST_NAMES = 10_000  # in a folder that is worth a listing at each poll
_STATUS = re.compile(
    r"\{path=(?P<path>.*?); isDirectory=(?P<folder>true|false);(?: length=(?P<length>\d+);)?"
    r".*?modification_time=(?P<modified>\d+);",
    re.DOTALL,
)


class HadoopFiles:
    """Reads with the configuration of one session. All methods wait for the store, and raise its errors."""

    def __init__(self, jvm: Any, conf: Any, wide: set[str]) -> None:
        self._jvm = jvm
        self._conf = conf
        self._wide = wide  # folders that held too much: a listing costs money on object stores

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        files, place = self._find(path)
        return bool(files.exists(place))

    def list(self, path: str) -> list[File] | None:
        """A folder, in one call; None when it is not there, or when it ever held too much."""
        files, place = self._find(path)
        if path in self._wide or not files.exists(place):
            return None
        statuses = files.listStatus(place)
        count = len(statuses)
        if count > _MOST_NAMES:
            self._wide.add(path)
            return None
        text = self._jvm.scala.runtime.ScalaRunTime.stringOf(statuses)  # all in one call
        found = list(_STATUS.finditer(text))
        return [_file(status) for status in found] if len(found) == count else None

    def read(self, path: str, most: int) -> str | None:
        """A file's text; None when it has more bytes than that."""
        files, place = self._find(path)
        if files.getFileStatus(place).getLen() > most:
            return None
        stream = files.open(place)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _find(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self._conf), place


def _file(status: re.Match[str]) -> File:
    return File(
        name=status["path"].rpartition("/")[2],
        folder=status["folder"] == "true",
        length=int(status["length"] or 0),
        modified=int(status["modified"]) / 1000.0,
    )
