"""Which locations are on this host. Pure: it looks at the text alone."""

from __future__ import annotations

from pathlib import Path


def find_local(location: str | None) -> Path | None:
    """A path on this host, from `/a/b`, `file:/a/b` or `file:///a/b`; None for any other."""
    if not location:
        return None
    path = location.removeprefix("file:")
    return Path("/" + path.lstrip("/")) if path.startswith("/") else None
