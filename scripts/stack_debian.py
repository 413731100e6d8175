"""Put a program of Debian's that runs where it lies into a folder: alertmanager or prometheus.

    python scripts/stack_debian.py NAME      into the working directory

Debian's look for their templates under /usr/share, where an unpacked package is not. So a copy is made that
looks in its working directory: the same bytes but for that path, filled up with slashes to the same length.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setup import PROGRAMS

SHARES = {
    "alertmanager": "/usr/share/prometheus/alertmanager",
    "prometheus": "/usr/share/prometheus/web/",
}


def place(name: str, folder: Path) -> Path:
    """Make the copy in a folder, with links to its templates beside it; its path."""
    share = SHARES[name]
    for part in (PROGRAMS / "root" / share.lstrip("/")).iterdir():
        (folder / part.name).symlink_to(part)
    code = (PROGRAMS / "bin" / name).read_bytes()
    copy = folder / name
    copy.write_bytes(code.replace(share.encode(), b".".ljust(len(share), b"/")))
    copy.chmod(0o755)
    return copy


if __name__ == "__main__":
    place(sys.argv[1], Path())
