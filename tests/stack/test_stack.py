"""The whole stack as a person has it: `make stack`, one fault, `make stack-down`; real programs, real time."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from stage import ROOT, value, wait_for
from stage import page as samples

sys.path.insert(0, str(ROOT / "scripts"))
from stack_services import LOGS, STACK, services

pytestmark = pytest.mark.integration
QUERIES = ("checkout", "orders", "revenue")
MINUTES_TO_BE_UP = 5
# Root gives the stack a group of its own, so that what it leaves is told from other programs' files.
GROUP = "nogroup" if os.geteuid() == 0 else None


def command(*words):
    """Run the script as the Makefile does; what it said, and its status."""
    program = [sys.executable, "-B", str(ROOT / "scripts" / "stack.py"), *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False, group=GROUP)
    return done.stdout + done.stderr, done.returncode


def get(url):
    """The text at an address."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def ask(path, **parameters):
    """The data of an answer of Prometheus."""
    text = urllib.parse.urlencode(parameters)
    return json.loads(get(f"http://localhost:9090/api/v1/{path}?{text}"))["data"]


def agent(name, query, **labels):
    """A number on the agent's page."""
    return value(samples(get("http://localhost:9465/metrics")), name, query=query, **labels)


def batches(query):
    """How many batches with data a query has done."""
    return agent("batches_total", query, data="true") or 0


def eventually(condition, seconds, what):
    """Wait for a condition, with a look a second: the stack has work to do."""
    return wait_for(lambda: condition() or time.sleep(1), seconds, what)


def footprint():
    """What the stack can have made where programs like to leave something, but for its own folder.

    Told by its group, at any depth; where it has none of its own, whatever lies on top.
    """
    homes = (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm", Path.home())
    docker = ROOT / "docker"
    places = {Path(place).resolve() for place in (*homes, ROOT, docker, docker / "demo")}
    tops = [place for place in places if not places & set(place.parents)] if GROUP else places
    ours = ("-group", GROUP) if GROUP else ("-mindepth", "1", "-maxdepth", "1")
    words = ["find", *map(str, tops), "-path", str(STACK), "-prune", "-o", *ours, "-print0"]
    # Its status says only that others' files went while it looked.
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in found.split("\0") if name}


def ours():
    """Living processes that have the stack's environment."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and place.name != str(os.getpid()):
            try:
                if os.fsencode(STACK) in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_bytes().replace(b"\0", b" ")[:200])
            except OSError:
                continue
    return found


@pytest.fixture(scope="module")
def before():
    """What was there."""
    assert not ours(), "a stack is up; `make stack-down` ends it"
    return footprint()


@pytest.fixture(scope="module")
def stack(before):  # noqa: ARG001 - looked at first
    """What `up` said; it is down after the last test, whatever happened."""
    began = time.monotonic()
    said, status = command("up")
    assert status == 0, said
    assert time.monotonic() - began < 60 * MINUTES_TO_BE_UP
    yield said
    command("down")


def test_every_service_answers(stack):
    """Each has a line of its own, and every address that is told is there."""
    assert re.findall(r"^  (\S+) +ready on port", stack, re.MULTILINE) == [
        service.name for service in services()
    ]
    for url in re.findall(r"http://\S+[\w/]", stack):
        get(url)
    assert command("status")[1] == 0
    said, status = command("up")
    assert (status, "The stack is up.\n" in said) == (0, True)


@pytest.mark.skipif(GROUP is None, reason="only root can give the stack a group of its own")
def test_footprint_is_seen_however_deep(tmp_path):
    """A file that the stack would leave in a folder of another program is found."""
    deep = tmp_path / "cache" / "of" / "another"
    deep.mkdir(parents=True)
    (deep / "theirs").touch()
    (deep / "left").touch()
    shutil.chown(deep / "left", group=GROUP)
    assert {place for place in footprint() if tmp_path in place.parents} == {deep / "left"}
    (deep / "left").unlink()  # or the stack itself would be blamed for it


@pytest.mark.usefixtures("stack")
def test_cluster_and_broker_are_real():
    """Two workers with an executor of the job each; the topic is on the broker."""
    master = json.loads(get("http://localhost:8080/json/"))
    assert [worker["state"] for worker in master["workers"]] == ["ALIVE"] * 2
    assert [worker["coresused"] for worker in master["workers"]] == [2, 2]
    assert [app["name"] for app in master["activeapps"]] == ["shop"]
    topics = AdminClient({"bootstrap.servers": "127.0.0.1:9092"}).list_topics(timeout=10).topics
    assert len(topics["orders"].partitions) == 4


@pytest.mark.usefixtures("stack")
def test_agent_sees_every_query_at_work():
    """The three queries of the job commit batch after batch."""
    first = {query: batches(query) for query in QUERIES}
    for query in QUERIES:
        eventually(lambda query=query: batches(query) > first[query] + 1, 90, f"batches of {query}")
        assert agent("query_active", query) == 1


@pytest.mark.usefixtures("stack")
def test_prometheus_scrapes_all_and_evaluates_every_rule():
    """Every target is up; every shipped rule that is due has been evaluated, and none is in error."""

    def healths():
        return {one["labels"]["job"]: one["health"] for one in ask("targets")["activeTargets"]}

    def rules(longest=float("inf")):
        groups = [group for group in ask("rules")["groups"] if group["interval"] <= longest]
        return [rule for group in groups for rule in group["rules"]]

    eventually(lambda: set(healths().values()) == {"up"}, 60, "every target")
    assert set(healths()) == {"spark-streams", "prometheus", "alertmanager", "collector", "jaeger"}
    # What sums up an hour is evaluated once per hour.
    eventually(lambda: all(rule["health"] != "unknown" for rule in rules(60)), 120, "every rule")
    assert len(rules(60)) > 50
    assert not [rule["name"] for rule in rules(60) if rule["health"] != "ok"]
    assert not [(rule["name"], rule["lastError"]) for rule in rules() if rule["health"] == "err"]


@pytest.mark.usefixtures("stack")
def test_exemplar_leads_to_the_batch_in_the_trace_store():
    """Prometheus has the trace's id; the trace came through the collector into Jaeger."""
    series = 'streamgauge_batch_duration_seconds_bucket{query="orders"}'

    def exemplars():
        now = time.time()
        found = ask("query_exemplars", query=series, start=now - 600, end=now)
        return [one["labels"]["trace_id"] for each in found for one in each["exemplars"]]

    def trace():
        try:
            (found,) = json.loads(get(f"http://localhost:16686/api/traces/{exemplars()[-1]}"))[
                "data"
            ]
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None
        return found["spans"]

    eventually(exemplars, 60, "an exemplar")
    names = {span["operationName"] for span in eventually(trace, 30, "the trace")}
    assert "batch orders" in names
    assert len(names) > 3, "the phases of the batch"
    passed = '{__name__=~"otelcol_exporter_sent_spans.*",job="collector"}'
    eventually(lambda: ask("query", query=passed)["result"], 40, "the collector's own count")


