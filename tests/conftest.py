"""Fixtures for every test, and an environment that is the same everywhere."""

from __future__ import annotations

import contextlib
import os
import subprocess
import urllib.request

import pytest
from hypothesis import HealthCheck, settings
from stage import ROOT, QuietDriver, free_port, program, wait_for

from streamgauge.agent import Agent
from streamgauge.config import make_config

# How long a draw takes says something of the machine, not of the code.
settings.register_profile("quiet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quiet")

os.environ["PATH"] = f"{ROOT / '.programs' / 'bin'}{os.pathsep}{os.environ['PATH']}"
for _variable in ("JAVA_HOME", "SPARK_HOME"):
    os.environ.pop(_variable, None)
for _variable in [name for name in os.environ if name.startswith(("STREAMGAUGE_", "OTEL_"))]:
    del os.environ[_variable]


@pytest.fixture(autouse=True)
def _one_agent_a_test():
    """No test inherits the process's agent from the one before."""
    yield
    if Agent._shared is not None:
        Agent._shared.close()


@pytest.fixture
def agent():
    """Makes agents without Spark, started, and closes them."""
    made = []

    def make(*, exporters=(), logger=None, **settings):
        settings.setdefault("metrics_address", "")
        settings.setdefault("app", "shop")
        settings.setdefault("log_level", "off")
        new = Agent(make_config(settings), exporters=exporters, logger=logger, driver=QuietDriver())
        new.start()
        made.append(new)
        return new

    yield make
    for old in made:
        old.close()


@pytest.fixture
def gateway():
    """Starts real Pushgateways on loopback, each ready when its address is returned; stops them."""
    running = []

    def start(port=None):
        port = port or free_port()
        # Debian's own keeps what it got on disk, for the next test to find, unless told not to.
        command = [program("pushgateway"), f"--web.listen-address=127.0.0.1:{port}"]
        command.append("--persistence.file=")
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: _ready(url), 20, "the gateway")
        return url

    yield start
    for one in running:
        one.terminate()
        one.wait(20)


def _ready(url):
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/-/ready", timeout=1) as said:
        return said.status == 200
    return False
