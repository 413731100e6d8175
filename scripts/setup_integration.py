"""Bring what the integration tests need beyond `scripts/setup.py`: a trace store.

Jaeger v2, built from the Go module proxy. Its v2 releases carry no module of their own; the module's
v1.76.0 holds `cmd/jaeger`, which is Jaeger 2.13. `go install` refuses a module with replacements, so
it is built as the main module. Its web pages are no part of the module: the binary serves a
placeholder, and its API, which is what the tests ask, in full. Takes ten minutes of processor
time and 3 GB while it builds; 85 MB stay. Run again, it costs nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setup import PROGRAMS, Missing, digest, run, say

JAEGER = "github.com/jaegertracing/jaeger@v1.76.0"


def bring_jaeger() -> None:
    """Put jaeger into .programs/bin."""
    program, stamp = PROGRAMS / "bin" / "jaeger", PROGRAMS / "jaeger.stamp"
    state = digest("jaeger", JAEGER, sysconfig.get_platform())
    if program.exists() and stamp.is_file() and stamp.read_text() == state:
        return
    if not shutil.which("go"):
        raise Missing("Jaeger is built with Go 1.25 or newer; `apt-get install golang` brings it")
    say("jaeger from the Go module proxy; ten minutes, once")
    work = PROGRAMS / "go"
    os.environ |= {"GOMODCACHE": str(work / "mod"), "GOCACHE": str(work / "cache")}
    os.environ |= {"GOFLAGS": "-modcacherw -buildvcs=false", "CGO_ENABLED": "0"}
    work.mkdir(parents=True, exist_ok=True)
    source = Path(json.loads(run("go", "mod", "download", "-json", JAEGER, cwd=work))["Dir"])
    program.parent.mkdir(exist_ok=True)
    run("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/jaeger", cwd=source)
    shutil.rmtree(work)
    stamp.write_text(state)


if __name__ == "__main__":
    try:
        bring_jaeger()
    except (Missing, OSError) as error:
        say(str(error))
        sys.exit(2)
