"""The shape of the code: sizes, what a driver loads, and that parts are built whole."""

import ast
import json
import subprocess
import sys

import pytest
from stage import ROOT

FOLDERS = ("listener", "exporters", "checkpoint", "grafana", "src/streamgauge")
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_AGENT_METHOD = 350, 50, 25


def _files():
    return [
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if "node_modules" not in path.parts
    ]


def _functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def _length(node):
    return node.end_lineno - node.lineno + 1


def test_no_file_is_long():
    """A file is one room: at most 350 lines."""
    long = {
        str(path.relative_to(ROOT)): count
        for path in _files()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_no_function_is_long():
    """At most 50 lines; the constructor of the agent alone, which connects the parts, is longer."""
    long = {
        f"{path.relative_to(ROOT)}:{node.name}": _length(node)
        for path in _files()
        for node in _functions(path)
        if _length(node) > LONGEST_FUNCTION
    }
    assert set(long) <= {"src/streamgauge/agent.py:__init__"}, long


def test_agent_is_composition():
    """No method of it but the constructor has over 25 lines."""
    methods = _functions(ROOT / "src/streamgauge/agent.py")
    long = {m.name: _length(m) for m in methods if _length(m) > LONGEST_AGENT_METHOD}
    assert set(long) <= {"__init__"}, long


ROOTS = sorted((ROOT / "src/streamgauge").glob("*.py"))
OWN = {"self", "cls", "Agent"}
NOT_OURS = {"sys", "SparkSession"}


@pytest.mark.parametrize("path", ROOTS, ids=lambda path: path.name)
def test_parts_are_built_whole(path):
    """No attribute of a part is set from outside: what it needs goes to its constructor."""
    found = [
        f"{target.lineno}: {ast.unparse(target)}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for target in _targets(node)
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) not in OWN | NOT_OURS
    ]
    assert found == []


def _targets(node):
    """What a statement assigns to."""
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return [node.target]
    assigned = node.targets if isinstance(node, ast.Assign) else []
    return [
        each for one in assigned for each in (one.elts if isinstance(one, ast.Tuple) else [one])
    ]


def test_driver_loads_only_what_it_needs():
    """`addListener` loads nothing of grafana, history or mcp, and of checkpoint at most its reader."""
    code = (
        "import json, sys; from streamgauge import TelemetryListener; import streamgauge.agent; "
        "print(json.dumps([m for m in sys.modules if m.startswith('streamgauge.')]))"
    )
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True))
    rooms = ("grafana", "history", "mcp", "checkpoint", "rehearsal")
    unwanted = [
        name
        for name in loaded
        if name.split(".")[1] in rooms and not name.startswith("streamgauge.checkpoint.reader")
    ]
    assert unwanted == []
