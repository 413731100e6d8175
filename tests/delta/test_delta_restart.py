"""Delta to Delta, killed in the middle of a batch: what was foreseen is what happens."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from delta_driver import FILES, ROWS, start_query
from stage import ROOT, wait_for

from streamgauge.cli import main

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder that a query left behind, and the batch that it was killed in."""
    folder = tmp_path_factory.mktemp("delta")
    places = [str(ROOT / "tests" / name) for name in ("", "spark", "delta")]
    with (folder / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("delta_driver.py")), str(folder)],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
            start_new_session=True,
        )
    try:
        batch = wait_for(lambda: _running(folder, driver), 200, "a batch in its middle")
        time.sleep(0.7)  # forty rows of 50 ms: its tasks run
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    return folder, batch


def _running(folder, driver):
    """A batch that was planned and not committed, after one that was."""
    assert driver.poll() is None, (folder / "driver.log").read_text()[-3000:]
    planned, done = (_last(folder / "checkpoint" / log) for log in ("offsets", "commits"))
    return planned if done >= 0 and planned == done + 1 else None


def _last(log):
    names = [each.name for each in log.iterdir()] if log.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def foresee(folder, capsys):
    """What `streamgauge checkpoint restart` says, and its exit status."""
    capsys.readouterr()
    place = str(folder / "checkpoint")
    status = main(["checkpoint", "restart", place, "--sink", "delta", "--spark", "4.2", "--json"])
    return status, json.loads(capsys.readouterr().out)


def count(spark, table):
    """Rows, and different rows."""
    rows = spark.read.format("delta").load(str(table))
    return rows.count(), rows.distinct().count()


def restart(spark, folder):
    """Start again from the checkpoint until all is read; the batches that this run had."""
    query = start_query(spark, folder, availableNow=True)
    assert query.awaitTermination(120)
    assert query.exception() is None
    return [progress["batchId"] for progress in query.recentProgress]


def test_killed_in_mid_batch(killed, spark, capsys):
    """The batch is run again, whole, and once: no row is missing and none is there twice."""
    folder, batch = killed
    assert count(spark, folder / "target") == (batch * ROWS, batch * ROWS)
    status, seen = foresee(folder, capsys)
    assert (status, seen["verdict"], seen["batch"], seen["replayed"]) == (0, "safe", batch, True)
    batches = restart(spark, folder)
    assert batches[0] == batch
    assert count(spark, folder / "target") == (FILES * ROWS, FILES * ROWS)


def test_killed_between_the_sinks_commit_and_sparks_own(killed, spark, capsys):
    """What such a kill leaves: the batch is in the table and not in `commits/`. Delta skips it."""
    folder, _ = killed
    restart(spark, folder)
    commits = folder / "checkpoint" / "commits"
    batch = _last(commits)
    for name in (f"{batch}", f".{batch}.crc"):
        (commits / name).unlink(missing_ok=True)
    before = count(spark, folder / "target")
    status, seen = foresee(folder, capsys)
    assert (status, seen["verdict"], seen["batch"], seen["replayed"]) == (0, "safe", batch, True)
    assert "skips a batch that it has" in seen["sink_effect"]
    assert restart(spark, folder)[0] == batch
    assert count(spark, folder / "target") == before == (FILES * ROWS, FILES * ROWS)


def test_another_query_id_defeats_that(killed, spark):
    """The table knows the query by its id: with another one the same batch is written twice."""
    folder, _ = killed
    restart(spark, folder)
    place = folder / "checkpoint"
    batch = _last(place / "commits")
    for name in (f"commits/{batch}", f"commits/.{batch}.crc", ".metadata.crc"):
        (place / name).unlink(missing_ok=True)
    (place / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    restart(spark, folder)
    rows, different = count(spark, folder / "target")
    assert different == FILES * ROWS
    assert rows == different + ROWS
