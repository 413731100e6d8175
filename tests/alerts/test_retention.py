"""RetentionRisk at its edges: what the agent can and can't know of a source."""

from __future__ import annotations

import pytest
from rule_scenarios import KAFKA
from rule_worlds import HOUR, MINUTE, Values, healthy
from test_alert_edges import check

pytestmark = pytest.mark.timeout(600)

CASES = {
    "half of a day's retention is left": (13 * HOUR, 11 * HOUR, 0),
    "less than half of it is left": (11 * HOUR, 13 * HOUR, 1),
    "a short retention, and nothing waits": (10 * MINUTE, 0, 0),
    "rows are gone and none is left to wait": (0, 0, 1),
    "rows are gone, and how old the others are is unknown": (0, None, 1),
    "the age is unknown and there is time": (2 * HOUR, None, 0),
    "the probe is off, and the query an hour behind": (None, HOUR, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_retention_risk(case, tmp_path):
    """A query that is far behind pages before rows are gone, and after; one that keeps up never."""
    headroom, lag, alerts = CASES[case]

    def world(t: int) -> Values:
        return {
            **healthy(t),
            f"source_retention_headroom_seconds{KAFKA}": headroom,
            f"source_lag_seconds{KAFKA}": lag,
        }

    check(tmp_path, world, "RetentionRisk", 20 * MINUTE, alerts)
