"""What waits in the folder of a file source, on a real Spark."""

import threading

import pytest
from stage import page, value, wait_for


@pytest.fixture
def compacting(spark):
    """The source's log is compacted with each second batch."""
    name = "spark.sql.streaming.fileSource.log.compactInterval"
    spark.conf.set(name, "2")
    yield
    spark.conf.unset(name)


def _fill(folder, names):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("12345\n")


@pytest.mark.usefixtures("compacting")
def test_files_that_wait_count_down(spark, listen, tmp_path):
    """Five files, one a batch: each commit takes one away; the batch that runs still counts."""
    folder, gate = tmp_path / "in", threading.Semaphore(0)
    _fill(folder, ["a b.txt", "b%20.txt", "c+;.txt", "d.txt", "e.txt", "_hidden", ".hidden"])
    listener = listen(checkpoint_seconds=0.1)

    def waiting(kind):
        return value(page(listener._agent), f"source_backlog_{kind}", query="w", source="0-file")

    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    writer = lines.writeStream.queryName("w").option("checkpointLocation", str(tmp_path / "ck"))
    query = writer.foreachBatch(lambda *_: gate.acquire(timeout=60)).start()
    for left in (4, 3, 2, 1, 0):
        gate.release()
        wait_for(lambda left=left: waiting("files") == left, 30, f"{left} files")
        assert waiting("bytes") == 6 * left
    assert waiting("versions") is None
    _fill(folder, ["f.txt"])
    wait_for(lambda: waiting("files") == 1, 30, "the new file")
    gate.release()
    wait_for(lambda: waiting("files") == 0, 30, "the new file to be read")
    query.stop()
    wait_for(lambda: waiting("files") is None, 30, "no word of a query that has ended")
    assert sum(listener.stats.of("errors").values()) == 0
