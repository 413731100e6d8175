"""Everything in this folder runs a real Spark."""

from pathlib import Path

import pytest
from harness import listen, rows, spark  # noqa: F401 - fixtures


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
