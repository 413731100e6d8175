"""Everything in this folder runs a real broker, one a test run."""

import contextlib
from pathlib import Path

import pytest
from broker import Broker
from harness import listen  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """The broker that most tests share; topics are each test's own."""
    made = Broker(tmp_path_factory.mktemp("kafka"))
    yield made
    made.stop()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A Spark with its Kafka connector."""
    from kafka_driver import kafka_session

    with contextlib.chdir(tmp_path_factory.mktemp("spark")):  # the JVM stays where it was started
        session = kafka_session()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)
