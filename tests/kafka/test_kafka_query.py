"""A real query on a real broker: throttled, hung, killed, restarted; the page against the truth."""

import json
import time

import pytest
from broker import Clock
from kafka_job import Job
from stage import wait_for

from streamgauge.cli import main

PARTITIONS = 8
BEATS = 15.0  # a second; each is a row in every partition
SCRAPE = 2.0  # seconds


@pytest.fixture(scope="module")
def job(broker, tmp_path_factory):
    """A throttled query on three topics of eight partitions, and a producer with a known rate."""
    topics = ("sales", "clicks", "views")
    broker.create(*topics, partitions=PARTITIONS)
    made = Job(broker, tmp_path_factory.mktemp("job"), topics)
    made.clock = Clock(broker, topics, PARTITIONS, BEATS)
    made.clock.beat(20)
    made.clock.go()
    made.start(limit=200)  # of 360 that come in a second
    yield made
    made.clock.close()
    made.kill()


def check_running(job, samples=3):
    """Each partition within what was produced in one scrape, the lag by the producer's clock."""
    for _ in range(samples):
        seen = job.sample()
        exported, true = seen.exported(), seen.true()
        assert exported.keys() == true.keys()
        assert len(true) == 3 * PARTITIONS
        off = {key: exported[key] - true[key] for key in true}
        assert all(abs(rows) <= BEATS * SCRAPE for rows in off.values()), off
        check_lag(job, seen)
        time.sleep(SCRAPE)


def check_paused(job):
    """Every partition exactly, once the agent has looked since the pause."""
    job.clock.pause()

    def exact():
        seen = job.sample()
        return seen if seen.exported() == seen.true() else None

    seen = wait_for(exact, 10, "the page to agree with the broker")
    for _ in range(3):
        time.sleep(0.6)
        seen = job.sample()
        assert seen.exported() == seen.true()
        assert seen.source("source_backlog_rows") == sum(seen.true().values())
        check_lag(job, seen)
    job.clock.go()
    return seen


def check_lag(job, seen):
    """The age of the oldest unread row, within 10 % or 1 s of the producer's own clock."""
    written = job.clock.times
    unread = [n for key, n in seen.committed.items() if n < seen.latest[key]]
    true = max((seen.at - written[n] for n in unread), default=0.0)
    found = seen.source("source_lag_seconds")
    assert found == pytest.approx(true, rel=0.1, abs=1.0)


def check_command(job, capsys):
    """`streamgauge lag` finds the same with the driver dead."""
    job.clock.pause()
    capsys.readouterr()
    status = main(["lag", job.checkpoint, "--bootstrap", job._broker.address, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert status == 0
    ends = {(each["topic"], each["partition"]): each for each in found["partitions"]}
    assert len(ends) == 3 * PARTITIONS
    assert all(each["latest"] == len(job.clock.times) for each in ends.values())
    assert all(each["behind"] == each["latest"] - each["committed"] for each in ends.values())
    oldest = min(each["committed"] for each in ends.values())
    lag = max(each["lag"] for each in ends.values())
    assert lag == pytest.approx(found["at"] - job.clock.times[oldest], rel=0.1, abs=1.0)
    job.clock.go()


def check_drain(job):
    """The estimate at a moment, within 25 % of the time that it then takes."""
    warm = job.page("last_committed_batch_id") + 6  # the pace of a cold Spark is no pace
    wait_for(lambda: job.page("last_committed_batch_id") >= warm, 60, "six batches")
    seen = job.sample()
    assert seen.source("source_drain_seconds") > 5
    wait_for(lambda: job.page("source_rate_limited") == 0, 120, "the backlog to drain")
    took = time.time() - seen.at
    assert seen.source("source_drain_seconds") == pytest.approx(took, rel=0.25)


def test_throttled_then_hung(job):
    """The exported backlog is the broker's end less the checkpoint's committed offset, throughout."""
    check_running(job)
    assert job.page("source_rate_limited") == 1
    check_paused(job)
    job.hang(True)
    time.sleep(3)
    behind = job.page("source_backlog_rows")
    check_running(job)
    check_paused(job)
    assert job.page("source_backlog_rows") > behind  # it hangs, and the page goes on


def test_killed_then_restarted(job, capsys):
    """The command tells the same with the driver dead; the new driver's page, from its first look."""
    job.kill()
    check_command(job, capsys)
    job.hang(False)
    job.clock.pause()
    job.clock.beat(700)  # at once: what comes in is not even
    job.clock.go()
    job.start(limit=1200)
    check_running(job, samples=2)
    check_drain(job)
    check_paused(job)
