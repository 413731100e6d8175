"""Checkpoints as data: recorded ones (text files whole, others by size), packed whole ones, one by hand."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from streamgauge.checkpoint.reader.checkpoint import Checkpoint, read_checkpoint
from streamgauge.checkpoint.reader.store import MemoryStore

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


def kafka_checkpoint(commits: int = 3, root: str = "s3://lake/orders") -> Checkpoint:
    """A stateless Kafka query by hand, four batches planned."""
    files: dict[str, bytes | str] = {"metadata": '{"id":"a"}'}
    for batch in range(4):
        end = json.dumps({"orders": {"0": batch * 10}})
        files[f"offsets/{batch}"] = f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{end}'
    for batch in range(commits + 1):
        files[f"commits/{batch}"] = "v1\n{}"
    return read_checkpoint(MemoryStore(files, root=root))