@pytest.mark.usefixtures("stack")
def test_preview_draws_panels_with_data():
    """Each board is drawn from what Prometheus has now, for the choice in an alert's link."""
    links = set(re.findall(r'href="(/d/[\w-]+)', get("http://localhost:3000/dashboards")))
    assert len(links) == 8

    def shown(link):
        page = get(f"http://localhost:3000{link}?var-app=shop&var-query=revenue")
        assert "A preview, not Grafana" in page
        data = json.loads(re.search(r"<script>const DATA = (.+);</script>", page)[1])
        assert data["variables"]["query"] == "revenue"
        assert all(data["traces"].values()), link
        full = [any(one["result"] for one in answers) for answers in data["answers"].values()]
        return sum(full) / len(full)

    for link in links:
        eventually(lambda link=link: shown(link) >= 0.5, 90, f"half of the panels of {link}")


@pytest.mark.usefixtures("stack")
@pytest.mark.timeout(420)
def test_fault_reaches_the_pager_and_heals():
    """`fail` pages, by the shipped rules in real time; `well` lets the batches go on."""
    said, status = command("fault", "fail")
    assert (status, "SparkStreamRestartLoop" in said) == (0, True)
    began = time.monotonic()

    def pages():
        lines = json.loads(get("http://localhost:9099/lines.json"))
        return [line for line in lines if line[1:4] == ["page", "firing", "SparkStreamRestartLoop"]]

    (line,) = eventually(pages, 300, "the page")
    sys.stdout.write(f"paged after {time.monotonic() - began:.0f} s: {line}\n")
    assert line[4].startswith("shop orders")
    assert agent("query_starts_total", "orders") >= 3
    stands = batches("orders")
    assert command("fault", "well")[1] == 0
    eventually(lambda: batches("orders") > stands + 1, 90, "batches after the fault")
    assert agent("query_active", "orders") == 1


def test_down_leaves_nothing_but_the_logs(before, stack):  # noqa: ARG001 - it was up
    """No process, no open port, no file outside the folder; and it can be said twice."""
    assert len(ours()) >= len(services())
    said, status = command("down")
    assert (status, "The stack is down." in said) == (0, True)
    assert not ours()
    for port in (port for service in services() for port in service.ports):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, port
    assert [place.name for place in STACK.iterdir()] == ["logs"]
    logs = {place.stem for place in LOGS.iterdir()}
    assert logs == {service.name for service in services()} | {"executor-0", "executor-1"}
    assert footprint() - before <= {ROOT / "artifacts"}
    assert command("down")[1] == 0
