"""The start-up bench compares like with like, and its exit status says what it found."""

import json
import sys

import pytest
from stage import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import startup


def test_both_trees_take_turns_and_the_first_run_is_not_counted():
    """Neither always goes first, and none is charged for compiling."""
    asked = []

    def once(name):
        asked.append(name)
        return float(len(asked))

    taken = startup.take_turns(4, once, ("then", "now"))
    assert [len(each) for each in taken.values()] == [4, 4]
    assert asked[2:6] == ["then", "now", "now", "then"]
    assert min(min(each) for each in taken.values()) == 3.0


@pytest.mark.parametrize(("now", "fine"), [(0.24, True), (0.26, False)])
def test_figure_over_its_bound_is_told(now, fine, capsys):
    """In the line, and to the caller; by the medians, so one slow run does no harm."""
    taken = {"now": [now, now, 9.0], "then": [1.0, 1.0, 1.0]}
    assert startup.report_ratio("help", 0.25, taken) is fine
    line = json.loads(capsys.readouterr().out)
    assert line["ok"] is fine
    assert line["value"] == now
    assert line["median_ms_then"] == 1000


def test_what_a_driver_has_no_use_for_is_counted():
    """The dashboards and the commands on checkpoints; not the reader, nor the model of the same words."""
    modules = {
        "streamgauge",
        "streamgauge.checkpoint",
        "streamgauge.checkpoint.reader",
        "streamgauge.checkpoint.reader.store",
        "streamgauge.checkpoint.plan",
        "streamgauge.grafana.alerts",
        "streamgauge.model.checkpoint_names",
        "streamgauge.model.sources.history",
    }
    assert startup.without_use(modules) == [
        "streamgauge.checkpoint.plan",
        "streamgauge.grafana.alerts",
    ]


def test_other_trees_package_is_the_one_that_runs(tmp_path):
    """The tree's own `src` wins over what is installed."""
    package = tmp_path / "src" / "streamgauge"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("print('the other one')")
    assert startup.python(tmp_path, "-c", "import streamgauge").stdout == "the other one\n"
