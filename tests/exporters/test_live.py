"""The live page: data, escaping, and how it looks in a real browser."""

import json
import re
import shlex
import time
import urllib.request

import msgspec
import pytest
from browser import browse
from exposition import NOW, update_of
from stage import Life, apply_to, feed, wait_for

from streamgauge.cli import build_parser
from streamgauge.exporters.http.live import LiveExporter
from streamgauge.exporters.http.next_step import next_step_of, read_runbook
from streamgauge.listener.inbox import OBSERVATION, Item
from streamgauge.model.application import Application, CurrentApplication
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.lag import weigh
from streamgauge.model.observations import QueryStatus, RunDetails
from streamgauge.model.query import End
from streamgauge.model.sources.waiting import Waiting
from streamgauge.model.update import Update
from streamgauge.model.verdict import Verdict


def _json(agent):
    with urllib.request.urlopen(f"{agent.address}/live.json", timeout=10) as answer:
        return json.loads(answer.read())


def test_shows_batches_by_phase_and_verdicts(agent):
    """The last hundred batches, each with its phases in engine order."""
    mine = agent(metrics_address="127.0.0.1:0")
    life = Life()
    feed(mine, life.started(), *(life.progress() for _ in range(150)))
    data = _json(mine)
    (query,) = data["queries"]
    assert (data["app"], query["name"], len(query["batches"])) == ("shop", "orders", 100)
    last = query["batches"][-1]
    assert (last["id"], last["rows"], last["seconds"]) == (149, 10, 0.5)
    assert dict(zip(data["phases"], last["phases"], strict=True))["add_batch"] == 0.4
    assert query["verdicts"][0][1] == "starting"


def test_state_of_which_a_part_is_unknown_is_not_summed(agent):
    """A sum with a missing part is withheld."""
    mine = agent(metrics_address="127.0.0.1:0")
    life = Life()
    known, unknown = {"operatorName": "a", "numRowsTotal": 7}, {"operatorName": "b"}
    feed(mine, life.started(), life.progress(stateOperators=[known, unknown]))
    feed(mine, life.progress(stateOperators=[known, known]))
    batches = _json(mine)["queries"][0]["batches"]
    assert [batch["state_rows"] for batch in batches] == [None, 14]


def test_page_needs_no_other_host():
    """One file: nothing is loaded from anywhere else."""
    from streamgauge.exporters.http.live import page

    text = page().decode()
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", text)
    assert "innerHTML" not in text


def _query(agent, name="orders"):
    return next(query for query in _json(agent)["queries"] if query["name"] == name)


def _hang(agent, life, since, **more):
    """A poll that finds the next batch running since then."""
    feed_observation(
        agent,
        QueryStatus(
            query_id=life.query_id,
            run_id=life.run_id,
            at=time.time(),
            trigger_active=True,
            data_available=True,
            phase="processing",
            **{"batch_id": life.batch_id + 1, "trigger_started_at": since, **more},
        ),
    )


def feed_observation(agent, seen):
    """Have the agent take in an observation, and wait until it is shown."""
    before = agent.live._shown
    agent.inbox.put(Item(OBSERVATION, seen, time.time()))
    wait_for(lambda: agent.live._shown is not before, what="the observation")


def _source(description, **more):
    offsets = {"startOffset": {"logOffset": 1}, "endOffset": {"logOffset": 2}, "latestOffset": None}
    return {"description": description, **offsets, "numInputRows": 5, **more}


def test_rate_beside_a_verdict_is_of_the_present(agent):
    """Idle: 0 arrive. Stalled: not known, whatever the last batch did."""
    mine = agent(metrics_address="127.0.0.1:0", silence_seconds=5)
    life = Life()
    feed(mine, life.started(), life.progress())
    assert _query(mine)["rates"] == {"input": 10.0, "processed": 20.0}
    feed(mine, life.idle())
    assert _query(mine)["rates"] == {"input": 0.0, "processed": None}
    feed(mine, life.progress())
    _hang(mine, life, time.time() - 60)
    assert (_query(mine)["state"], _query(mine)["inflight_batch"]) == ("stalled", 2)
    assert _query(mine)["rates"] == {"input": None, "processed": None}


