"""The live page: data, escaping, and how it looks in a real browser."""

import json
import re
import urllib.request

import pytest
from browser import browse
from exposition import NOW, update_of
from stage import Life, apply_to, feed

from streamgauge.exporters.http.live import LiveExporter
from streamgauge.model.application import Application, CurrentApplication
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
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
