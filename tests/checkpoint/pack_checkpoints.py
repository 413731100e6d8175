"""Pack real checkpoints of this environment's Spark into tests/data/checkpoints, for the fuzzer.

    python tests/checkpoint/pack_checkpoints.py

Paths of the machine that made them are rewritten to `/data`; state files are kept as they are.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

from forecast_lab import Laboratory
from forecast_spark import open_session

DATA = Path(__file__).resolve().parent.parent / "data" / "checkpoints"
NAMES = ("plain", "two-sources", "agg-hdfs", "agg-rocksdb", "agg-changelog", "agg-v2", "join-hdfs")


def pack(checkpoint: Path, root: Path, target: Path) -> None:
    """One checkpoint as a zip, without Hadoop's own checksum files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(checkpoint.rglob("*")):
            if path.is_file() and not path.name.endswith(".crc"):
                data = path.read_bytes().replace(str(root).encode(), b"/data")
                entry = zipfile.ZipInfo(str(path.relative_to(checkpoint)))
                archive.writestr(entry, data)


def main() -> int:
    """Build and pack every base that this Spark line has."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        spark = open_session()
        try:
            lab = Laboratory(spark, root)
            for name in NAMES:
                if lab.line in lab.bases[name].lines:
                    target = DATA / spark.version / f"{name}.zip"
                    pack(lab.base(name).checkpoint, root, target)
        finally:
            spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
