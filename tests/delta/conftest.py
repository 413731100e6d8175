"""Everything in this folder runs a real Spark with Delta."""

import pytest
from delta_driver import delta_session


@pytest.fixture(scope="module")
def spark():
    """The Spark that reads, restarts and counts."""
    session = delta_session()
    yield session
    session.stop()
