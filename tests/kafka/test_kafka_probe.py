"""The poller of Kafka on a real broker: what the page says of a query that sends no events any more."""

import io
import json
import subprocess
import sys
import time
from datetime import datetime, timezone

import pytest
from broker import Clock
from stage import ROOT, Life, feed, free_port, page, value, wait_for

from streamgauge.config import make_config
from streamgauge.exporters.logs import make_logger
from streamgauge.listener.driver import QuietDriver
from streamgauge.listener.kafka.poller import ages
from streamgauge.listener.pollers import make_pollers

SOURCE = "0-kafka"


def batch(life, ends, latest):
    """A batch of now that read everything of these topics up to `ends`."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    source = {
        "description": f"KafkaV2[Subscribe[{', '.join(ends)}]]",
        "startOffset": None,
        "endOffset": ends,
        "latestOffset": latest,
        "numInputRows": 1,
    }
    return life.progress(now, sources=[source])


@pytest.fixture
def watched(agent, broker):
    """Starts an agent that asks the broker, and tells it of one batch."""

    def start(ends, latest=None, **settings):
        settings = {"kafka": broker.address, "watch_seconds": 0.2, **settings}
        mine = agent(**settings)
        life = Life()
        feed(mine, life.started(), batch(life, ends, latest or ends))
        return mine

    return start


def read(mine, name, **labels):
    """One series of the source."""
    return value(page(mine), name, source=SOURCE, **labels)


def test_backlog_grows_while_the_query_hangs(watched, broker):
    """Partition by partition, exactly, with no event from Spark."""
    broker.create("hung", partitions=3)
    clock = Clock(broker, ("hung",), 3, 10)
    clock.beat(4)
    mine = watched({"hung": {"0": 4, "1": 2, "2": 0}}, {"hung": {"0": 4, "1": 4, "2": 4}})
    wait_for(lambda: read(mine, "source_retention_headroom_seconds") is not None, 20)
    assert read(mine, "source_backlog_rows") == 6
    clock.beat(5)
    wait_for(lambda: read(mine, "source_backlog_rows") == 21, 20)
    behind = [
        read(mine, "source_partition_backlog_rows", topic="hung", partition=str(p))
        for p in range(3)
    ]
    assert behind == [5, 7, 9]
    assert read(mine, "source_rows_lost_total") == 0


def test_rows_from_before_the_start_have_an_age(watched, broker):
    """A driver that was down for a while comes back: the age of its backlog is known to the second."""
    broker.create("past", partitions=2)
    clock = Clock(broker, ("past",), 2, 5)
    clock.beat(30)  # at once; then evenly
    clock.go()
    wait_for(lambda: len(clock.times) >= 70, 30)
    clock.pause()
    clock.close()
    time.sleep(8)
    committed = 35
    ends = {"past": dict.fromkeys("01", committed)}
    mine = watched(ends, {"past": dict.fromkeys("01", len(clock.times))})
    lag = wait_for(lambda: read(mine, "source_lag_seconds"), 20)
    true = time.time() - clock.times[committed]
    assert true > 12
    assert lag == pytest.approx(true, abs=1.0)
    headroom = read(mine, "source_retention_headroom_seconds")
    assert headroom == pytest.approx(7 * 86400 - true, abs=2.0)


def test_nobody_reads_kafka_nobody_is_asked(agent):
    """A setting for all jobs costs those without Kafka nothing."""
    settings = {"kafka": f"127.0.0.1:{free_port()}", "watch_seconds": 0.1}
    mine = agent(**settings)
    feed(mine, Life().started())
    errors = []
    (poller,) = make_pollers(
        make_config(settings),
        QuietDriver(),
        mine.inbox,
        lambda: mine.queries,
        lambda *error: errors.append(error),
    )
    assert poller.poll()
    assert poller._broker is None
    assert errors == []
    assert value(page(mine), "agent_errors_total", None, part="kafka") is None


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("127.0.0.1:1", "no broker can be reached"),
        ("/nowhere/client.properties", "can't be read"),
    ],
)
def test_a_broker_that_is_not_there_is_counted_and_told_once(watched, broker, capfd, named, words):
    """No flood: one line a minute, nothing on stderr, no address in either; the page goes on."""
    broker.create(f"away{len(named)}", partitions=1)
    log = io.StringIO()
    mine = watched(
        {f"away{len(named)}": {"0": 0}},
        kafka=named,
        logger=make_logger("info", log),
        log_level="info",
    )
    errors = wait_for(lambda: value(page(mine), "agent_errors_total", None, part="kafka"), 60)
    wait_for(lambda: value(page(mine), "agent_errors_total", None, part="kafka") > errors, 60)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (told,) = [line for line in lines if line.get("part") == "kafka"]
    assert words in told["error"]
    assert "127.0.0.1:1" not in log.getvalue()
    assert capfd.readouterr().err == ""
    assert read(mine, "source_backlog_rows") == 0  # Spark's own word of the last batch stands


def test_the_process_ends_while_nobody_answers():
    """A poll that waits for a broker holds up no exit."""
    code = f"""
import sys, time
sys.path[:0] = {[str(ROOT / "tests"), str(ROOT / "tests" / "kafka")]!r}
from stage import ROOT, Life, feed
from test_kafka_probe import batch
from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.listener.driver import QuietDriver
settings = {{"kafka": "127.0.0.1:1", "watch_seconds": 0.1, "metrics_address": ""}}
agent = Agent(make_config(settings), driver=QuietDriver())
agent.start()
life = Life()
feed(agent, life.started(), batch(life, {{"t": {{"0": 1}}}}, {{"t": {{"0": 1}}}}))
time.sleep(1)
print(time.time())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert time.time() - float(done.stdout) < 3


def test_ages_reach_from_seconds_to_the_retention():
    """Rising, in as many steps as were asked for, and never past a week."""
    found = ages(3600.0, 8)
    assert len(found) == 8
    assert found == sorted(found)
    assert (found[0], round(found[-1])) == (5.0, 3600)
    assert ages(1e9, 24)[-1] == pytest.approx(7 * 86400)
    assert ages(1.0, 8)[-1] == pytest.approx(10.0)
