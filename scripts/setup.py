"""Bring what the project needs: virtual environments from PyPI, programs from Debian's packages.

Runs on the standard library alone, as a user or as root, starts no daemon and writes only inside
the project. Run again, it costs nothing: each part leaves a stamp of what it was made from.

    python3 scripts/setup.py [environment ...]      default: 4.3 3.5 programs; also: browser, tools, clock
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / ".programs"
SPARKS = {"4.3": "4.3.0", "4.2": "4.2.1", "4.1": "4.1.4", "4.0": "4.0.5", "3.5": "3.5.9"}
SPARKS["delta"] = "4.2.0"  # the newest that delta-spark 4.4 allows
DEBS = {
    "prometheus": ("prometheus", "promtool"),
    "prometheus-alertmanager": ("prometheus-alertmanager", "amtool"),
    "prometheus-pushgateway": ("prometheus-pushgateway",),
}
JAVAS = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")
NEWEST_JAVA = 21


class Missing(Exception):  # noqa: N818 - it reads as a sentence
    """Something that this script can't bring; says how a person can."""


def say(text: str) -> None:
    """Tell a person."""
    print(f"setup: {text}", flush=True)


def run(*command: str | Path, quiet: bool = True, cwd: Path | None = None) -> str:
    """Run a command; raise with its last words when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        cwd=cwd,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
    )
    if done.returncode:
        words = "\n".join((done.stdout or "").splitlines()[-15:])
        raise Missing(f"{' '.join(map(str, command))} failed:\n{words}")
    return done.stdout or ""


def digest(*parts: str) -> str:
    """Name of a state: the files and words a part is made from."""
    total = hashlib.sha256(Path(__file__).read_bytes())
    for part in parts:
        path = ROOT / part
        total.update(path.read_bytes() if path.is_file() else part.encode())
    return total.hexdigest()


# ---- environments ---------------------------------------------------------------------------


def environment(line: str) -> Path:
    """Where the environment of a Spark line lives: the newest is plain `.venv`."""
    return ROOT / (".venv" if line == "4.3" else f".venv-{line}")


def bring_environment(line: str) -> None:
    """Make the virtual environment of one Spark line, with the project in editable form."""
    home = environment(line)
    stamp = home / "streamgauge.stamp"
    state = digest("pyproject.toml", "requirements.lock", SPARKS[line], sys.version)
    if stamp.is_file() and stamp.read_text() == state:
        return
    say(f"{home.name}: Python {sys.version.split()[0]}, Spark {SPARKS[line]}")
    if not (home / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", "--without-pip", home)
    uv = bring_uv(home)
    connect = "[connect]" if line != "3.5" else ""
    run(
        *(uv, "pip", "install", "--python", home / "bin" / "python"),
        *("--constraint", ROOT / "requirements.lock", "--group", f"{ROOT / 'pyproject.toml'}:dev"),
        *(f"pyspark{connect}=={SPARKS[line]}", "--editable", f"{ROOT}[all]"),
    )
    stamp.write_text(state)


def bring_tools() -> None:
    """Make an environment with what builds and checks a release: neither Spark nor the project."""
    home = ROOT / ".venv-tools"
    stamp = home / "streamgauge.stamp"
    state = digest("requirements.lock", sys.version)
    if stamp.is_file() and stamp.read_text() == state:
        return
    say(f"{home.name}: Python {sys.version.split()[0]}, build")
    if not (home / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", "--without-pip", home)
    run(
        *(bring_uv(home), "pip", "install", "--python", home / "bin" / "python"),
        *("--constraint", ROOT / "requirements.lock", "build"),
    )
    stamp.write_text(state)


def bring_uv(home: Path) -> Path:
    """Put uv into the environment, with whichever pip this machine has, or Debian's own wheel."""
    uv = home / "bin" / "uv"
    if uv.exists():
        return uv
    pin = re.search(r"^uv==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    want = f"uv=={pin[1]}" if pin else "uv"
    python = home / "bin" / "python"
    try:
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", want)
    except Missing:
        run(python, find_pip_wheel() / "pip", "install", "--quiet", want)
    return uv


def find_pip_wheel() -> Path:
    """A pip to start from where Python came without one (Debian and Ubuntu split it off)."""
    try:
        import ensurepip  # noqa: PLC0415 - absent on Debian without python3-venv

        places = [Path(ensurepip.__file__).parent / "_bundled"]
    except ImportError:
        places = []
    for place in (*places, Path("/usr/share/python-wheels")):
        for wheel in place.glob("pip-*.whl"):
            return wheel
    unpack("python3-pip-whl")
    for wheel in (PROGRAMS / "root" / "usr/share/python-wheels").glob("pip-*.whl"):
        return wheel
    raise Missing("there is no pip on this machine; `apt-get install python3-venv` brings one")


# ---- programs -------------------------------------------------------------------------------


def bring_programs() -> None:
    """Put java, prometheus, promtool, alertmanager, amtool and pushgateway into .programs/bin."""
    stamp = PROGRAMS / "streamgauge.stamp"
    state = digest("programs", sysconfig.get_platform())
    if stamp.is_file() and stamp.read_text() == state and java_works(PROGRAMS / "bin" / "java"):
        return
    (PROGRAMS / "bin").mkdir(parents=True, exist_ok=True)
    bring_java()
    for package, names in DEBS.items():
        bring_package(package, names)
    stamp.write_text(state)


def bring_package(package: str, names: tuple[str, ...]) -> None:
    """Use the machine's own programs when all of a package are there, else unpack Debian's."""
    places = {name: find_program(name) for name in names}
    if not all(places.values()):
        try:
            say(f"{package} from Debian's packages")
            unpack(package)
        except Missing as error:
            missing = " and ".join(short(name) for name in names if not places[name])
            raise Missing(
                f"{missing} must be on the PATH: `apt-get install {package}` on Debian and Ubuntu, "
                f"https://prometheus.io/download/ elsewhere ({error})"
            ) from None
        places = {name: PROGRAMS / "root" / "usr/bin" / name for name in names}
    for name, place in places.items():
        link(Path(str(place)), short(name))


def short(name: str) -> str:
    """A program's name everywhere but at Debian: alertmanager."""
    return name.removeprefix("prometheus-")


def find_program(name: str) -> str | None:
    """Where the machine has a program of its own, by either name; what is unpacked here is not."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(f for f in folders if Path(f) != PROGRAMS / "bin")
    return shutil.which(short(name), path=path) or shutil.which(name, path=path)


def bring_browser() -> None:
    """Put a chromium into .programs/bin: the machine's own, else Debian's with all it needs."""
    place = PROGRAMS / "bin" / "chromium"
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    found = shutil.which("chromium")
    if found:
        link(Path(found), "chromium")
        return
    say("chromium from Debian's packages")
    plan = apt("-s", "--no-install-recommends", "install", "chromium", "fonts-dejavu-core")
    for package in re.findall(r"^Inst (\S+)", plan, re.MULTILINE):
        unpack(package)
    root = PROGRAMS / "root"
    folders = {so.parent for so in root.glob("usr/lib/*-linux-gnu/**/*.so*")}
    libraries = ":".join(map(str, sorted(folders)))
    place.write_text(
        f'#!/bin/sh\nexport LD_LIBRARY_PATH="{libraries}"\nexport XDG_DATA_DIRS="{root}/usr/share:/usr/share"\n'
        f'exec "{root}/usr/lib/chromium/chromium" "$@"\n'
    )
    place.chmod(0o755)


def bring_clock() -> None:
    """Unpack libfaketime, with which the fault lab steps the clock of a driver."""
    if not list((PROGRAMS / "root").glob("usr/lib/*/faketime/libfaketime.so.1")):
        say("libfaketime from Debian's packages")
        unpack("libfaketime")


def bring_java() -> None:
    """Use the machine's own Java when Spark can run on it, else unpack one."""
    home = os.environ.get("JAVA_HOME")
    for found in (f"{home}/bin/java" if home else None, shutil.which("java")):
        if found and java_works(Path(found)):
            link(Path(found).resolve(), "java")
            return
    why = ""
    for package in JAVAS:
        try:
            say(f"{package} from Debian's packages")
            unpack(package)
        except Missing as error:
            why = f"\n{error}"
            continue
        for java in (PROGRAMS / "root" / "usr/lib/jvm").glob("java-*/bin/java"):
            if java_works(java):
                link(java, "java")
                return
    raise Missing(
        f"Spark needs Java 17 or 21; `apt-get install openjdk-17-jre-headless` brings it{why}"
    )


def java_works(java: Path) -> bool:
    """Whether this Java runs, and is one that every Spark from 3.5 on can use."""
    try:
        out = run(java, "-version")
    except (Missing, OSError):
        return False
    version = re.search(r'version "(\d+)', out)
    return bool(version) and 17 <= int(version[1]) <= NEWEST_JAVA


def link(target: Path, name: str) -> None:
    """Make .programs/bin/<name> point to a program."""
    if not target.exists():
        raise Missing(f"Debian's package did not hold {target.name}")
    place = PROGRAMS / "bin" / name
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def unpack(package: str) -> None:
    """Unpack one Debian package under .programs/root; nothing is installed or started."""
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Missing(f"{tool}, which would unpack {package}, is not here")
    root, debs = PROGRAMS / "root", PROGRAMS / "debs"
    root.mkdir(parents=True, exist_ok=True)
    debs.mkdir(exist_ok=True)
    for old in debs.glob(f"{package}_*.deb"):
        old.unlink()
    apt("download", package, cwd=debs)
    for deb in debs.glob(f"{package}_*.deb"):
        run("dpkg-deb", "-x", deb, root)
        deb.unlink()
    keep_links_inside(root)


def apt(*words: str, cwd: Path | None = None) -> str:
    """Ask apt-get with lists of our own, which needs no root and touches nothing of the machine."""
    home = PROGRAMS / "apt"
    own = [
        *("-o", f"Dir::State::lists={home}/lists", "-o", f"Dir::Cache={home}"),
        *("-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"),
    ]
    if not (home / "fresh").exists():
        (home / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (home / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        run("apt-get", "-q", *own, "update")
        (home / "fresh").touch()
    return run("apt-get", "-q", *own, *words, cwd=cwd)


def keep_links_inside(root: Path) -> None:
    """Point links such as /etc/java-17-openjdk/... to the unpacked copy."""
    for path in root.rglob("*"):
        if path.is_symlink() and (target := str(path.readlink())).startswith("/"):
            inside = root / target.lstrip("/")
            if inside.exists():
                path.unlink()
                path.symlink_to(os.path.relpath(inside, path.parent))


def main(wanted: list[str]) -> int:
    """Bring what is wanted; the exit status."""
    if sys.version_info < (3, 11):
        say(
            f"Spark 4.3 needs Python 3.11 or newer and this is {sys.version.split()[0]}; "
            "`make PYTHON=python3.12 …` names another one"
        )
        return 2
    try:
        for what in wanted or ["4.3", "3.5", "programs"]:
            if what == "programs":
                bring_programs()
            elif what == "browser":
                bring_browser()
            elif what == "clock":
                bring_clock()
            elif what == "tools":
                bring_tools()
            else:
                bring_environment(what)
    except (Missing, OSError) as error:
        say(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
