"""The series of a source on the page, from events and from looks at the broker itself."""

from __future__ import annotations

import time

from exposition import update_of
from known_broker import T0, Broker, Reader, steady
from prometheus_client import CollectorRegistry, generate_latest
from stage import Life, apply_to, feed, page, value, wait_for

from streamgauge.config import make_config
from streamgauge.exporters.metrics.collector import PrometheusExporter
from streamgauge.listener.inbox import OBSERVATION, Item
from streamgauge.model.application import Application
from streamgauge.model.decoder import decode
from streamgauge.model.observations import SourceBacklog
from streamgauge.model.sources.broker_offsets import BrokerOffsets
from streamgauge.model.sources.waiting import Waiting
from streamgauge.model.stats import Stats

KEYS = [(f"t{t}", str(p)) for t in range(3) for p in range(8)]


class Stage:
    """A reader whose fleet is on a page."""

    def __init__(self, **settings):
        self.reader = Reader(Broker({key: steady(5 + n, 900) for n, key in enumerate(KEYS)}))
        self.now = T0
        self.exporter = PrometheusExporter(
            make_config(settings), Stats(), application=Application, clock=lambda: self.now
        )
        self.registry = CollectorRegistry()
        self.registry.register(self.exporter)

    def batch(self, at, seconds=1.0, **changes):
        """A batch, told to the page."""
        self.reader.batch(at, seconds, **changes)
        self.now = at + seconds
        self.exporter.export(update_of(self.query, self.query.last, self.now))

    def probe(self, at, **changes):
        """A look at the broker, told to the page."""
        self.reader.probe(at, **changes)
        self.now = at
        self.exporter.export(update_of(self.query, at=at))

    def fail(self, at):
        """The query fails."""
        self.now = at
        self.play(self.reader.life.terminated("E: x"))

    def play(self, text):
        """Any event, told to the page."""
        event = decode(text)
        query = apply_to(self.reader.fleet, event, self.now)
        self.exporter.export(update_of(query, event, self.now))

    @property
    def query(self):
        """What is known of it."""
        return self.reader.fleet.queries[self.reader.life.query_id]

    def samples(self):
        """The page now."""
        return page(generate_latest(self.registry).decode())


def _partitions(samples):
    found = {}
    for (name, pairs), number in samples.items():
        if name == "streamgauge_source_partition_backlog_rows":
            labels = dict(pairs)
            found[labels["topic"], labels["partition"]] = number
    return found


def test_series_of_a_throttled_kafka_source():
    """Every figure of the source, and each partition's own."""
    stage = Stage()
    for n in range(10):
        stage.batch(T0 + 10 + 5 * n, limit=1000)
    samples = stage.samples()
    read, latest = stage.reader.read, stage.reader.broker.latest(T0 + 55)
    waits = {key: latest[key] - read[key] for key in KEYS}
    one = {"query": "reader", "source": "0-kafka"}
    assert value(samples, "source_backlog_rows", **one) == sum(waits.values())
    assert _partitions(samples) == waits
    assert value(samples, "source_partition_backlog_max_rows", **one) == max(waits.values())
    assert value(samples, "source_partitions", **one) == 24
    assert value(samples, "source_partitions_stalled", **one) == 0
    assert value(samples, "source_rate_limited", **one) == 1
    assert value(samples, "source_offset", kind="end", **one) == sum(read.values())
    assert value(samples, "source_offset", kind="latest", **one) == sum(latest.values())
    true = stage.now - stage.reader.broker.oldest_unread(read, stage.now)
    assert abs(value(samples, "source_lag_seconds", **one) - true) < 1
    for name in ("offset_resets", "partitions_added", "partitions_removed"):
        assert value(samples, f"source_{name}_total", **one) == 0
    for name in (
        "source_drain_seconds",
        "source_retention_headroom_seconds",
        "source_rows_lost_total",
    ):
        assert value(samples, name, **one) is None, name


def test_only_the_partitions_furthest_behind_have_series():
    """As many as the query's setting allows; none, or all of them."""
    for most, shown in ((0, 0), (5, 5), (-1, 24), (100, 24)):
        stage = Stage(queries={"reader": {"partition_series": most}})
        stage.batch(T0 + 10)
        stage.batch(T0 + 15, limit=100)
        found = _partitions(stage.samples())
        assert len(found) == shown
        waits = stage.reader.lag.backlogs.by_key()
        assert sorted(found.values()) == sorted(waits.values())[24 - shown :]


def test_partitions_keep_within_the_budget():
    """Past the series budget partitions are left out; the sum is right all the same."""
    stage = Stage(series_limit=105, queries={"reader": {"partition_series": -1}})
    stage.batch(T0 + 10)
    stage.batch(T0 + 15, limit=100)
    samples = stage.samples()
    assert value(samples, "agent_series", query=None) <= 105
    assert len(_partitions(samples)) < 24
    assert value(samples, "source_backlog_rows", query="reader") == stage.reader.lag.backlog


