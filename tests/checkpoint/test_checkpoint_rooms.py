"""The rooms of the package: which imports which, what a command costs, and what decides."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import streamgauge.checkpoint as package

FOLDER = Path(package.__file__).parent
EVIDENCE = FOLDER.parent / "evidence.py"
FILES = sorted(FOLDER.rglob("*.py"))
# Each room may import those before it. `errors` is below them all.
ROOMS = (
    "errors",
    "reader",
    "audit",
    "restart",
    "preflight_check",
    "remedies",
    "evidence",
    "render",
    "commands",
    "__main__",
)
ALLOWED = (
    "streamgauge.checkpoint",
    "streamgauge.model",
    "streamgauge.masking",
    "streamgauge.errors",
)
# Attributes that hold sentences of ours.
PROSE = {
    "advice",
    "assumptions",
    "do",
    "needs",
    "notes",
    "reason",
    "sentence",
    "sink_effect",
    "sink_effects",
    "what",
    "why",
}
SEARCHES = {
    *("startswith", "endswith", "find", "index", "count", "removeprefix", "removesuffix"),
    *("split", "rsplit", "partition", "rpartition", "match", "search", "fullmatch", "findall"),
}
SAMPLE = """
def judge(start):
    for note in start.notes:
        if "goes on" in note:
            return start.reason.startswith("x")
    file, _, what = start.broken.what.partition(": ")
    text = start.reason
    return text == "is missing" or any(re.search("a", each) for each in start.assumptions)
"""


def room_of(path):
    """The room that a file of the package is in."""
    return path.relative_to(FOLDER).parts[0].removesuffix(".py")


def imports_of(path):
    """Absolute names of the modules of ours that a file imports, wherever in it."""
    parent = ["streamgauge", "checkpoint", *path.relative_to(FOLDER).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (
                ".".join([*parent, *([node.module] if node.module else [])])
                if node.level
                else (node.module)
            )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_imports_point_one_way(path):
    """A room imports itself, rooms before it and, of the rest of streamgauge, model and masking."""
    ours = [name for name in imports_of(path) if name.startswith("streamgauge")]
    assert [name for name in ours if not name.startswith(ALLOWED)] == []
    if path.name == "__init__.py" and path.parent == FOLDER:
        return
    rooms = {name.split(".")[2] for name in ours if name.startswith("streamgauge.checkpoint.")}
    assert {room for room in rooms if ROOMS.index(room) > ROOMS.index(room_of(path))} == set()


def decisions_on_prose(tree):
    """Comparisons with, and searches in, a sentence of ours: (line, code), names followed."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        named = _names_of_prose(function)

        def is_prose(node, named=named):
            if isinstance(node, ast.Subscript):
                node = node.value
            return (isinstance(node, ast.Attribute) and node.attr in PROSE) or (
                isinstance(node, ast.Name) and node.id in named
            )

        for node in ast.walk(function):
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in SEARCHES
            ):
                parts = [node.func.value, *node.args]
            else:
                continue
            if any(is_prose(part) for part in parts):
                found.append((node.lineno, ast.unparse(node)))
    return sorted(found)


def _names_of_prose(function):
    """Names bound in a function to a sentence, or to one of several."""
    named = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.comprehension)):
            target, value = node.target, node.iter
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        else:
            continue
        if isinstance(value, ast.Subscript):
            value = value.value
        if isinstance(value, ast.Attribute) and value.attr in PROSE:
            named |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    return named


@pytest.mark.parametrize("path", [*FILES, EVIDENCE], ids=lambda path: path.stem)
def test_no_decision_rests_on_prose(path):
    """Sentences are for people: code compares enums and records."""
    assert decisions_on_prose(ast.parse(path.read_text())) == []


def test_decisions_on_prose_are_found():
    """The check finds what it is meant to find, also through a name."""
    assert [line for line, _ in decisions_on_prose(ast.parse(SAMPLE))] == [4, 5, 6, 8, 8]


def loaded(code):
    """The modules that are loaded after some code ran in a fresh Python."""
    code = f"import sys\n{code}\nsys.stdout.write('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def rooms_in(modules):
    """The rooms of the package that are among some modules."""
    names = {name.split(".")[2] for name in modules if name.startswith("streamgauge.checkpoint.")}
    return names & set(ROOMS)


def test_reader_loads_nothing_else():
    """The package itself is lazy: whoever reads files pays for no forecast."""
    assert rooms_in(loaded("import streamgauge.checkpoint")) == set()
    assert rooms_in(loaded("import streamgauge.checkpoint.reader.report")) == {"errors", "reader"}


def test_show_loads_what_it_needs(tmp_path):
    """No forecast, plan, preflight, network or logging on the way of the quickest command."""
    code = "from streamgauge.checkpoint.__main__ import main\nmain(['show', sys.argv[0] or '.'])"
    modules = loaded(code.replace("sys.argv[0] or '.'", repr(str(tmp_path))))
    assert rooms_in(modules) <= {"errors", "reader", "remedies", "render", "commands", "__main__"}
    assert {name for name in modules if name.startswith("streamgauge.checkpoint.remedies.")} == {
        "streamgauge.checkpoint.remedies.goal_names"
    }
    heavy = {"structlog", "opentelemetry", "prometheus_client", "fsspec", "importlib.metadata"}
    assert modules & (heavy | {"pyspark", "py4j", "urllib.request", "zipfile"}) == set()


def test_public_names_are_all_there():
    """Every name of `__all__` can be imported, is documented as lazy, and no room hides it."""
    for name in package.__all__:
        found = getattr(package, name)
        assert type(found).__name__ != "module", name
    assert not set(package.__all__) & set(ROOMS)
    with pytest.raises(AttributeError, match="nosuch"):
        _ = package.nosuch
