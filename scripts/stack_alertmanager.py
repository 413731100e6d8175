"""Put an Alertmanager that runs where it lies into the working directory.

Debian's looks for its templates under /usr/share, where an unpacked package is not. So a copy is made that
looks in its working directory: the same bytes but for that path, filled up with slashes to the same length.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setup import PROGRAMS

SHARE = "/usr/share/prometheus/alertmanager"


def main() -> None:
    """Leave `./alertmanager`, and its templates beside it."""
    original = (PROGRAMS / "bin" / "alertmanager").resolve()
    for template in (original.parents[2] / SHARE.lstrip("/")).glob("*.tmpl"):
        shutil.copy(template, ".")
    path = SHARE.encode()
    copy = Path("alertmanager")
    copy.write_bytes(original.read_bytes().replace(path, b".".ljust(len(path), b"/")))
    copy.chmod(0o755)


if __name__ == "__main__":
    main()
