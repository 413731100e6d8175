"""Everything in this folder runs a real Spark."""

from pathlib import Path

import pyspark
import pytest
from harness import listen, rows, spark  # noqa: F401 - fixtures

ON_4 = int(pyspark.__version__.partition(".")[0]) >= 4
# Connect of Spark 3.5 runs listeners on the server: there is nothing to test but its error.
collect_ignore = [] if ON_4 else ["connect"]


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