def test_source_of_a_failed_query_stays_while_the_probe_sees_it():
    """Down for hours: what was not read, for how long, and for how much longer it is kept."""
    stage = Stage(grace_seconds=60)
    for n in range(5):
        stage.batch(T0 + 10 + 5 * n)
    stage.fail(T0 + 40)
    for n in range(100):
        stage.probe(T0 + 45 + 5 * n, retention=dict.fromkeys(("t0", "t1", "t2"), 1000.0))
    samples = stage.samples()
    true = stage.now - stage.reader.broker.oldest_unread(stage.reader.read, stage.now)
    assert true > 500
    assert abs(value(samples, "source_lag_seconds", query="reader") - true) < 1
    headroom = value(samples, "source_retention_headroom_seconds", query="reader")
    assert abs(headroom - (1000 - true)) < 1
    waits = sum(stage.reader.broker.latest(stage.now).values()) - sum(stage.reader.read.values())
    assert value(samples, "source_backlog_rows", query="reader") == waits
    assert value(samples, "batches_total", query="reader", data="true") is None
    stage.play(stage.reader.life.started())
    assert value(stage.samples(), "source_backlog_rows", query="reader") == waits


def test_source_of_a_failed_query_goes_without_the_probe():
    """Nobody looks any more: no figure that only seems to be of now."""
    stage = Stage(grace_seconds=60)
    for n in range(5):
        stage.batch(T0 + 10 + 5 * n)
    stage.fail(T0 + 40)
    stage.now = T0 + 200
    stage.exporter.export(update_of(stage.query, at=stage.now))
    assert not [name for name, _ in stage.samples() if "_source_" in name]


def test_delta_source_in_versions_files_and_bytes():
    """Where it reports them, and no rows."""
    stage = Stage()
    offset = {"sourceVersion": 1, "reservoirId": "x", "reservoirVersion": 5, "index": -1}
    source = {
        "description": "DeltaSource[file:/data/t]",
        "startOffset": offset,
        "endOffset": offset,
        "latestOffset": {**offset, "reservoirVersion": 8},
        "metrics": {"numBytesOutstanding": "2048", "numFilesOutstanding": "3"},
    }
    stage.now = T0 + 5
    stage.play(stage.reader.life.progress(sources=[source]))
    samples, one = stage.samples(), {"query": "reader", "source": "0-delta"}
    assert value(samples, "source_backlog_versions", **one) == 3
    assert value(samples, "source_backlog_files", **one) == 3
    assert value(samples, "source_backlog_bytes", **one) == 2048
    for name in ("source_backlog_rows", "source_lag_seconds", "source_partitions"):
        assert value(samples, name, **one) is None


def test_what_waits_in_a_source_that_does_not_tell(agent):
    """Shown from look to look, also past a commit; not when the look is old, nor after the end."""
    mine, life = agent(), Life("reader")
    source = {"description": "FileStreamSource[file:/in]", "endOffset": {"logOffset": 3}}
    feed(mine, life.started(), life.progress(sources=[source]))

    def look(waiting, seconds=60.0):
        seen = SourceBacklog(
            query_id=life.query_id, run_id=life.run_id, until=time.time() + seconds, waiting=waiting
        )
        mine.inbox.put(Item(OBSERVATION, seen, time.time()))

    def shown():
        return value(page(mine), "source_backlog_files", query="reader", source="0-file")

    assert shown() is None
    look({"0-file": Waiting(files=0)})
    wait_for(lambda: shown() == 0, what="nothing waits")
    look({"0-file": Waiting(files=7)})
    wait_for(lambda: shown() == 7, what="seven files")
    feed(mine, life.progress(sources=[source]))
    assert shown() == 7
    look({})
    wait_for(lambda: shown() is None, what="a look that could not tell")
    look({"0-file": Waiting(files=6)}, seconds=1.0)
    wait_for(lambda: shown() == 6, what="six files")
    wait_for(lambda: shown() is None, what="a look too old")
    look({"0-file": Waiting(files=5)})
    wait_for(lambda: shown() == 5, what="five files")
    feed(mine, life.terminated())
    assert shown() is None


def test_look_comes_through_the_inbox(agent):
    """Put by any thread, it is on the page soon; the fleet's next event still finds its place."""
    mine, life = agent(), Life("reader")
    feed(mine, life.started(), life.progress())
    at = time.time()
    look = BrokerOffsets(
        kind="kafka",
        topics=frozenset({"orders"}),
        earliest={("orders", "0"): 0},
        latest={("orders", "0"): 110},
        retention={"orders": 3600.0},
        at=at,
    )
    mine.inbox.put(Item(OBSERVATION, look, at))
    wait_for(lambda: _backlog(mine) == 100, what="the look on the page")
    feed(mine, life.progress())
    assert _backlog(mine) == 90
    assert value(page(mine), "source_rows_lost_total", query="reader") == 0


def _backlog(agent):
    return value(page(agent), "source_backlog_rows", query="reader")
