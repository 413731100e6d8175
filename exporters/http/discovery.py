"""The `sd_file`: where Prometheus' file-based discovery finds this driver."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from streamgauge.config import ConfigError


class DiscoveryFile:
    """Holds one target, this driver's. One thread at a time."""

    def __init__(self, path: str, *, target: str, https: bool) -> None:
        self._path = Path(path)
        self._target = target  # host:port
        self._https = https
        self._written = b""

    def write(self, app_name: str) -> None:
        """Name the target as that of this application; raise `ConfigError` when that can't be done."""
        self._written = self._describe(app_name)
        try:
            _replace(self._path, self._written)
        except (OSError, ValueError) as error:
            hint = "its folder must be there, and the driver's user must be allowed to write to it"
            path = str(self._path)
            raise ConfigError(f"sd_file {path!r} can't be written: {error}; {hint}") from None

    def withdraw(self) -> None:
        """Take the target back, unless another driver has put its own in its place."""
        with contextlib.suppress(FileNotFoundError):
            if self._path.read_bytes() == self._written:
                self._path.unlink()

    def _describe(self, app_name: str) -> bytes:
        """The target, as Prometheus' file-based discovery reads it."""
        labels = {"__scheme__": "https"} if self._https else {}
        if app_name:
            labels["spark_app"] = app_name
        return json.dumps([{"targets": [self._target], "labels": labels}]).encode() + b"\n"


def _replace(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, for all to read."""
    import tempfile  # noqa: PLC0415 - only where it is wanted

    handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o644)
            file.write(content)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink()
        raise
