"""How far back the fleet bench gives a past, and what it makes of its figures."""

import sys

from stage import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from fleet import ROWS, table, windows


def test_past_is_as_long_as_the_rules_look_back():
    """Ranges, offsets and both are found in the shipped rules."""
    found = windows()
    assert found["query:streamgauge_batch_duration:mean15m"] == 7 * 86_400 + 3_600
    assert found["streamgauge_query_info"] == 86_400 + 3_600
    assert found["query:streamgauge_input_rows:rate5m"] >= 1_800
    assert "streamgauge_query_data_available" not in found


def test_table_draws_the_line_on():
    """Ten times the last size, along the line through the last two."""
    lines = [{"queries": n, "rule": "x"} | dict.fromkeys(ROWS, 5.0 + n) for n in (10, 100, 1000)]
    rows = table(lines).splitlines()
    assert rows[0].endswith("| 1,000 queries | *10,000* |")
    assert rows[3] == "| series of the agents | 15 | 105 | 1,005 | *10,005* |"
