"""Print the changelog's section of a tag; refuse a tag that the version or the changelog contradicts.

python scripts/release_notes.py v1.2.3
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from streamgauge import __version__

ROOT = Path(__file__).resolve().parent.parent


class Disagreement(Exception):  # noqa: N818 - it reads as a sentence
    """What must be put right before this tag can be released."""


def notes(tag: str, version: str, changelog: str) -> str:
    """The section of the tag's version; raises `Disagreement`."""
    if tag != f"v{version}":
        raise Disagreement(f"the tag is {tag!r} and src/streamgauge/version.py says {version!r}")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[|\Z)"
    found = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if not found:
        raise Disagreement(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`")
    if not found[1].strip():
        raise Disagreement(f"CHANGELOG.md says nothing about {version}")
    return found[1].strip() + "\n"


def main(tag: str) -> int:
    """Print the notes; 2 when there are none to print."""
    try:
        text = notes(tag, __version__, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    except Disagreement as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
