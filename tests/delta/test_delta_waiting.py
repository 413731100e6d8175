"""What waits in a Delta table, by its log."""

import threading

import pytest
from delta_driver import ROWS, write_source
from stage import page, value, wait_for

from streamgauge import TelemetryListener

pytestmark = pytest.mark.integration


def test_versions_and_files_that_wait_count_down(spark, tmp_path):
    """Two versions of three files, one a batch; then a third version."""
    write_source(spark, tmp_path)
    listener = TelemetryListener(
        metrics_address="127.0.0.1:0", log_level="off", watch_seconds=0.2, checkpoint_seconds=0.2
    )
    spark.streams.addListener(listener)
    gate = threading.Semaphore(0)

    def waiting():
        samples = page(listener._agent)
        return tuple(
            value(samples, f"source_backlog_{kind}", query="w", source="0-delta")
            for kind in ("versions", "files")
        )

    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
    rows = reader.option("startingVersion", 0).load(str(tmp_path / "source"))
    writer = rows.writeStream.queryName("w").option("checkpointLocation", str(tmp_path / "ck"))
    query = writer.foreachBatch(lambda *_: gate.acquire(timeout=60)).start()
    try:
        for left in ((2, 5), (2, 4), (1, 3), (1, 2), (1, 1), (0, 0)):
            gate.release()
            wait_for(lambda left=left: waiting() == left, 60, f"{left} versions and files")
        more = spark.range(0, ROWS, 1, 1).write.format("delta").mode("append")
        more.save(str(tmp_path / "source"))
        wait_for(lambda: waiting() == (1, 1), 60, "the new version")
        gate.release()
        wait_for(lambda: waiting() == (0, 0), 60, "the new version to be read")
        assert sum(listener.stats.of("errors").values()) == 0
    finally:
        query.stop()
        spark.streams.removeListener(listener)
        listener.close()
