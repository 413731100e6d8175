"""What disks of this host add to an event: within its time, of the right run, and never an exception."""

from __future__ import annotations

import json
import threading
import time

import pytest
from stage import Life, apply_to

from streamgauge.listener.disk import planned, reader
from streamgauge.listener.disk.planned import Planned, read_planned
from streamgauge.listener.disk.reader import DiskReader
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.local_path import find_local
from streamgauge.model.observations import Gone, PlannedBatch, RunDetails, TableVersion


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint with batch 0 committed, and batch 1 planned only."""
    for folder, names in (("offsets", ("0", "1", ".1.crc")), ("commits", ("0", ".0.crc"))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
    return tmp_path


class World:
    """One query whose run is known, and a reader."""

    def __init__(self, location):
        self.fleet, self.life, self.errors = Fleet(), Life(), []
        self.reader = DiskReader(self.errors.append)
        apply_to(self.fleet, decode(self.life.started()), 1.0)
        details = RunDetails(
            query_id=self.life.query_id, run_id=self.life.run_id, checkpoint=location
        )
        apply_to(self.fleet, details, 1.0)

    def collect(self, cause):
        """What the reader finds for an event, which the fleet takes in afterwards."""
        cause = decode(cause) if isinstance(cause, str) else cause
        found = self.reader.collect(cause, self.fleet.queries.get(cause.query_id))
        for seen in found:
            apply_to(self.fleet, seen, 2.0)
        apply_to(self.fleet, cause, 2.0)
        return found

    @property
    def query(self):
        """What is known of the query."""
        return self.fleet.queries[self.life.query_id]


def test_offset_log_of_a_checkpoint(checkpoint):
    """The newest planned batch, when it has no commit; nothing for one that is whole or not there."""
    assert read_planned(checkpoint) == Planned(1, (checkpoint / "offsets/1").stat().st_mtime)
    (checkpoint / "commits" / "1").touch()
    assert read_planned(checkpoint) is None
    assert read_planned(checkpoint / "none") is None


def test_locations_on_this_host():
    """A plain path, or one of Hadoop's local file system; others need Hadoop."""
    for place in ("/a/b", "file:/a/b", "file:///a/b"):
        assert str(find_local(place)) == "/a/b"
    for place in (None, "", "a/b", "s3://bucket/checkpoint", "hdfs:/checkpoint"):
        assert find_local(place) is None


def test_failed_run_has_its_offset_log_read(checkpoint):
    """The query knows it by the time the event is taken in, for whoever is given the update."""
    world = World(f"file:{checkpoint}")
    (found,) = world.collect(world.life.terminated("E: x"))
    at = (checkpoint / "offsets" / "1").stat().st_mtime
    ids = {"query_id": world.life.query_id, "run_id": world.life.run_id}
    assert found == PlannedBatch(**ids, batch_id=1, at=at)
    assert world.query.planned == found


def test_lost_run_that_failed_has_its_offset_log_read(checkpoint):
    """No Terminated event came, but its exception was found."""
    world = World(str(checkpoint))
    ids = {"query_id": world.life.query_id, "run_id": world.life.run_id}
    assert world.collect(Gone(**ids, at=2.0, why="gone", exception="E: x"))
    world = World(str(checkpoint))
    ids = {"query_id": world.life.query_id, "run_id": world.life.run_id}
    assert not world.collect(Gone(**ids, at=2.0, why="gone"))


def test_clean_stop_reads_nothing(checkpoint):
    """Nor does a start, an idle trigger, or a checkpoint that is elsewhere."""
    world = World(str(checkpoint))
    assert not world.collect(world.life.idle())
    assert not world.collect(world.life.terminated())
    assert not world.collect(world.life.started())
    elsewhere = World("s3://bucket/checkpoint")
    assert not elsewhere.collect(elsewhere.life.terminated("E: x"))
    assert not elsewhere.reader.collect(decode(Life().terminated("E: x")), None)


def test_late_end_does_not_read_what_the_next_run_is_at_work_in(checkpoint):
    """What is planned there is the next run's."""
    world = World(str(checkpoint))
    late = world.life.terminated("E: x")
    world.collect(world.life.started())
    assert not world.collect(late)


def test_checkpoint_is_where_it_was_in_the_run_before(checkpoint):
    """A run may fail before its details are known."""
    world = World(str(checkpoint))
    world.collect(world.life.terminated())
    world.collect(world.life.started())
    assert world.query.details is None
    assert world.collect(world.life.terminated("E: x"))


def test_batch_of_a_delta_sink_has_its_version_read(tmp_path):
    """A batch of any other sink has none."""
    world = World("s3://bucket/checkpoint")
    log = tmp_path / "_delta_log"
    log.mkdir()
    txn = {"txn": {"appId": world.life.query_id, "version": 0}}
    (log / f"{7:020d}.json").write_text(json.dumps(txn, separators=(",", ":")))
    sink = {"description": f"DeltaSink[file:{tmp_path}]", "numOutputRows": -1}
    (found,) = world.collect(world.life.progress(sink=sink))
    ids = {"query_id": world.life.query_id, "run_id": world.life.run_id}
    assert found == TableVersion(**ids, batch_id=0, version=7)
    assert world.query.table_version == found
    assert not world.collect(world.life.progress())


def test_mount_that_hangs_costs_half_a_second(checkpoint, monkeypatch):
    """Its thread is left behind; the event goes on."""
    over = threading.Event()
    monkeypatch.setattr(planned, "_read", lambda _: over.wait(10))
    world = World(str(checkpoint))
    began = time.monotonic()
    assert not world.collect(world.life.terminated("E: x"))
    assert time.monotonic() - began < 1.5
    over.set()
    assert world.errors == []


def test_reader_that_fails_raises_nothing(checkpoint, monkeypatch):
    """A driver that is out of threads: the failure is counted, and the event goes on."""

    def fail(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(reader, "read_planned", fail)
    world = World(str(checkpoint))
    assert world.collect(world.life.terminated("E: x")) == []
    assert [str(error) for error in world.errors] == ["can't start new thread"]
