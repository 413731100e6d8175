"""What GitHub runs is what the Makefile has; what a tag releases is what the changelog says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from stage import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from release_notes import Disagreement, notes
from setup import SPARKS

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHECK = Path(sys.executable).with_name("check-jsonschema")


def steps():
    """Every step of every job, with the name of its workflow."""
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for step in job.get("steps", ()):
                yield path.name, step


def test_workflows_fit_the_schema():
    """GitHub's own schema, as check-jsonschema carries it."""
    for schema in ("vendor.github-workflows", "vendor.compose-spec"):
        done = subprocess.run(
            [str(CHECK), "--builtin-schema", schema, *map(str, WORKFLOWS)],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        # The second is the counter-proof: a tool that says yes to everything would pass it.
        assert (done.returncode == 0) == (schema == "vendor.github-workflows"), done.stdout


def test_workflows_run_the_makefiles_targets():
    """CI knows no command of its own, but for the release page."""
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"].split() for _, step in steps() if "run" in step]
    for words in commands:
        assert words[:3] == ["gh", "release", "create"] or (
            words[0] == "make" and words[1] in targets
        )
    called = {words[1] for words in commands}
    assert {"check", "test", "test-integration", "test-matrix", "sbom"} <= called


def test_workflows_pin_every_action_by_its_commit():
    """A tag can be moved, and what runs here can publish."""
    for name, step in steps():
        uses = step.get("uses", "")
        assert not uses or re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", uses), (name, uses)


def test_matrix_covers_every_spark_line():
    """What `make test` leaves out, the matrix has."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    lines = {entry["spark"] for entry in jobs["matrix"]["strategy"]["matrix"]["include"]}
    assert lines | {"3.5"} == {line for line in SPARKS if line[0].isdigit()}


CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.3] - 2026-11-16

### Added

- A thing.

## [1.2.2] - 2026-11-01

- Before.

[1.2.3]: https://example.org
"""


def test_release_notes_are_the_section_of_the_tag():
    """All of it, and nothing of the ones before."""
    assert notes("v1.2.3", "1.2.3", CHANGELOG) == "### Added\n\n- A thing.\n"
    assert notes("v1.2.2", "1.2.2", CHANGELOG) == "- Before.\n"


@pytest.mark.parametrize(
    ("tag", "version", "why"),
    [
        ("v1.2.4", "1.2.3", "version.py says '1.2.3'"),
        ("", "1.2.3", "version.py says '1.2.3'"),
        ("v1.2.1", "1.2.1", "no section"),
        ("v1.2.30", "1.2.30", "no section"),
    ],
)
def test_release_refuses_a_tag_that_something_contradicts(tag, version, why):
    """Whoever tags the wrong commit is told before anything is published."""
    with pytest.raises(Disagreement, match=why):
        notes(tag, version, CHANGELOG)
