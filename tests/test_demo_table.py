"""The demo's table: what stands beside each verdict."""

import time
from datetime import datetime, timezone

import pytest
from stage import Life, apply_to

from streamgauge.demo_table import PlainTable
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import QueryStatus


def _iso(at):
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


@pytest.mark.parametrize(
    ("age", "end", "state", "rate"),
    [
        (2, None, "running", "10 rows/s"),
        (2, "idle", "idle", "0 rows/s"),
        (400, "hang", "stalled", ""),
        (2, "terminated", "stopped", ""),
    ],
)
def test_rate_is_of_the_present(age, end, state, rate, capsys):
    """No rows per second stand beside a query that is stalled or over."""
    now, life, fleet = time.time(), Life(), Fleet()
    for text in (life.started(_iso(now - age - 1)), life.progress(_iso(now - age))):
        apply_to(fleet, decode(text), now - age)
    if end == "hang":
        ids = {"query_id": life.query_id, "run_id": life.run_id, "at": now}
        work = {"trigger_active": True, "data_available": True, "phase": "processing"}
        apply_to(fleet, QueryStatus(**ids, **work, trigger_started_at=now - age + 1), now)
    elif end is not None:
        apply_to(fleet, decode(getattr(life, end)()), now)
    PlainTable().draw(fleet.queries, 0.0, "")
    row = capsys.readouterr().out.splitlines()[1]
    assert f" {state} " in row
    before, words, _ = row.partition("rows/s")
    assert (f"{before.split()[-1]} {words}" if words else "") == rate
