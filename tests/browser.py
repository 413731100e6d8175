"""A real browser, headless."""

from __future__ import annotations

import subprocess
from pathlib import Path

CHROMIUM = Path(__file__).resolve().parent.parent / ".programs" / "bin" / "chromium"


def browse(url: str, folder: Path, *flags: str) -> str:
    """What headless Chromium says of a page after its script ran: the page, unless a flag asks else."""
    assert CHROMIUM.exists(), "chromium is not here; `make setup-integration` brings it"
    done = subprocess.run(
        [
            *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}"),
            *("--virtual-time-budget=6000", *(flags or ("--dump-dom",)), url),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=110,
    )
    return done.stdout