def test_backlog_is_in_what_the_sources_count(agent):
    """Rows of Kafka, else files and bytes, as the source or a look at its folder tells; else unknown."""
    mine = agent(metrics_address="127.0.0.1:0")
    life = Life()
    told = {"numFilesOutstanding": "3", "numBytesOutstanding": "4500"}
    feed(mine, life.started(), life.progress())
    assert _query(mine)["backlog"] == {"parts": [["rows", 0.0]], "unknown": 0}
    sources = json.loads(life.progress())["progress"]["sources"]
    sources[0]["latestOffset"] = {"orders": {"0": 27}}
    feed(mine, life.progress(sources=[*sources, _source("CloudFilesSource[x]", metrics=told)]))
    parts = [["rows", 7.0], ["files", 3.0], ["bytes", 4500.0]]
    assert _query(mine)["backlog"] == {"parts": parts, "unknown": 0}
    assert _query(mine)["batches"][-1]["backlog"] == parts
    feed(mine, life.progress(sources=[*sources, _source("FileStreamSource[x]")]))
    assert _query(mine)["backlog"] == {"parts": [["rows", 7.0]], "unknown": 1}
    assert _query(mine)["batches"][-1]["backlog"] == []


def test_backlog_of_files_comes_from_the_poller():
    """Where the source says nothing, what was found in its folder counts, as long as it is fresh."""
    clock = [NOW]
    live = LiveExporter(
        application=Application, clock=lambda: clock[0], worker_seen_at=lambda: clock[0]
    )
    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), NOW)
    text = life.progress(sources=[_source("FileStreamSource[x]")])
    live.export(update_of(apply_to(fleet, decode(text), NOW), decode(text)))
    (query,) = fleet.queries.values()
    lags = weigh(query.lags, {"0-file": Waiting(files=4, bytes=900)}, until=NOW + 60)
    live.export(update_of(msgspec.structs.replace(query, lags=lags)))
    shown = json.loads(live.render())["queries"][0]["backlog"]
    assert shown == {"parts": [["files", 4.0], ["bytes", 900.0]], "unknown": 0}
    clock[0] = NOW + 61
    assert json.loads(live.render())["queries"][0]["backlog"] == {"parts": [], "unknown": 1}


PLACE = "s3://bucket/a b"


@pytest.mark.parametrize(
    ("state", "place", "runbook", "command"),
    [
        ("stalled", PLACE, "QueryStalled", f"checkpoint restart '{PLACE}' --sink foreachBatch"),
        ("failed", PLACE, "QueryFailed", f"checkpoint restart '{PLACE}' --sink foreachBatch"),
        ("restarting", PLACE, "RestartLoop", f"checkpoint restart '{PLACE}' --sink foreachBatch"),
        ("falling_behind", PLACE, "FallingBehind", f"lag '{PLACE}' --bootstrap HOST:PORT"),
        ("blind", PLACE, "AgentBlind", "evidence --url {address}/metrics --query 'o rders'"),
        ("stalled", None, "QueryStalled", "evidence --url {address}/metrics --query 'o rders'"),
    ],
)
def test_verdict_that_is_not_well_says_what_to_do(state, place, runbook, command):
    """A runbook that is there, and a command that a shell takes as it is."""
    fleet, life = Fleet(), Life("o rders")
    apply_to(fleet, decode(life.started()), NOW)
    query = apply_to(fleet, decode(life.progress()), NOW)
    ids = {"query_id": life.query_id, "run_id": life.run_id}
    query = apply_to(fleet, RunDetails(**ids, checkpoint=place, sink="foreachBatch"), NOW)
    step = next_step_of(query, Verdict(state, "x"), "foreachBatch")
    assert step.runbook == f"SparkStream{runbook}"
    assert step.command == f"streamgauge {command}"
    assert read_runbook(f"/runbooks/{step.runbook}").startswith(b"# SparkStream")
    build_parser().parse_args(shlex.split(step.command)[1:])


@pytest.mark.parametrize("state", ["starting", "running", "idle", "catching_up", "stopped"])
def test_query_that_is_well_needs_no_step(state):
    """Nothing to do."""
    query = apply_to(Fleet(), decode(Life().started()), NOW)
    assert next_step_of(query, Verdict(state, "x"), None) is None


def test_lost_query_has_a_runbook():
    """It ended and nobody knows how."""
    query = apply_to(Fleet(), decode(Life().started()), NOW)
    query = msgspec.structs.replace(query, end=End(at=NOW, outcome="unknown"))
    step = next_step_of(query, Verdict("stopped", "x"), None)
    assert step.runbook == "SparkStreamQueryVanished"


