"""A real Spark with Delta for every test of this folder."""

import pytest
from delta_driver import delta_session


@pytest.fixture(scope="session")
def spark():
    """The Spark that reads, restarts and counts."""
    session = delta_session()
    yield session
    session.stop()
