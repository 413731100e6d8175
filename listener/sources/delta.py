"""Delta: `{"reservoirVersion": 5, "index": -1, …}`, a version of the table and a file in it.

An index of -1 (-100 before Delta 2.3) says that nothing of that version was read yet. Versions don't
count rows. Open-source Delta tells neither a latest offset nor metrics; Databricks tells
`numFilesOutstanding` and `numBytesOutstanding`.
"""

from __future__ import annotations

from typing import Any

from .reader import Reader


def _version(offset: Any) -> int | None:
    """The newest version that was begun."""
    if not isinstance(offset, dict):
        return None
    version, index = offset.get("reservoirVersion"), offset.get("index")
    if type(version) is not int or type(index) is not int or version < 0:
        return None
    return version - 1 if index < 0 else version


READER = Reader(kind="delta", beginnings=("DeltaSource[",), version=_version)