@pytest.mark.parametrize("path", ["/runbooks/", "/runbooks/Nothing", "/runbooks/../README", "/x"])
def test_nothing_but_runbooks_is_served_as_one(path):
    """No way out of the folder."""
    assert read_runbook(path) is None


def test_runbooks_are_served(agent):
    """The link on the page leads to the text."""
    mine = agent(metrics_address="127.0.0.1:0")
    url = f"{mine.address}/runbooks/SparkStreamQueryStalled"
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert b"## Remedy" in answer.read()


@pytest.mark.integration
def test_hang_and_cold_start_in_a_real_browser(agent, tmp_path):
    """The running batch has a bar that grows; the cold first batch is cut and marked; the next step is there."""
    mine = agent(metrics_address="127.0.0.1:0", silence_seconds=5)
    life = Life()
    cold = {"addBatch": 20_000, "latestOffset": 1, "walCommit": 1, "triggerExecution": 20_400}
    feed(mine, life.started(), life.progress(durationMs=cold))
    feed(mine, *(life.progress() for _ in range(20)))
    heights = []
    began = time.time() - 60
    for _ in range(2):
        _hang(mine, life, began)
        dom = browse(mine.address, tmp_path)
        bar = re.search(r'<rect class="inflight"[^>]* height="([\d.]+)"', dom)
        heights.append(float(bar[1]))
        time.sleep(1)
    assert 80 < heights[0] < heights[1] < 90
    assert dom.count('class="cut"') == 1
    assert "1 longer cut off, up to 20 s" in dom
    usual = [float(h) for h in re.findall(r'<rect x="[^>]* height="([\d.]+)" fill="#3fb27f"', dom)]
    assert sorted(usual)[len(usual) // 2] > 10, "the other bars can still be seen"
    assert 'href="runbooks/SparkStreamQueryStalled"' in dom
    assert f"streamgauge evidence --url {mine.address}/metrics --query orders" in dom
    row = re.search(r"<tbody><tr>(.*?)</tr>", dom)[1]
    assert re.findall(r'<td class="n">(.*?)</td>', row)[0] == ""


@pytest.mark.integration
def test_hostile_name_in_a_real_browser(agent, tmp_path):
    """Chromium renders the table, runs no script of a query's name, and draws the bars."""
    mine = agent(metrics_address="127.0.0.1:0")
    name = "<img src=x onerror=document.title='owned'><b>bold</b>"
    life, other = Life(name), Life("orders")
    for one in (life, other):
        feed(mine, one.started(), *(one.progress() for _ in range(20)))
    dom = browse(mine.address, tmp_path)
    assert "owned" not in re.search(r"<title>(.*?)</title>", dom)[1]
    assert "&lt;img src=x" in dom
    assert "<img src" not in dom
    assert dom.count("<tr>") == 3
    assert dom.count("<rect") >= 40 * 5


def test_application_is_asked_with_each_request():
    """Name and Spark's own page of the query, which an ended query no longer has."""
    current = CurrentApplication(Application())
    live = LiveExporter(application=current, clock=lambda: NOW, worker_seen_at=lambda: NOW)
    fleet, life = Fleet(), Life()
    live.export(update_of(apply_to(fleet, decode(life.started()), NOW)))
    data = json.loads(live.render())
    assert (data["app"], data["queries"][0]["ui"]) == ("", None)
    current.observe("shop", None, "http://driver:4040")
    data = json.loads(live.render())
    ui = f"http://driver:4040/StreamingQuery/statistics/?id={life.run_id}"
    assert (data["app"], data["queries"][0]["ui"]) == ("shop", ui)
    live.export(update_of(apply_to(fleet, decode(life.terminated()), NOW)))
    assert json.loads(live.render())["queries"][0]["ui"] is None


def test_verdicts_are_those_of_the_updates():
    """Only new states; the time is the update's."""
    live = LiveExporter(application=Application, clock=lambda: NOW, worker_seen_at=lambda: NOW)
    query, running = apply_to(Fleet(), decode(Life().started()), NOW), Verdict("running", "x")
    for number, before in enumerate((None, running, Verdict("idle", "y"))):
        live.export(
            Update(at=NOW + number, cause=None, query=query, verdict=running, previous=before)
        )
    shown = json.loads(live.render())["queries"][0]["verdicts"]
    assert shown == [[NOW, "running", "x"], [NOW + 2, "running", "x"]]
    live.export(update_of(query, forgotten=True))
    assert json.loads(live.render())["queries"] == []
