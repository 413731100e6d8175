"""The fault lab uses the alert tests' programs, and writes its results into the docs when asked."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "alerts"))

import pytest
from lab import Lab


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """One driver and one stack for all faults; each fault runs a query of its own."""
    # A commit takes as long as the disk needs, however fast the rules run: a second, as shipped.
    with Lab(tmp_path_factory.mktemp("lab"), state_rows=500, commit_seconds=60) as running:
        yield running
        assert not running.strays()
