"""A clean end is known to who scrapes, and costs nothing where nobody does."""

import io
import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request

import pytest
from stage import ROOT, Life, feed, page, value

from streamgauge.exporters.logs import make_logger

HEADER = f"""
import os, signal, sys, threading, time
sys.path[:0] = [{str(ROOT / "tests")!r}]
from stage import Life, QuietDriver, feed
from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.listener.inbox import OBSERVATION, Item
from streamgauge.model.observations import RunDetails

def begin(**settings):
    settings = {{"metrics_address": "127.0.0.1:0", "app": "shop", **settings}}
    agent = Agent(make_config(settings), driver=QuietDriver())
    agent.start()
    life = Life()
    feed(agent, life.started(), life.progress())
    print("ready", agent.address, flush=True)
    return agent, life

def by_design(agent, life):
    details = RunDetails(query_id=life.query_id, run_id=life.run_id, trigger="available_now")
    agent.inbox.put(Item(OBSERVATION, details, time.time()))
    agent.flush()

def end(agent, life, error=None):
    sys.stdin.readline()
    feed(agent, life.terminated(error))
    print("ended", flush=True)
"""
SCRAPE = {"X-Prometheus-Scrape-Timeout-Seconds": "1", "User-Agent": "Prometheus/3.5.0"}


