"""However a process ends, its last state is told, and it ends as it would have without us."""

import contextlib
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request

import pytest
from stage import ROOT, Life, feed, wait_for

from streamgauge.config import make_config
from streamgauge.exporters.http.server import MetricsServer
from streamgauge.sigterm import TermGuard

HEADER = f"""
import os, signal, sys, threading, time
sys.path[:0] = [{str(ROOT / "tests")!r}]
from stage import Life, QuietDriver, feed
from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.exporters import Exporter

class Told(Exporter):
    name = "told"
    def observe(self, query):
        if query.end:
            print("ended:", query.end.outcome, query.end.why, flush=True)
    def close(self):
        print("closed", flush=True)

def begin(**settings):
    settings = {{"metrics_address": "", "log_level": "off", "app": "shop", **settings}}
    agent = Agent(make_config(settings), exporters=[Told()], driver=QuietDriver())
    agent.start()
    life = Life()
    feed(agent, life.started(), life.progress())
    print("ready", agent.address, flush=True)
    return agent
"""


def _start(code):
    command = [sys.executable, "-c", HEADER + textwrap.dedent(code)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_exit_tells_the_end_of_what_runs():
    """At exit a query that still runs ends with it, before the exporters are closed."""
    out, err = _start("begin()").communicate(timeout=60)
    assert out.splitlines()[1:] == ["ended: unknown the process ended", "closed"], err


def test_exception_keeps_its_exit_status():
    """A job that dies of an exception still says what it saw."""
    job = _start("begin(); raise SystemExit(7)")
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 7
    assert out.splitlines()[-1] == "closed"


def test_sigterm_flushes_and_kills_all_the_same():
    """The end is told, and the process dies of the signal."""
    job = _start("begin(); time.sleep(100)")
    assert job.stdout.readline().startswith("ready")
    began = time.monotonic()
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=60)
    assert job.returncode == -signal.SIGTERM
    assert "ended: stopped the process was told to end by SIGTERM\nclosed\n" in out, err
    assert time.monotonic() - began < 10


def test_sigterm_handler_of_the_user_stays():
    """Whoever has a handler keeps it; exit through it tells the end as any exit does."""
    job = _start(
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
        begin()
        time.sleep(100)
        """
    )
    assert job.stdout.readline().startswith("ready")
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 3
    assert "ended: unknown the process ended\nclosed\n" in out


def test_forked_child_says_nothing():
    """A child that inherits the agent neither tells nor closes anything."""
    out, err = _start(
        """
        begin()
        child = os.fork()
        if not child:
            sys.exit(0)
        os.waitpid(child, 0)
        """
    ).communicate(timeout=60)
    assert out.count("closed") == 1, err


def test_stuck_exporter_delays_exit_by_two_seconds_at_most():
    """One receiver that never returns costs its own word, not the others' and not the exit."""
    job = _start(
        """
        import atexit
        began = []
        atexit.register(lambda: print("took", time.monotonic() - began[0], flush=True))
        class Stuck(Exporter):
            name = "stuck"
            def handle(self, event, query):
                threading.Event().wait(100)
        agent = Agent(make_config({"metrics_address": "", "log_level": "off"}),
                      exporters=[Stuck(), Told()], driver=QuietDriver())
        agent.start()
        life = Life()
        feed(agent, life.started(), settle=False)
        began.append(time.monotonic())
        """
    )
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    assert "closed" in out
    assert float(out.split("took")[1]) < 2


def test_guard_is_removed_with_the_agent(agent):
    """A closed agent leaves no handler behind."""
    before = signal.getsignal(signal.SIGTERM)
    one = agent()
    one.close()
    assert signal.getsignal(signal.SIGTERM) == before


def test_guard_can_only_be_set_in_the_main_thread():
    """Elsewhere it is left alone, without an error."""
    guard, found = TermGuard(lambda: None, 1.0), []
    thread = threading.Thread(target=lambda: found.append(guard.install()))
    thread.start()
    thread.join()
    assert found == [False]


def _fetch(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def test_linger_ends_with_a_scrape():
    """The last state is served until somebody has taken it, and no longer."""
    job = _start("begin(metrics_address='127.0.0.1:0', linger_seconds=50)")
    address = job.stdout.readline().split()[1]
    assert job.stdout.readline().startswith("ended")
    began = time.monotonic()
    text = ""
    while (
        job.poll() is None and time.monotonic() - began < 25
    ):  # as Prometheus would, again and again
        with contextlib.suppress(OSError):
            text = _fetch(f"{address}/metrics")
        time.sleep(0.5)
    assert 'streamgauge_query_active{app="shop",query="orders"} 0.0' in text
    assert job.wait(timeout=5) == 0
    job.communicate()


def test_linger_is_bounded():
    """Nobody comes: the process ends anyway."""
    job = _start("begin(metrics_address='127.0.0.1:0', linger_seconds=0.5)")
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0
    assert out.endswith("closed\n")


def test_server_answers_where_no_thread_can_be_started(monkeypatch):
    """From Python 3.12 none can at exit, and the one who lingers must still be scraped."""
    from prometheus_client import CollectorRegistry

    server = MetricsServer(make_config({"metrics_address": "127.0.0.1:0"}), CollectorRegistry())

    monkeypatch.setattr(threading.Thread, "start", _refuse)
    try:
        with urllib.request.urlopen(f"{server.address}/metrics", timeout=20) as answer:
            assert answer.status == 200
    finally:
        monkeypatch.undo()
        server.close()


def test_silent_client_does_not_hold_up_a_server_without_threads(monkeypatch):
    """There the accept loop itself reads, and the end of the process waits for the loop."""
    from prometheus_client import CollectorRegistry

    server = MetricsServer(make_config({"metrics_address": "127.0.0.1:0"}), CollectorRegistry())
    monkeypatch.setattr(threading.Thread, "start", _refuse)
    with socket.create_connection(("127.0.0.1", server.port)):
        wait_for(lambda: server._server._deadlines, what="the connection")
        began = time.monotonic()
        server.close()
        assert time.monotonic() - began < 5


def _refuse(_):
    raise RuntimeError("can't create new thread at interpreter shutdown")


@pytest.mark.parametrize("data", [True, False])
def test_run_that_did_nothing_says_so(agent, data):
    """In the log line and in the verdict's reason; a run with data says nothing of the kind."""
    import io
    import json

    from streamgauge.exporters.logs import make_logger

    stream = io.StringIO()
    life = Life()
    one = agent(logger=make_logger("info", stream))
    feed(one, life.started(), *([life.progress()] if data else []), life.terminated())
    one.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (stopped,) = [line for line in lines if line["event"] == "query stopped"]
    (verdict,) = [line for line in lines if line.get("state") == "stopped"]
    assert stopped.get("processed") == (None if data else "nothing new")
    assert ("it processed nothing new" in verdict["reason"]) is not data


def test_flush_handles_what_was_put_before(agent):
    """Afterwards the numbers are complete."""
    one, life = agent(), Life()
    feed(one, life.started(), *(life.progress() for _ in range(50)), settle=False)
    assert one.flush()
    assert one.stats.of("events") == {"started": 1, "progress": 50}
