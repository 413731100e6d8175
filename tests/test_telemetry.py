"""The listener and its bridge where there is no Spark: what fails, what is closed, what is off."""

import json
import threading
from types import SimpleNamespace

import pytest
from pyspark.sql.streaming import StreamingQueryListener
from stage import Life, feed, page, value, wait_for

from streamgauge import Config, ConfigError, TelemetryListener
from streamgauge.exporters import Exporter
from streamgauge.exporters.metrics.pushgateway import PushgatewayExporter
from streamgauge.listener.classic.bridge import Bridge
from streamgauge.listener.connect import patches
from streamgauge.listener.driver import ApplicationInfo
from streamgauge.listener.host import SparkKind
from streamgauge.listener.inbox import OBSERVATION, Inbox, Item
from streamgauge.model.observations import ApplicationStatus

QUIET = {"metrics_address": "", "log_level": "off"}
IDLE = SimpleNamespace(id="q", runId="r", timestamp="2026-11-16T00:00:00.000Z")


class FakeEvent:
    """A Java event that answers with its JSON, or with an error."""

    def __init__(self, text=None):
        self._text = text

    def json(self):
        if self._text is None:
            raise RuntimeError("no json here")
        return self._text


def addListener(listener):  # noqa: N802 - as PySpark's own
    """What classic PySpark does, less the JVM."""
    return listener._jlistener


def removeListener(listener):  # noqa: N802
    """The same property is asked for."""
    return listener._jlistener


@pytest.fixture(autouse=True)
def _no_jvm(monkeypatch):
    """The callback itself stands for its Java object; PySpark's own is the word `slow`."""
    place = "streamgauge.listener.stream_listener"
    monkeypatch.setattr(f"{place}.make_queue_listener", lambda host: Bridge(host.inbox))
    monkeypatch.setattr(StreamingQueryListener, "_jlistener", "slow", raising=False)


def _errors(agent):
    return dict(agent.stats.of("errors"))


class Last(Exporter):
    """Knows that it was closed."""

    name = "last"
    closed = False

    def close(self):
        self.closed = True


class Stoppable:
    """A context, as far as it can be stopped; `meanwhile` happens then."""

    meanwhile = staticmethod(lambda: None)

    def __init__(self, name=None, app_id=None):
        self.info = ApplicationInfo(name, app_id)

    def stop(self):
        self.meanwhile()


class Threads:
    """A logger that knows which threads wrote to it."""

    def __init__(self):
        self.seen = []

    def error(self, *_, **said):
        self.seen.append((threading.current_thread().name, said["part"]))

    def __getattr__(self, _):
        return lambda *_, **__: self


def test_event_that_nobody_can_read_is_counted_and_logged_by_the_worker(agent):
    """Not on Spark's thread: whatever the log is written to may block."""
    logger = Threads()
    mine = agent(logger=logger)
    Bridge(mine.inbox).onQueryProgress(FakeEvent())
    wait_for(lambda: logger.seen, what="the line")
    assert logger.seen == [("streamgauge-worker", "bridge")]
    assert _errors(mine) == {"bridge": 1}


def test_public_event_that_can_not_be_read_is_counted():
    """The slow way has the same guard."""
    listener = TelemetryListener(**QUIET)
    addListener(listener)
    listener.onQueryProgress(object())
    wait_for(lambda: _errors(listener), what="the count")
    assert _errors(listener) == {"bridge": 1}


def test_nothing_reaches_spark_from_a_broken_inbox(monkeypatch):
    """Not even what can't happen."""

    def broken(*_):
        raise MemoryError

    monkeypatch.setattr(Inbox, "put", broken)
    Bridge(Inbox(10)).onQueryProgress(FakeEvent("{}"))


def test_closed_listener_that_is_added_again_works():
    """It gets a new agent; the old bridge, should it still be on the bus, fills nothing."""
    listener = TelemetryListener(**QUIET)
    before = addListener(listener)
    old = listener._agent
    listener.close()
    after, life = addListener(listener), Life()
    before.onQueryStarted(FakeEvent(life.started()))
    after.onQueryStarted(FakeEvent(life.started()))
    assert not listener.closed
    assert len(old.inbox) == 0
    wait_for(lambda: listener.stats.of("events") == {"started": 1}, what="the start")


def test_closed_listener_can_be_removed():
    """It is the very object that was added, and no new agent begins for that."""
    listener = TelemetryListener(**QUIET)
    added = addListener(listener)
    listener.close()
    assert removeListener(listener) is added
    assert listener.closed


def test_connect_session_that_adds_a_closed_listener_is_followed(monkeypatch):
    """Connect tells when it adds one: a new agent begins."""
    monkeypatch.setattr("streamgauge.agent.Agent.follow", lambda *_, **__: None)
    listener = TelemetryListener(**QUIET)
    listener._set_spark_session(object())
    listener.close()
    listener._set_spark_session(object())
    assert not listener.closed


def test_time_on_the_bus_is_measured_or_unknown():
    """The slow way takes time too; with Connect nobody waits, and nothing is observed."""
    listener = TelemetryListener(**QUIET)
    addListener(listener)
    agent = listener._agent
    listener.onQueryIdle(IDLE)
    agent.flush()
    assert sum(agent.prometheus.callback_seconds._counts) == 1
    assert agent.prometheus.callback_seconds._sum > 0
    listener._connect = True
    listener.onQueryIdle(IDLE)
    agent.flush()
    assert sum(agent.prometheus.handling_seconds._counts) == 2
    assert sum(agent.prometheus.callback_seconds._counts) == 1


def test_kill_switch_holds_on_an_unknown_spark(monkeypatch):
    """Without the listener that does nothing, PySpark's own is added, and its events are let go."""

    def missing():
        raise AttributeError("no such class in this Spark")

    monkeypatch.setattr("streamgauge.listener.stream_listener.wrap_nothing", missing)
    listener = TelemetryListener(disabled=True)
    assert addListener(listener) == "slow"
    listener.onQueryProgress(object())
    assert listener._agent is None


class Bus:
    """Connect's own, as far as a listener's way onto it goes."""

    _execution_thread = _lock = remove = None

    def __init__(self):
        self._listener_bus = []

    def append(self, listener):
        self._listener_bus.append(listener)


def test_kill_switch_keeps_listeners_off_connects_bus():
    """However often they are added; those that are not off, and other people's, get on."""
    bus = Bus()
    session = SimpleNamespace(streams=SimpleNamespace(_sqlb=bus))
    theirs = SimpleNamespace(disabled=True)
    for listener in (TelemetryListener(disabled=True), TelemetryListener(disabled=True)):
        listener._set_spark_session(session)
        bus.append(listener)
    ours = TelemetryListener(**QUIET)
    bus.append(ours)
    bus.append(theirs)
    assert bus._listener_bus == [ours, theirs]


@pytest.mark.parametrize("session", [object(), SimpleNamespace(streams=None)])
def test_kill_switch_on_an_unknown_connect_still_lets_the_process_end(monkeypatch, session):
    """Where a listener can't be kept off the bus, the threads that it brings are daemons."""
    let = []
    monkeypatch.setattr(
        "streamgauge.listener.connect.patches.use_daemon_threads", lambda: let.append(True)
    )
    TelemetryListener(disabled=True)._set_spark_session(session)
    assert let == [True]


def test_machine_without_threads_takes_the_listener_all_the_same(monkeypatch):
    """Each thread that can't begin is counted; the last word is still said at the end."""

    def full(_):
        raise RuntimeError("can't start new thread")

    last = Last()
    listener = TelemetryListener(**QUIET, exporters=[last])
    monkeypatch.setattr(threading.Thread, "start", full)
    addListener(listener)
    assert _errors(listener) == {"worker": 1, "watchdog": 2}
    listener.close()
    assert last.closed


@pytest.mark.parametrize("add", [addListener, lambda it: it._set_spark_session(object())])
def test_agent_that_cant_be_made_leaves_the_listener_off(monkeypatch, capsys, add):
    """One line in the log, and nothing else; it is not tried again for each event."""

    def broken(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr("streamgauge.agent.Fleet", broken)
    monkeypatch.setattr("streamgauge.listener.stream_listener.wrap_nothing", lambda: "nothing")
    listener = TelemetryListener(metrics_address="")
    add(listener)
    listener.onQueryProgress(object())
    assert listener.disabled
    (line,) = capsys.readouterr().err.splitlines()
    assert "no room" in line


def test_listeners_that_were_removed_are_let_go():
    """But the last: only with it can a look tell that none of ours is on the bus any more."""
    first, second = TelemetryListener(**QUIET), TelemetryListener(**QUIET)
    mine = [addListener(first), addListener(second)]
    addListener(second)  # in another session
    agent = first._agent
    removeListener(second)
    assert agent.registrations.listeners() == tuple(mine)
    removeListener(second)
    assert agent.registrations.listeners() == (mine[0],)
    removeListener(first)
    assert agent.registrations.listeners() == (mine[0],)
    addListener(first)
    assert agent.registrations.listeners() == (mine[0],)


def test_listeners_of_an_application_that_stopped_are_let_go():
    """One that is added to the next application is known again, and counted anew."""
    context, listener = Stoppable(), TelemetryListener(**QUIET)
    java = addListener(listener)
    agent = listener._agent
    agent.follow(context, java)
    context.stop()
    assert agent.registrations.listeners() == ()
    addListener(TelemetryListener(**QUIET))
    addListener(listener)
    assert agent.registrations.listeners()[-1] is java
    removeListener(listener)
    assert not agent.registrations.has(java)


def test_password_in_code_goes_with_a_certificate_in_the_environment(monkeypatch):
    """The settings are judged together; a keyword that is wrong whatever the environment raises."""
    with pytest.raises(ConfigError, match="metrics_tls_cert"):
        TelemetryListener(metrics_auth_file="f")
    monkeypatch.setenv("STREAMGAUGE_METRICS_TLS_CERT", "c")
    assert not TelemetryListener(metrics_auth_file="f").disabled
    with pytest.raises(ConfigError, match="watch_second"):
        TelemetryListener(watch_second=1)


@pytest.mark.parametrize("word", ["1", "true"])
def test_kill_switch_of_the_environment_wins(monkeypatch, word):
    """Over a Config and over single settings."""
    monkeypatch.setenv("STREAMGAUGE_DISABLED", word)
    assert TelemetryListener(Config(disabled=False)).disabled
    assert TelemetryListener(disabled=False).disabled


def _infos(agent):
    """App and query of each `query_info`, and no (app, query) twice."""
    found = [dict(labels) for name, labels in page(agent) if name == "streamgauge_query_info"]
    pairs = [(info["app"], info["query"]) for info in found]
    assert len(pairs) == len(set(pairs))
    return set(pairs)


@pytest.mark.parametrize(("said", "second"), [(None, "second"), ("shop", "shop")])
def test_next_application_of_a_process_has_its_own_name(agent, tmp_path, monkeypatch, said, second):
    """Its queries' series and spans say it, those that go on from the first too; a setting wins."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    spans = tmp_path / "spans.jsonl"
    mine = agent(app=said, traces=str(spans))
    first = said or "first"
    mine.follow(Stoppable("first", "app-1"), None)
    stays, goes = Life("stays"), Life("goes")
    feed(mine, stays.started(), stays.progress(), goes.started(), goes.progress())
    feed(mine, stays.terminated(), goes.terminated())
    wait_for(lambda: mine.stats.of("spans").get("exported", 0) >= 16, what="both runs' spans")
    mine.follow(Stoppable("second", "app-2"), None)
    assert _infos(mine) == {(first, "stays"), (first, "goes")}
    feed(mine, goes.started(), goes.progress())
    assert _infos(mine) == {(first, "stays"), (second, "goes")}
    starts = value(page(mine), "query_starts_total", query="goes")
    assert starts == (1 if said is None else 2)
    mine.close()
    resources = [
        {pair["key"]: pair["value"]["stringValue"] for pair in group["resource"]["attributes"]}
        for line in spans.read_text().splitlines()
        for group in json.loads(line)["resourceSpans"]
    ]
    named = {(resource["service.name"], resource["service.instance.id"]) for resource in resources}
    assert named == {(first, "app-1"), (second, "app-2")}


def test_run_whose_start_was_not_seen_moves_with_the_next_look(agent):
    """The listener was added late: the first word of it is a batch."""
    mine = agent(app=None)
    mine.follow(Stoppable("first", "app-1"), None)
    life = Life("q")
    feed(mine, life.started(), life.progress(), life.terminated())
    mine.follow(Stoppable("second", "app-2"), None)
    life.started()
    feed(mine, life.progress())
    mine.step(Item(OBSERVATION, ApplicationStatus(at=0.0), 0.0))
    feed(mine, life.progress())
    assert _infos(mine) == {("second", "q")}


def test_failure_that_only_the_stop_brought_about_is_none(agent):
    """Spark sends a Terminated event with whatever broke first, now and then; a failure before the stop is one."""
    mine, context = agent(), Stoppable("shop", "app-1")
    mine.follow(context, None)
    failed, broken = Life("failed"), Life("broken")
    feed(mine, failed.started(), broken.started(), failed.terminated("E: x"))
    context.meanwhile = lambda: feed(mine, broken.terminated("NullPointerException: null"))
    context.stop()
    ends = {query.label: query.end.outcome for query in mine.queries.values()}
    assert ends == {"failed": "failed", "broken": "unknown"}
    assert value(page(mine), "query_terminations_total", query="broken", outcome="unknown") == 1


def test_name_that_comes_late_reaches_the_discovery_file_and_the_pages(agent, tmp_path):
    """A Connect client's name is known only after its page is served; a server sorts targets by it."""
    targets = tmp_path / "targets.json"
    mine = agent(app=None, metrics_address="127.0.0.1:0", sd_file=str(targets))
    life = Life("q")
    feed(mine, life.started())
    mine.step(Item(OBSERVATION, ApplicationStatus(at=0.0, app_name="shop"), 0.0))
    feed(mine, life.progress())
    assert _infos(mine) == {("shop", "q")}
    assert json.loads(targets.read_text())[0]["labels"] == {"spark_app": "shop"}


def test_details_are_asked_for_of_a_query_that_only_idles(agent):
    """A listener that was added late hears no name; nothing of it may be taken for an error."""
    mine = agent()
    asked = []
    mine._watchdog.request_details = lambda *ids: asked.append(ids)
    life = Life("q")
    feed(mine, life.idle())
    assert asked == [(life.query_id, life.run_id)]
    assert _errors(mine) == {}


def test_dead_collector_does_not_starve_the_last_push(agent, tmp_path, monkeypatch):
    """Those who may wait for longest are closed last."""
    closed = []

    def close(self):
        closed.append(self.name)
        self._done.set()
        self._wake.set()

    monkeypatch.setattr(PushgatewayExporter, "close", close)

    class Users(Exporter):
        name = "users"

        def close(self):
            closed.append(self.name)

    mine = agent(
        traces=str(tmp_path / "t.jsonl"), pushgateway_url="127.0.0.1:1", exporters=[Users()]
    )
    monkeypatch.setattr(mine.traces, "close", lambda: closed.append("traces"))
    mine.close()
    assert closed == ["pushgateway", "users", "traces"]


class ConnectSession:
    """A Connect session, as far as a listener is added to it."""

    is_stopped = False

    def __init__(self):
        self.streams = SimpleNamespace(active=[], _sqlb=None)

    def stop(self):
        pass


def test_listener_that_moves_to_connect_gets_an_agent_of_that_kind(monkeypatch):
    """A notebook stops its classic session and connects to a server with the same listener."""
    monkeypatch.setattr(patches, "notify_of_new_sessions", lambda _: None)
    listener = TelemetryListener(**QUIET)
    addListener(listener)
    classic = listener._agent
    listener._set_spark_session(ConnectSession())
    assert classic.closed
    assert listener._agent.kind is SparkKind.CONNECT
    assert type(listener._agent.driver).__name__ == "ConnectDriver"
    addListener(listener)
    assert listener._agent.kind is SparkKind.CLASSIC


class Unrelated:
    """An exporter of the user's without our base class."""

    name = "unrelated"

    def __init__(self):
        self.told = []

    def handle(self, event, query):
        self.told.append(type(event).__name__)

    def change(self, query, before, after):
        self.told.append(after.state)


def test_exporter_without_our_base_class_is_told_by_the_methods_it_has(agent):
    """As before there were updates."""
    mine = Unrelated()
    watched = agent(exporters=[mine])
    life = Life()
    feed(watched, life.started(), life.terminated("E: x"))
    assert mine.told == ["Started", "starting", "Terminated", "failed"]
    assert _errors(watched) == {}


class Raising(Unrelated):
    """One whose `handle` fails."""

    def handle(self, event, query):
        raise ValueError("no")


def test_new_verdict_reaches_an_exporter_that_failed_on_the_event(agent):
    """It is told once; whatever became of the event must not swallow it."""
    mine = Raising()
    watched = agent(exporters=[mine])
    life = Life()
    feed(watched, life.started(), life.terminated("E: x"))
    assert mine.told == ["starting", "failed"]
    assert _errors(watched) == {"unrelated": 2}


# ---- repr ---------------------------------------------------------------------------------------


def test_listener_that_is_not_added_yet_says_so():
    """And how to add it; one that is off says that."""
    assert "not added yet: spark.streams.addListener" in repr(TelemetryListener(**QUIET))
    assert repr(TelemetryListener(disabled=True)) == "<TelemetryListener off>"
    assert "not added yet" in TelemetryListener(**QUIET)._repr_html_()


def test_repr_names_address_queries_and_verdicts(agent):
    """In one line that stays one, however many there are; ended agents say so."""
    mine = agent(metrics_address="127.0.0.1:0")
    assert repr(mine) == f"<Agent {mine.address}: no query yet>"
    for name in ("orders", "clicks"):
        life = Life(name)
        feed(mine, life.started(), life.progress())
    assert repr(mine) == f"<Agent {mine.address}: clicks running, orders running>"
    feed(mine, *(Life(f"q{number:02}").started() for number in range(30)))
    assert repr(mine).endswith(", and 22 more>")
    mine.close()
    assert repr(mine).startswith("<Agent closed: clicks running")


def test_notebooks_show_a_table_and_no_markup_of_others(agent):
    """A query's name or reason can't become HTML."""
    mine = agent(metrics_address="127.0.0.1:0")
    life = Life("<script>alert(1)</script>")
    feed(mine, life.started(), life.terminated("E: <img src=x onerror=alert(1)>"))
    html = mine._repr_html_()
    assert f'<a href="{mine.address}/">' in html
    assert "<td>failed</td>" in html
    assert "&lt;script&gt;" in html
    assert "&lt;img" in html
    assert "<script" not in html
    assert "<img" not in html
    assert mine._repr_html_().count("<tr>") == 2


def test_listener_shows_its_agent():
    """The same in a notebook's cell that ends with the listener."""
    listener = TelemetryListener(**QUIET)
    addListener(listener)
    try:
        assert repr(listener) == "<TelemetryListener not served: no query yet>"
        assert "no query yet" in listener._repr_html_()
    finally:
        listener.close()
