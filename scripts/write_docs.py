"""Write the generated pages of docs/; `--check` only says whether they have drifted."""

import sys
from pathlib import Path

from streamgauge.exporters.reference import write_markdown

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = {"metrics.md": write_markdown}


def main(check: bool) -> int:
    """Write or compare each page; 1 if one has drifted."""
    drifted = 0
    for name, write in PAGES.items():
        page = DOCS / name
        text = write()
        if check and (not page.exists() or page.read_text(encoding="utf-8") != text):
            print(f"docs/{name} has drifted from its table; `make docs` writes it anew")
            drifted = 1
        elif not check:
            page.write_text(text, encoding="utf-8")
    return drifted


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
