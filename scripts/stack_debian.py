"""Put a program of Debian's that runs where it lies into the working directory: alertmanager or prometheus.

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


def main(name: str) -> None:
    """Leave `./<name>`, and links to its templates beside it."""
    share = SHARES[name]
    for part in (PROGRAMS / "root" / share.lstrip("/")).iterdir():
        Path(part.name).symlink_to(part)
    code = (PROGRAMS / "bin" / name).read_bytes()
    copy = Path(name)
    copy.write_bytes(code.replace(share.encode(), b".".ljust(len(share), b"/")))
    copy.chmod(0o755)


if __name__ == "__main__":
    main(sys.argv[1])
