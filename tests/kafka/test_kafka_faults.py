"""What happens to topics and brokers under a real query: no crash, no false zero, a page in time."""

import threading
import time
import urllib.parse
import urllib.request

import pytest
from alert_stack import Program, get_json
from broker import Clock
from kafka_driver import read_kafka
from stage import free_port, page, program, value, wait_for

from streamgauge.grafana.alerts.prometheus import Export, rule_file
from streamgauge.grafana.alerts.settings import Settings
from streamgauge.grafana.alerts.yamltext import dump

RULES_SCALE = 1 / 60  # minutes are seconds


class Query:
    """A query whose batches can be held, and what the page says of its source."""

    def __init__(self, spark, listener, broker, topic, folder):
        self._gate = threading.Event()
        self._gate.set()
        self.listener = listener
        self._make = lambda: (
            read_kafka(spark, broker.address, [topic], failOnDataLoss="false")
            .writeStream.queryName("orders")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .foreachBatch(self._write)
            .start()
        )
        self.run = self._make()

    def _write(self, rows, _):
        rows.write.format("noop").mode("overwrite").save()
        self._gate.wait(200)

    def hold(self):
        self._gate.clear()

    def let_go(self):
        self._gate.set()

    def revive(self):
        """Start it again if it is over."""
        if not self.run.isActive:
            self.run = self._make()

    def page(self):
        with urllib.request.urlopen(f"{self.listener.address}/metrics", timeout=5) as answer:
            return page(answer.read().decode())

    def source(self, name, samples=None, **labels):
        return value(samples or self.page(), name, source="0-kafka", **labels)

    def reads_all(self, seconds=60):
        """Wait until nothing waits, by the broker's word."""
        wait_for(lambda: self.source("source_backlog_rows") == 0, seconds, "nothing to wait")

    def behind(self, rows, seconds=30):
        """Wait for this backlog."""
        wait_for(lambda: self.source("source_backlog_rows") == rows, seconds, f"{rows} rows behind")


@pytest.fixture
def query(spark, listen, broker, tmp_path):
    """Starts a query on a topic, with an agent that asks the broker."""
    made = []

    def start(topic, **settings):
        listener = listen(kafka=broker.address, **settings)
        made.append(Query(spark, listener, broker, topic, tmp_path))
        return made[-1]

    yield start
    for one in made:
        one.let_go()


def test_partitions_added_and_one_without_rows(query, broker):
    """An empty partition is 0 rows behind; a new one is behind by all that it holds."""
    broker.create("wide", partitions=2)
    Clock(broker, ("wide",), 1, 1).beat(10)  # the second partition stays empty
    mine = query("wide")
    mine.reads_all()
    parts = [mine.source("source_partition_backlog_rows", partition=p) for p in "01"]
    assert parts == [0, 0]
    mine.hold()
    broker.widen("wide", 4)
    Clock(broker, ("wide",), 4, 1).beat(3)
    mine.behind(12)
    assert mine.source("source_partition_backlog_rows", partition="3") == 3
    assert mine.source("source_partitions") == 4
    assert mine.source("source_partitions_added_total") == 2
    mine.let_go()
    mine.reads_all()
    assert mine.run.exception() is None


def test_topic_made_anew_while_the_query_is_down(query, broker):
    """Offsets went backwards: how far behind it is can't be known, and that is not 0."""
    broker.create("reborn", partitions=1)
    Clock(broker, ("reborn",), 1, 1).beat(50)
    mine = query("reborn")
    mine.reads_all()
    mine.run.stop()
    broker.delete("reborn")
    wait_for(lambda: mine.source("source_backlog_rows") is None, 20, "an unknown backlog")
    broker.create("reborn", partitions=1)
    clock = Clock(broker, ("reborn",), 1, 1)
    clock.beat(5)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert mine.source("source_backlog_rows") is None
        assert not mine.source("source_lag_seconds")
        time.sleep(0.1)
    mine.revive()
    clock.beat(3)
    mine.reads_all()
    assert not value(mine.page(), "agent_errors_total", None, part="worker")


@pytest.mark.timeout(300)
def test_broker_down_for_a_minute(query, broker):
    """What was known stands and ages, errors are counted, the page is quick; then all goes on."""
    broker.create("outage", partitions=2)
    clock = Clock(broker, ("outage",), 2, 1)
    clock.beat(4)
    mine = query("outage")
    mine.reads_all()
    mine.hold()
    clock.beat(10)
    mine.behind(20)
    broker.stop()
    began = time.monotonic()
    while time.monotonic() - began < 60:
        asked = time.monotonic()
        samples = mine.page()
        assert time.monotonic() - asked < 2
        assert mine.source("source_backlog_rows", samples) == 20
        true = time.time() - clock.times[4]
        assert mine.source("source_lag_seconds", samples) == pytest.approx(true, rel=0.1, abs=1)
        time.sleep(1)
    errors = value(mine.page(), "agent_errors_total", None, part="kafka")
    assert 2 <= errors <= 10
    broker.start()
    clock.beat(5)
    mine.behind(30, seconds=60)
    mine.let_go()
    wait_for(lambda: mine.revive() or mine.source("source_backlog_rows") == 0, 120, "all read")


@pytest.fixture
def rules(tmp_path):
    """A real Prometheus with the shipped rules, their durations scaled, on one page; asks it."""
    running = []

    def start(address):
        (tmp_path / "rules.yml").write_text(rule_file(Export(Settings({}, RULES_SCALE))))
        scrape = {"job_name": "spark", "static_configs": [{"targets": [address]}]}
        config = {"global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"}}
        config |= {"rule_files": [str(tmp_path / "rules.yml")], "scrape_configs": [scrape]}
        (tmp_path / "prometheus.yml").write_text(dump(config))
        url = f"http://127.0.0.1:{free_port()}"
        running.append(
            Program(
                tmp_path,
                program("prometheus"),
                f"{url}/-/ready",
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address={url.removeprefix('http://')}",
            )
        )
        running[-1].start()

        def ask(expr):
            where = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expr})}"
            return get_json(where)["data"]["result"]

        return ask

    yield start
    for one in running:
        one.stop()


@pytest.mark.timeout(300)
def test_retention_risk_fires_before_the_rows_are_gone(query, broker, rules):
    """Then retention really deletes them: they are counted, and the alert stays."""
    broker.create("brief", partitions=2, retention_ms=40_000, segment_ms=1000)
    clock = Clock(broker, ("brief",), 2, 2)
    clock.beat(3)
    mine = query("brief")
    ask = rules(mine.listener.address.removeprefix("http://"))
    mine.reads_all()
    committed = 3
    mine.hold()
    clock.go()
    fires = 'ALERTS{alertname="SparkStreamRetentionRisk",alertstate="firing"}'

    def lost():
        return mine.source("source_rows_lost_total")

    wait_for(lambda: ask(fires) or lost(), 60, "the alert")
    assert ask(fires)
    assert lost() == 0  # it fired first
    assert mine.source("source_retention_headroom_seconds") > 0
    wait_for(lost, 60, "the deletion")
    clock.pause()
    clock.close()
    time.sleep(2)
    end = len(clock.times)
    assert mine.source("source_backlog_rows") == 2 * (end - committed)
    assert mine.source("source_retention_headroom_seconds") == 0
    assert ask(fires)
    mine.let_go()
    mine.reads_all()
    assert 0 < lost() <= 2 * (end - committed)
