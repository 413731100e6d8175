"""How far back the fleet bench gives a past, what its copies are, and what it makes of its figures."""

import sys

import pytest
from stage import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from fleet import ROWS, Times, shares, table
from fleet_copies import fill, make_template
from fleet_past import copies, intervals, steps, windows

QUERY_ID = "d3b1f0aa-0c1e-4f7a-9d52-7a4f0f1e2b3c"


def test_past_is_as_long_as_the_rules_look_back():
    """Ranges, ranges of ranges and offsets are found in the shipped rules."""
    found = windows()
    assert found["query:streamgauge_batch_duration:mean15m"] == 3600
    assert found["query:streamgauge_batch_duration:sumsq1h"] == 7 * 86_400 + 3600
    assert found["query:streamgauge_batch_duration:count1h"] == 7 * 86_400 + 2 * 3600
    assert found["query:streamgauge_input_rows:rate5m"] >= 1800
    assert "streamgauge_query_data_available" not in found


def test_recorded_series_have_a_past_at_the_pace_of_their_group():
    """Once per hour, every five minutes, every half minute."""
    found = steps()
    assert found["query:streamgauge_batch_duration:sum1h"] == 3600
    assert found["instance:streamgauge_query_active:last5m"] == 300
    assert found["query:streamgauge_active:max"] == 30


def test_copy_differs_by_application_and_ids():
    """Two drivers never share a query's id; everything else is the original's."""
    line = f'x{{app="app-0003",query="orders",query_id="{QUERY_ID}"}} 1\n'
    copied = fill(make_template(line), 123)
    assert copied == line.replace("app-0003", "app-0123").replace("d3b1f0aa", "d3b10123")


def test_past_of_a_copy_has_the_labels_of_its_page():
    """Every tenth driver is a copy of the same agent."""
    labels = {"__name__": "x", "app": "app-0003", "instance": "app-0003:9465", "run_id": QUERY_ID}
    found = list(copies(labels, 30))
    assert [one["app"] for one in found] == ["app-0003", "app-0013", "app-0023"]
    assert found[1]["instance"] == "app-0013:9465"
    assert found[1]["run_id"] == QUERY_ID.replace("d3b1f0aa", "d3b10013")
    assert list(copies({"__name__": "up"}, 30)) == [{"__name__": "up"}]


def test_first_round_does_not_count():
    """It reads everything from disk, once."""
    times = Times()
    for at, took in (("2026-11-18T10:00:00Z", 9.0), ("2026-11-18T10:00:30Z", 2.0)):
        rule = {"name": "r", "health": "ok", "lastEvaluation": at, "evaluationTime": took}
        times.note([{"name": "g", "lastEvaluation": at, "evaluationTime": took, "rules": [rule]}])
    assert times.longest() == {("g", ""): 2.0, ("g", "r/0"): 2.0}


def test_shares_are_of_each_groups_own_interval():
    """A minute of an hour is less than a second of half a minute."""
    every = intervals()
    assert every["streamgauge.slices"] == 3600
    found = shares({
        ("streamgauge.slices", ""): 60.0, ("streamgauge.slices", "hour/0"): 60.0,
        ("streamgauge.rules", ""): 3.0, ("streamgauge.rules", "now/0"): 1.5,
    })  # fmt: skip
    assert (found["rule"], found["group"]) == ("now", "streamgauge.rules")
    assert found["rule_share"] == pytest.approx(0.05)
    assert found["group_share"] == pytest.approx(0.1)


def test_table_has_a_column_per_size():
    """Figures that are reported for the same size twice make no second column."""
    lines = [
        {"queries": n, "rule": "x", "group": "y"} | dict.fromkeys(ROWS, 5.0 + n)
        for n in (1000, 10_000)
    ]
    rows = table([*lines, {"figure": "a group", "group": "y"}]).splitlines()
    assert rows[0] == "| | 1,000 queries | 10,000 queries |"
    assert rows[3] == "| series of the agents | 1,005 | 10,005 |"
    assert rows[-1].startswith("At 10,000 queries the slowest rule is `x`")
