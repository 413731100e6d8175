"""The fault lab's driver and stack, one for the faults of a file."""

from __future__ import annotations

import pytest
from lab import Lab

QUERIES = {"safe": {"idempotent_sink": True}}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The driver and the stack; at the end, no page may be left that no fault called for."""
    # A commit takes as long as the disk needs, however fast the rules run: a second, as shipped.
    folder = tmp_path_factory.mktemp("lab")
    counts = {"state_rows": 500, "backlog_files": 10}
    with Lab(folder, queries=QUERIES, commit_seconds=60, **counts) as running:
        yield running
        assert not running.strays()
