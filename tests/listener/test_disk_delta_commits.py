"""The version of a Delta table that a batch made, from the table's own log."""

from __future__ import annotations

import json

from stage import Life

from streamgauge.listener.disk.delta_commits import DeltaCommits
from streamgauge.model.decoder import decode


class Table:
    """The log of a table, as Delta writes it."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "_delta_log"
        self.log.mkdir(parents=True)
        self.version = -1

    def commit(self, app_id=None, batch_id=None, **action):
        """One more version."""
        self.version += 1
        actions = [{"commitInfo": {"operation": "STREAMING UPDATE"}}, action]
        if app_id:
            actions.insert(1, {"txn": {"appId": app_id, "version": batch_id, "lastUpdated": 1}})
        text = "\n".join(json.dumps(each, separators=(",", ":")) for each in actions)
        (self.log / f"{self.version:020d}.json").write_text(text)
        (self.log / f"{self.version:020d}.crc").write_text("{}")


def _batch(life, place):
    return decode(life.progress(sink={"description": f"DeltaSink[{place}]", "numOutputRows": -1}))


def test_batches_find_their_versions(tmp_path):
    """Others write in between; a replayed batch that Delta skipped has the version of the first time."""
    table, life, commits = Table(tmp_path / "t"), Life(), DeltaCommits()
    table.commit(metaData={})
    table.commit(life.query_id, 0)
    assert commits.find(_batch(life, f"file:{table.folder}")) == 1
    table.commit("another query", 1)
    table.commit(life.query_id, 1)
    assert commits.find(_batch(life, f"file:{table.folder}")) == 3
    life.batch_id -= 1
    assert commits.find(_batch(life, f"file:{table.folder}")) == 3


def test_batch_without_a_version(tmp_path):
    """It wrote nothing, the table is elsewhere or no table, the log is no log: unknown."""
    table, life, commits = Table(tmp_path / "t"), Life(), DeltaCommits()
    assert commits.find(_batch(life, table.folder)) is None
    (table.log / f"{0:020d}.json").write_text('{"txn"\nnothing')
    for place in (table.folder, tmp_path, "s3a://bucket/t", "dbfs:/t", ""):
        assert commits.find(_batch(life, place)) is None, place
    assert commits.find(decode(life.progress())) is None


def test_table_that_hangs_is_asked_once(tmp_path, monkeypatch):
    """A mount that does not answer costs a moment, and not one with each batch."""
    import threading
    import time

    from streamgauge.listener.disk import delta_commits

    life, commits, asked, over = Life(), DeltaCommits(), [], threading.Event()

    def hang(*_):
        asked.append(1)
        over.wait(10)
        return 0, None

    monkeypatch.setattr(delta_commits, "_search", hang)
    began = time.monotonic()
    for _ in range(5):
        assert commits.find(_batch(life, tmp_path)) is None
    over.set()
    assert len(asked) == 1
    assert time.monotonic() - began < 2