class Job:
    """A process with an agent and no Spark, told to go on by a line."""

    def __init__(self, code):
        command = [sys.executable, "-c", HEADER + textwrap.dedent(code)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.address = self.process.stdout.readline().split()[1]

    def fetch(self, **headers):
        request = urllib.request.Request(f"{self.address}/metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return page(answer.read().decode())

    def scrape(self, **headers):
        return self.fetch(**SCRAPE, **headers)

    def end(self):
        """Let it end; how long that takes, and the last page that a scraper gets, if one comes."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ended\n"
        return self.leave()

    def leave(self):
        began = time.monotonic()
        _, err = self.process.communicate(timeout=60)
        return time.monotonic() - began, err


def _scrape_every(job, seconds, *, times=50, pages=None):
    """Scrape as Prometheus does, in a thread, until nobody answers."""
    done = threading.Event()

    def run():
        due = time.monotonic()
        for _ in range(times):
            try:
                (pages if pages is not None else []).append(job.scrape())
            except OSError:
                break
            due += seconds
            if done.wait(max(0.0, due - time.monotonic())):
                break

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


def _await_visits(pages, number):
    deadline = time.monotonic() + 30
    while len(pages) < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_clean_end_is_scraped_before_the_process_is_gone():
    """The next scrape of a regular scraper finds the query stopped; a log line says why it took so long."""
    job, pages = Job("end(*begin())"), []
    thread, _ = _scrape_every(job, 2.0, pages=pages)
    _await_visits(pages, 3)
    seconds, err = job.end()
    thread.join()
    assert seconds < 2 + 0.5 + 2
    assert value(pages[-1], "query_active") == 0
    assert value(pages[-1], "query_state", state="stopped") == 1
    waiting = next(json.loads(line) for line in err.splitlines() if "waiting until" in line)
    assert waiting["scrapers"] == ["127.0.0.1 Prometheus/3.5.0"]
    assert "linger_seconds=0" in waiting["hint"]
    assert "the final state was fetched" in err


@pytest.mark.parametrize(
    ("code", "headers"),
    [
        ("end(*begin())", None),  # nobody
        ("end(*begin())", {"User-Agent": "curl/8.5.0"}),
        ("end(*begin())", {"User-Agent": "Mozilla/5.0"}),
        ("end(*begin(linger_seconds=0))", SCRAPE),  # turned off
        ("agent, life = begin(); by_design(agent, life); end(agent, life)", SCRAPE),
        ("begin(); sys.stdin.readline(); print('ended', flush=True)", SCRAPE),  # nobody stopped it
    ],
)
def test_exit_is_quick_where_nobody_has_to_know(code, headers):
    """Not scraped, not by a scraper, turned off, over by design, or no clean end: two seconds at most."""
    job = Job(code)
    for _ in range(3 if headers else 0):
        job.fetch(**headers)
        time.sleep(0.3)
    seconds, err = job.end()
    assert seconds < 2, err
    assert "waiting until" not in err


def test_who_saw_the_end_is_not_waited_for_again():
    """The process lived on after its queries, and each scraper has been there since."""
    job = Job(
        """
        agent, life = begin()
        end(agent, life)
        sys.stdin.readline()
        """
    )
    for _ in range(3):
        job.scrape()
        time.sleep(0.3)
    job.process.stdin.write("\n")
    job.process.stdin.flush()
    assert job.process.stdout.readline() == "ended\n"
    assert value(job.scrape(), "query_active") == 0
    job.process.stdin.write("\n")
    seconds, err = job.leave()
    assert seconds < 2, err
    assert "waiting until" not in err


def test_failure_is_scraped_with_its_cause():
    """A job that dies of its query's failure says why, also one that is over by design."""
    job, pages = (
        Job(
            "agent, life = begin(); by_design(agent, life); end(agent, life, 'a.B: x\\nCaused by: a.C: full')"
        ),
        [],
    )
    thread, _ = _scrape_every(job, 1.5, pages=pages)
    _await_visits(pages, 3)
    seconds, _ = job.end()
    thread.join()
    assert seconds < 5
    failure = {"error_class": "B", "cause_class": "C", "message": "full"}
    assert value(pages[-1], "query_failure_info", **failure) == 1
    assert value(pages[-1], "query_reason_info", state="failed") == 1


def test_query_that_nobody_stopped_is_never_shown_as_ended():
    """One was stopped and is told of; the other dies with the process and vanishes as it was."""
    job, pages = (
        Job(
            """
        agent, life = begin()
        other = Life("other")
        feed(agent, other.started(), other.progress())
        end(agent, life)
        raise SystemExit(3)
        """
        ),
        [],
    )
    thread, _ = _scrape_every(job, 0.7, pages=pages)
    _await_visits(pages, 4)
    _, err = job.end()
    thread.join()
    assert job.process.returncode == 3
    assert value(pages[-1], "query_active") == 0, err
    assert value(pages[-1], "query_active", query="other") == 1


def test_sigterm_is_scraped_and_a_second_one_is_in_a_hurry():
    """The first waits for the scraper; whoever signals again ends it at once."""
    job = Job("begin(); time.sleep(100)")
    job.scrape()
    began = time.monotonic()
    job.process.send_signal(signal.SIGTERM)
    time.sleep(2.5)
    assert job.process.poll() is None
    assert value(job.fetch(), "query_active") == 0
    job.process.send_signal(signal.SIGTERM)
    job.process.communicate(timeout=20)
    assert job.process.returncode == -signal.SIGTERM
    assert time.monotonic() - began < 5


def test_scraper_that_stopped_coming_costs_one_interval():
    """Prometheus died with it: the process ends all the same, and says what that may mean."""
    job, pages = Job("end(*begin())"), []
    thread, done = _scrape_every(job, 1.5, pages=pages)
    _await_visits(pages, 4)
    done.set()
    thread.join()
    seconds, err = job.end()
    assert 1 < seconds < 1.5 + 0.5 + 2
    assert "the final state was not fetched" in err


def test_interrupt_ends_the_wait_and_still_closes():
    """Ctrl-C at exit means now."""
    job = Job("agent, life = begin(); end(agent, life)")
    job.scrape()
    job.process.stdin.write("\n")
    job.process.stdin.flush()
    assert job.process.stdout.readline() == "ended\n"
    line = ""
    while "waiting until" not in line:
        line = job.process.stderr.readline()
    job.process.send_signal(signal.SIGINT)
    seconds, _ = job.leave()
    assert seconds < 3


def test_scraper_that_comes_too_late_is_not_waited_for(agent):
    """Waiting in vain would be slow and no help; the log says what to set."""
    stream, life = io.StringIO(), Life()
    one = agent(metrics_address="127.0.0.1:0", logger=make_logger("info", stream))
    feed(one, life.started())
    now = time.monotonic()
    environ = {"REMOTE_ADDR": "h", "HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS": "10"}
    for ago in (130, 70, 10):
        one.server.scrapers.note(environ, now - ago, frozenset({life.run_id}))
    feed(one, life.terminated())
    began = time.monotonic()
    one._lifecycle._exit()
    assert time.monotonic() - began < 2
    assert "comes too late" in stream.getvalue()
    assert "set linger_seconds to more than its scrape interval" in stream.getvalue()
