"""Real checkpoints as data: recorded ones (text files whole, others by size), and packed whole ones."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from streamgauge.checkpoint.store import MemoryStore

DATA = Path(__file__).resolve().parent.parent / "data" / "checkpoints"
RECORDED = sorted(str(path.relative_to(DATA).with_suffix("")) for path in DATA.glob("*/*.json"))
PACKED = sorted(str(path.relative_to(DATA).with_suffix("")) for path in DATA.glob("*/*.zip"))


def recorded(name: str) -> MemoryStore:
    """A recorded checkpoint, such as `4.3.0/agg-hdfs`."""
    content = json.loads((DATA / f"{name}.json").read_text())
    sizes = {each["path"]: each["bytes"] for each in content["other_files"]}
    return MemoryStore(content["files"], sizes, root="s3://lake/checkpoints/orders")


def packed(name: str) -> dict[str, bytes]:
    """Every file of a packed checkpoint, such as `4.3.0/agg-rocksdb`."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


def unpack(name: str, folder: Path) -> Path:
    """A packed checkpoint as a directory."""
    for entry, data in packed(name).items():
        path = folder / entry
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder
