"""Events reach the agent: once each, fast where it goes, slow where it must, not at all when off."""

import os

import pyspark
import pytest
from harness import commits
from stage import page, value, wait_for

from streamgauge.listener.classic import bridge


def _start(rows, name, sink="noop", **options):
    writer = rows.writeStream.format(sink).queryName(name)
    return writer.trigger(processingTime="100 milliseconds").options(**options).start()


def _seen(listener, name, batches):
    def enough():
        samples = page(listener._agent)
        return (value(samples, "batches_total", query=name, data="true") or 0) >= batches

    wait_for(enough, 60, f"{batches} batches of {name}")
    return page(listener._agent)


def test_every_event_arrives_without_python_on_the_bus(listen, rows):
    """Started, batches and the end are seen, and none came by a slower way."""
    listener = listen()
    query = _start(rows, "plain")
    commits(query, 5)
    query.stop()
    wait_for(lambda: listener.stats.of("events").get("terminated"), what="the end")
    done = query.lastProgress["batchId"] + 1
    samples = _seen(listener, "plain", 5)
    assert value(samples, "batches_total", query="plain", data="true") in {done, done - 1}
    assert value(samples, "query_starts_total", query="plain") == 1
    assert value(samples, "query_terminations_total", query="plain", outcome="stopped") == 1
    assert value(samples, "agent_fallback_events_total", query=None) == 0
    assert value(samples, "agent_missed_batches_total", query=None) == 0
    assert value(samples, "agent_callback_seconds_count", query=None) is None
    assert sum(listener.stats.of("errors").values()) == 0


def test_added_twice_counts_once(listen, rows, spark):
    """The second delivery of each event is a duplicate, and nothing else."""
    listener = listen()
    spark.streams.addListener(listener)
    query = _start(rows, "twice")
    commits(query, 3)
    query.stop()
    wait_for(lambda: listener.stats.of("events").get("duplicate", 0) >= 5, what="duplicates")
    samples = page(listener._agent)
    assert value(samples, "query_starts_total", query="twice") == 1
    assert value(samples, "input_rows_total", query="twice") == 10 * value(
        samples, "batches_total", query="twice", data="true"
    )
    spark.streams.removeListener(listener)


def test_two_listeners_share_one_agent_and_one_port(listen, rows):
    """A notebook cell run again counts nothing twice and opens no second port."""
    first, second = listen(), listen()
    assert first._agent is second._agent
    assert first.address == second.address
    query = _start(rows, "shared")
    commits(query, 3)
    query.stop()
    samples = _seen(first, "shared", 3)
    batches = value(samples, "batches_total", query="shared", data="true")
    assert value(samples, "input_rows_total", query="shared") == 10 * batches


def test_removed_listener_hears_no_more(listen, rows, spark):
    """`removeListener` takes the very object off that `addListener` put on."""
    listener = listen()
    before = len(spark.streams._jsqm.listListeners())
    spark.streams.removeListener(listener)
    assert len(spark.streams._jsqm.listListeners()) == before - 1
    query = _start(rows, "unheard")
    commits(query, 2)
    query.stop()
    assert listener.stats.of("events") == {}
    spark.streams.addListener(listener)


def test_closed_listener_is_removed_and_hears_again_once_added(listen, rows, spark):
    """After `close()` it can be taken off as it was put on, and be put on anew."""
    listener = listen()
    before = len(spark.streams._jsqm.listListeners())
    listener.close()
    spark.streams.removeListener(listener)
    assert len(spark.streams._jsqm.listListeners()) == before - 1
    assert listener.closed
    spark.streams.addListener(listener)
    query = _start(rows, "again")
    commits(query, 2)
    query.stop()
    _seen(listener, "again", 2)
    assert sum(listener.stats.of("errors").values()) == 0


@pytest.mark.parametrize("lacking", [1, 2])
def test_unknown_spark_falls_back(listen, rows, monkeypatch, lacking):
    """Without the queue by a callback, without that through public objects: same numbers, counted."""

    def missing(_):
        raise AttributeError("no such class in this Spark")

    for way in ("make_queue_listener", "wrap_callback")[:lacking]:
        monkeypatch.setattr(f"streamgauge.listener.stream_listener.{way}", missing)
    listener = listen()
    query = _start(rows, "slow")
    commits(query, 2)
    query.stop()
    samples = _seen(listener, "slow", 2)
    assert value(samples, "query_starts_total", query="slow") == 1
    assert value(samples, "agent_fallback_events_total", query=None) >= 3
    assert value(samples, "agent_callback_seconds_count", query=None) >= 3
    assert listener.stats.of("errors") == {"bridge": lacking}
    batches = value(samples, "batches_total", query="slow", data="true")
    assert value(samples, "input_rows_total", query="slow") == 10 * batches


def test_event_without_json_falls_back(listen, rows, monkeypatch):
    """On the callback too: an event object that lost its `json()` is read through PySpark's classes."""

    class Without:
        def __init__(self, jevent):
            self._jevent = jevent

        def json(self):
            raise RuntimeError("no json here")

        def __getattr__(self, name):
            return getattr(self._jevent, name)

    def missing(_):
        raise AttributeError("no queue in this JVM")

    take = bridge.Bridge._take
    monkeypatch.setattr("streamgauge.listener.stream_listener.make_queue_listener", missing)
    monkeypatch.setattr(
        bridge.Bridge, "_take", lambda self, kind, jevent: take(self, kind, Without(jevent))
    )
    listener = listen()
    query = _start(rows, "nojson")
    commits(query, 2)
    query.stop()
    samples = _seen(listener, "nojson", 2)
    assert value(samples, "agent_fallback_events_total", query=None) >= 3


@pytest.mark.parametrize("how", ["variable", "setting"])
def test_kill_switch_registers_nothing_in_python(listen, rows, spark, monkeypatch, how):
    """With the switch on no agent is made, no port opened and no call comes to Python."""
    if how == "variable":
        monkeypatch.setitem(os.environ, "STREAMGAUGE_DISABLED", "1")
        listener = listen()
    else:
        listener = listen(disabled=True)
    calls = []
    for name in ("onQueryStarted", "onQueryProgress", "onQueryTerminated"):
        monkeypatch.setattr(listener, name, calls.append)
    query = _start(rows, "off")
    commits(query, 3)
    query.stop()
    assert listener._agent is None
    assert listener.address is None
    assert calls == []
    spark.streams.removeListener(listener)
    spark.streams.addListener(listener)


def test_wrong_settings_raise_where_they_are_written():
    """Before anything was registered, and with the allowed names."""
    from streamgauge import ConfigError, TelemetryListener

    with pytest.raises(ConfigError, match="metrics_address"):
        TelemetryListener(metrics_adress="127.0.0.1:1")


@pytest.mark.skipif(not pyspark.__version__.startswith("3."), reason="is about Spark 3.5 alone")
def test_connect_of_3_5_is_refused_with_the_reason():
    """Spark's own client would send the listener to the server; it is told before it does."""
    from pyspark.sql.connect.session import SparkSession

    import streamgauge

    session = SparkSession("sc://127.0.0.1:1")  # nobody is asked until something is sent
    listener = streamgauge.TelemetryListener()
    # The listener itself refuses: 3.5's Connect can't have it, so there is nothing to build.
    refused = pytest.raises(NotImplementedError, match=r"4\.0 or newer")
    with refused:
        session.streams.addListener(listener)
    with refused:
        streamgauge.attach(session)
