"""Everything in this folder runs a real broker, one a test run."""

from pathlib import Path

import pytest
from broker import Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """The broker that most tests share; topics are each test's own."""
    made = Broker(tmp_path_factory.mktemp("kafka"))
    yield made
    made.stop()


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)
