"""docs/restarts.md keeps up with the code: the table, the verdicts, the sinks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from forecast_bases import bases
from forecast_cases import cases

from streamgauge.model.sinks import SINKS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "restarts.md").read_text()


@pytest.mark.parametrize("line", ["4.3", "3.5"])
def test_table_in_the_docs_is_the_matrix(line):
    """Every case of the line is in its table, right, and at most one in twenty is unknown."""
    table = PAGE.partition(f"<!-- forecast {line} -->")[2].partition(f"<!-- /forecast {line} -->")[
        0
    ]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .* \| (.) \|$", table, re.MULTILINE)
    every = bases()
    wanted = [case.id for case in cases() if line in case.lines and line in every[case.base].lines]
    assert [name for name, _, _ in rows] == wanted
    assert {mark for _, _, mark in rows} == {"✓"}
    assert sum(seen.startswith("unknown") for _, seen, _ in rows) <= len(rows) * 0.05


def test_every_sink_and_verdict_is_explained():
    """What the commands can say is in the page."""
    folded = PAGE.lower()
    for word in (*SINKS, "safe with duplicates", "loses data", "will fail", "unknown"):
        assert word.lower() in folded
