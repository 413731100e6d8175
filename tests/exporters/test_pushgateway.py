"""Runs that end before anybody scrapes them leave their state on a real Pushgateway."""

import contextlib
import io
import os
import socket
import time
import urllib.request

import pytest
from exposition import exporter_alone, tell
from stage import Life, feed, free_port, page, value, wait_for

from streamgauge.exporters.logs import make_logger
from streamgauge.exporters.metrics.pushgateway import PushgatewayExporter
from streamgauge.model.application import Application, CurrentApplication


def _read(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def _settings(port):
    return {"pushgateway_url": f"http://127.0.0.1:{port}"}


def test_short_run_is_there_afterwards(gateway, agent):
    """Every batch and row, the end, and that it is over."""
    port = free_port()
    gateway(port)
    life, run = Life(), agent(**_settings(port))
    feed(run, life.started(), life.progress(), life.progress(), life.terminated())
    run.close()
    samples = page(_read(port))
    assert value(samples, "batches_total", data="true") == 2
    assert value(samples, "input_rows_total") == 20
    assert value(samples, "query_active") == 0
    assert value(samples, "query_state", state="stopped") == 1
    assert value(samples, "agent_errors_total", query=None, part="pushgateway") == 0


def test_failure_and_its_reason_are_there_afterwards(gateway, agent):
    """The page of a job that is over says why it failed."""
    port = free_port()
    gateway(port)
    life, run = Life(), agent(**_settings(port))
    feed(run, life.started(), life.terminated("a.B: x\n\tat c\nCaused by: a.C: disk is full"))
    run.close()
    samples = page(_read(port))
    failure = {"error_class": "B", "cause_class": "C", "message": "disk is full"}
    assert value(samples, "query_failure_info", **failure) == 1
    reason = "B, caused by C: disk is full"
    assert value(samples, "query_reason_info", state="failed", reason=reason) == 1
    assert value(samples, "query_ended_timestamp_seconds") == pytest.approx(time.time(), abs=60)


def test_gateway_that_comes_up_late_gets_it_all(gateway, agent):
    """Down at first: the push is tried again soon, and the failures are counted."""
    port = free_port()
    life, run = Life(), agent(**_settings(port))
    feed(run, life.started(), life.progress(), life.terminated())
    wait_for(lambda: run.stats.of("errors").get("pushgateway"), what="a push that failed")
    gateway(port)
    pushed = wait_for(lambda: (t := _read(port)) and "streamgauge_" in t and t, 40, "a push")
    assert value(page(pushed), "input_rows_total") == 10


def test_gateway_that_comes_up_while_closing_gets_it(gateway, agent):
    """The last push is tried for as long as the exit may take."""
    port = free_port()
    life, run = Life(), agent(**_settings(port))
    feed(run, life.started(), life.progress())
    gateway(port)
    run.close()
    assert value(page(_read(port)), "input_rows_total") == 10


def test_two_drivers_never_overwrite_each_other(gateway):
    """Each has a group of its own, by app and instance."""
    port = free_port()
    url = gateway(port)
    for number in (1, 2):
        exporter, fleet, registry = exporter_alone()
        life = Life()
        tell(exporter, fleet, life.started(), *(life.progress() for _ in range(number)))
        pushing = PushgatewayExporter(
            url,
            registry,
            application=lambda: Application(name="shop"),
            failed=pytest.fail,
            instance=f"host:{number}",
        )
        pushing.start()
        pushing.close()
    found = page(_read(port))
    assert value(found, "input_rows_total", instance="host:1", app="shop") == 10
    assert value(found, "input_rows_total", instance="host:2", app="shop") == 20


def test_instance_is_host_and_process(gateway):
    """Unless it is given; the application's name is asked for with each push."""
    port = free_port()
    url = gateway(port)
    exporter, fleet, registry = exporter_alone()
    current = CurrentApplication(Application())
    pushing = PushgatewayExporter(url, registry, application=current, failed=pytest.fail)
    pushing.start()
    tell(exporter, fleet, Life().started())
    current.enter("later")
    pushing.close()
    instance = f"{socket.gethostname()}:{os.getpid()}"
    assert f'streamgauge_build_info{{app="later",instance="{instance}"' in _read(port)


@pytest.mark.parametrize("how", ["refuses", "swallows"])
def test_dead_gateway_delays_the_end_by_two_seconds_at_most(agent, how):
    """Whether it refuses or never answers."""
    with contextlib.closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        if how == "swallows":
            listening.listen(16)
        life, run = Life(), agent(**_settings(listening.getsockname()[1]))
        feed(run, life.started(), life.progress(), life.terminated())
        began = time.monotonic()
        run.close()
        assert time.monotonic() - began < 2
        assert run.stats.of("errors").get("pushgateway", 0) >= 1


@pytest.mark.parametrize("address", ["http://user:hunter2@gw", "http://user:hun:ter2@gw"])
def test_password_in_the_address_is_not_complained_of_aloud(agent, address):
    """What Python says of such an address has a piece of the password in it."""
    stream = io.StringIO()
    life, run = Life(), agent(pushgateway_url=address, logger=make_logger("info", stream))
    feed(run, life.started(), life.terminated())
    run.close()
    assert "take user and password out of pushgateway_url" in stream.getvalue()
    assert "ter2" not in stream.getvalue()
