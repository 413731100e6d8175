"""A real browser, headless."""

from __future__ import annotations

import subprocess

from stage import program


def browse(url, tmp_path, *flags):
    """The page as headless Chromium has it after its script ran."""
    done = subprocess.run(
        [
            *(program("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--virtual-time-budget=6000", *flags, "--dump-dom", url),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=110,
    )
    return done.stdout
