"""A real Connect server on loopback, and applications on it."""

import pytest
from connect_app import App
from connect_server import Proxy, Server
from stage import free_port


@pytest.fixture(scope="module")
def one_server(tmp_path_factory):
    """One server for the tests of a file; queries that they leave behind end with it."""
    one = Server(free_port(), tmp_path_factory.mktemp("connect"))
    yield one
    one.kill()


@pytest.fixture
def server(one_server):
    """The server, alive also after a test that killed it."""
    if not one_server.alive:
        one_server.start()
    return one_server


@pytest.fixture
def app(server):
    """Starts applications, and ends them."""
    started = []

    def start(port=None):
        started.append(App(port or server.port))
        started[-1].listen()
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def proxy(server):
    """A network that can be cut."""
    one = Proxy(server.port)
    yield one
    one.close()
