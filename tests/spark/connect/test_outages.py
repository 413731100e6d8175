"""A Connect server that is killed and restarted, and a network that is cut."""

import time

import pytest
from connect_app import exits, goes_on
from stage import value, wait_for


def _starts(apps):
    for one in apps:
        one.tell("query = start('q')")
    for one in apps:
        wait_for(lambda one=one: one.batches("q") >= 3, 90, "batches")


def _all_blind(apps, why):
    deadline = time.monotonic() + 30
    for one in apps:
        left = deadline - time.monotonic()
        wait_for(lambda one=one: one.state("q") == "blind", left, "blind")
    for one in apps:
        assert why in one.reason("q")


def _stay_blind(apps, until):
    while time.monotonic() < until:
        assert {one.state("q") for one in apps} == {"blind"}
        time.sleep(1)


def _ends(samples):
    """How many ends were told, by outcome."""
    found = {}
    for (name, labels), number in samples.items():
        if name == "streamgauge_query_terminations_total":
            outcome = dict(labels)["outcome"]
            found[outcome] = found.get(outcome, 0) + number
    return found


@pytest.mark.integration
@pytest.mark.timeout(500)
def test_network_cut_for_forty_seconds_loses_nothing(app, proxy):
    """Blind while it lasts; then every batch, once, and no false end; exit with and without it."""
    apps = app(proxy.port), app(proxy.port)
    _starts(apps)
    proxy.cut()
    until = time.monotonic() + 40
    _all_blind(apps, "has not answered")
    _stay_blind(apps, until)
    proxy.mend()
    for one in apps:
        wait_for(lambda one=one: one.state("q") == "running", 90, "running")
        goes_on(one, "q")
        samples = one.page()
        assert value(samples, "agent_missed_batches_total", query=None) == 0
        assert value(samples, "agent_events_total", query=None, kind="duplicate") == 0
        assert value(samples, "query_starts_total", query="q") == 1
        assert sum(_ends(samples).values()) == 0
        batches = value(samples, "batches_total", query="q", data="true")
        assert value(samples, "last_committed_batch_id", query="q") == batches - 1
        assert value(samples, "input_rows_total", query="q") == 10 * batches
    exits(apps[0])
    proxy.cut()
    _all_blind(apps[1:], "has not answered")
    exits(apps[1])


@pytest.mark.integration
@pytest.mark.timeout(500)
def test_server_killed_for_sixty_seconds_is_told_and_its_successor_joined(app, server):
    """Blind soon; right soon after the application has a session; exit with and without a server."""
    apps = app(), app()
    _starts(apps)
    server.kill()
    until = time.monotonic() + 60
    _all_blind(apps, "server is gone")
    _stay_blind(apps, until)
    server.start()
    for one in apps:
        one.tell("old = spark; spark = SparkSession.builder.remote(url).create()")
        # gRPC tries the address again when it likes, up to two minutes later; then there is a session.
        one.tell("query = start('q')", 200)
        wait_for(lambda one=one: one.state("q") == "running", 30, "running")
        goes_on(one, "q")
        samples = one.page()
        assert value(samples, "query_active", query="q") == 1
        assert len([name for name, _ in samples if name == "streamgauge_query_info"]) == 1
        assert _ends(samples) == {"failed": 0, "stopped": 0, "unknown": 1}
    exits(apps[0])
    server.kill()
    _all_blind(apps[1:], "server is gone")
    exits(apps[1])
