"""`attach` sees every session of the application, each query once; `addListener` its own."""

import pytest
from harness import commits
from stage import page, value, wait_for

SESSIONS, QUERIES = 20, 3


@pytest.fixture
def attached(spark):
    """Attaches with settings, and detaches."""
    import streamgauge

    def attach(**settings):
        settings.setdefault("metrics_address", "")
        settings.setdefault("watch_seconds", 0.5)
        settings.setdefault("log_level", "off")
        return streamgauge.attach(spark, **settings)

    yield attach
    for running in list(spark._jsparkSession.sharedState().activeStreamingQueries().values()):
        running.stop()
    streamgauge.detach()


def _rows(session):
    return session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()


def _start(session, name, interval="100 milliseconds"):
    writer = _rows(session).writeStream.format("noop").queryName(name)
    return writer.trigger(processingTime=interval).start()


@pytest.mark.timeout(300)
def test_twenty_sessions_of_three_queries(attached, spark):
    """Sixty live queries of three names: sixty labels, one start and one batch each."""
    listener = attached()
    names = [f"q{n}" for n in range(QUERIES)]
    sessions = [spark.newSession() for _ in range(SESSIONS)]
    queries = [_start(session, name, "1 hour") for session in sessions for name in names]
    total = SESSIONS * QUERIES
    wait_for(lambda: listener.stats.of("events").get("progress", 0) >= total, 100, "the batches")
    assert listener.stats.of("events").get("started") == total
    assert listener.stats.of("events").get("progress") == total
    assert listener.stats.of("events").get("duplicate", 0) == 0
    known = listener._agent.queries
    assert set(known) == {query.id for query in queries}
    labels = {query.label for query in known.values()}
    assert len(labels) == total
    samples = page(listener._agent)
    for label in labels:
        assert value(samples, "query_starts_total", query=label) == 1
        assert value(samples, "batches_total", query=label, data="true") == 1
        assert value(samples, "input_rows_total", query=label) == 10
        assert value(samples, "query_state", query=label, state="blind") == 0
    wait_for(
        lambda: all(q.status and q.status.listening for q in listener._agent.queries.values()),
        60,
        "a look at each",
    )
    for query in queries:
        query.stop()
    wait_for(lambda: listener.stats.of("events").get("terminated", 0) == total, 60, "the ends")


def test_one_name_in_two_sessions_does_not_mix(attached, spark):
    """Each has its own label, batches and end."""
    listener = attached()
    first = _start(spark, "same")
    commits(first, 2)
    second = _start(spark.newSession(), "same")
    commits(second, 4)
    first.stop()
    other = f"same-{second.id[:8]}"
    wait_for(lambda: value(page(listener._agent), "query_active", query="same") == 0, what="an end")
    assert value(page(listener._agent), "query_active", query=other) == 1
    done = first.lastProgress["batchId"] + 1
    samples = page(listener._agent)
    assert value(samples, "batches_total", query="same", data="true") in {done - 1, done}
    assert value(samples, "query_info", query=other, query_id=second.id) == 1
    second.stop()


def test_listener_sees_its_own_session_only(listen, spark):
    """As Spark's listeners do."""
    listener = listen()
    foreign = _start(spark.newSession(), "foreign")
    own = _start(spark, "own")
    commits(foreign, 3)
    commits(own, 3)
    wait_for(lambda: value(page(listener._agent), "input_rows_total", query="own"), what="a batch")
    assert {query.label for query in listener._agent.queries.values()} == {"own"}
    foreign.stop()


def test_attach_again_and_beside_a_listener_counts_once(attached, listen, spark):
    """A second call returns what is there; a listener beside it only brings duplicates."""
    first = attached()
    assert attached() is first
    listener = listen()
    assert listener._agent is first._agent
    query = _start(spark, "once")
    commits(query, 3)
    query.stop()
    wait_for(lambda: first.stats.of("events").get("terminated"), what="the end")
    samples = page(first._agent)
    assert value(samples, "query_starts_total", query="once") == 1
    batches = value(samples, "batches_total", query="once", data="true")
    assert value(samples, "input_rows_total", query="once") == 10 * batches


def test_detach_takes_everything_off(attached, spark):
    """No bus, no agent; what was seen is complete."""
    import streamgauge

    bus = spark.sparkContext._jsc.sc().listenerBus()
    before = bus.listeners().size()
    listener = attached()
    assert bus.listeners().size() == before + 1
    query = _start(spark, "last")
    commits(query, 2)
    query.stop()
    streamgauge.detach()
    assert bus.listeners().size() == before
    assert listener.closed
    assert listener.stats.of("events").get("terminated") == 1
    assert attached() is not listener


def test_kill_switch_attaches_nothing(attached, spark):
    """With the switch on there is no bus of ours and no agent."""
    bus = spark.sparkContext._jsc.sc().listenerBus()
    before = bus.listeners().size()
    listener = attached(disabled=True)
    assert bus.listeners().size() == before
    assert listener._agent is None
