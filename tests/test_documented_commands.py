"""Every command line in the runbooks and the documentation is one that the program understands."""

from __future__ import annotations

import re
import shlex

import pytest
from stage import ROOT

from streamgauge.cli import build_parser

RUNBOOKS = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
GUIDES = sorted(
    {*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), ROOT / "docker/README.md"} - {*RUNBOOKS}
)
_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^ *(?:\$ )?(streamgauge [a-z].*)$", re.MULTILINE)
_INLINE = re.compile(r"`(streamgauge [a-z][^`]*)`")
# What stands for something that the reader knows, and has to be of another type than text.
_NUMBERS = re.compile(r"\bN\b")


def typed(path):
    """Command lines in blocks, that are there to be typed."""
    for block in _BLOCK.findall(path.read_text()):
        yield from _LINE.findall(block.replace("\\\n", " "))


def mentioned(path):
    """Commands within sentences."""
    return [" ".join(text.split()) for text in _INLINE.findall(_BLOCK.sub("", path.read_text()))]


def understood(command):
    """Whether the real parser takes it; what is optional, in brackets, is given."""
    words = shlex.split(_NUMBERS.sub("7", command.translate({91: None, 93: None})), comments=True)
    try:
        build_parser().parse_args(words[1:])
    except SystemExit as ended:
        return ended.code == 0
    return True


def lines(paths, *kinds):
    """Each command as a case of its own."""
    return [
        pytest.param(command, id=f"{path.stem}: {command.partition('#')[0].strip()}")
        for path in paths
        for kind in kinds
        for command in kind(path)
    ]


@pytest.mark.parametrize("command", lines(RUNBOOKS, typed, mentioned))
def test_command_of_a_runbook_can_be_typed_as_it_stands(command):
    """At night nobody looks up the argument that was left out."""
    assert understood(command)


@pytest.mark.parametrize("command", lines(GUIDES, typed))
def test_command_of_a_guide_can_be_typed_as_it_stands(command):
    """With the reader's own paths."""
    assert understood(command)


@pytest.mark.parametrize("command", lines(GUIDES, mentioned))
def test_command_that_a_guide_speaks_of_exists(command, capsys):
    """A sentence may leave arguments out, but names no command or option that there is not."""
    if not understood(command):
        options = re.findall(r"--[\w-]+", command)
        assert understood(re.sub(r"--[\w-]+|…", "", command) + " --help")
        said = capsys.readouterr().out
        assert all(option in said for option in options)


def test_commands_were_found():
    """The patterns above find what they are for."""
    assert len(lines(RUNBOOKS, typed)) >= len(RUNBOOKS) - 2
    assert len(lines(GUIDES, typed)) > 8
    assert len(lines(GUIDES, mentioned)) > 8


@pytest.mark.parametrize(
    "command",
    [
        "streamgauge checkpoint preflight CHECKPOINT",
        "streamgauge checkpoint show CHECKPOINT --history N",
        "streamgauge checkpoint plan CHECKPOINT --goal rewind",
    ],
)
def test_wrong_command_is_seen(command, capsys):
    """An argument that is missing, an option or a value that there is not."""
    assert not understood(command)
    assert capsys.readouterr().err
