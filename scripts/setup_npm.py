"""Bring the npm packages of a folder that has a package-lock.json; again at no cost.

python3 scripts/setup_npm.py FOLDER …
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from setup import Missing, run, say


def bring(folder: Path) -> None:
    """Put what the lock file names into the folder's node_modules."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / "streamgauge.stamp"
    if stamp.is_file() and stamp.read_text() == lock.read_text():
        return
    if not shutil.which("npm"):
        raise Missing(f"{folder} needs npm; `apt-get install npm` brings it")
    say(f"{folder}: packages from npm")
    run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
    stamp.write_text(lock.read_text())


if __name__ == "__main__":
    try:
        for name in sys.argv[1:]:
            bring(Path(name))
    except (Missing, OSError) as error:
        say(str(error))
        sys.exit(2)
