"""What a real query fails with: the page names what is wrong, not the layers that carried it."""

import pytest
from stage import page, value, wait_for

FULL = "[Errno 28] No space left on device"


def _write_to_full_disk(_, __):
    with open("/dev/full", "w") as file:  # noqa: PTH123 - whatever a user writes
        file.write("x")


def _write_where_no_folder_can_be(batch, _):
    batch.write.parquet("file:/dev/null/out")


@pytest.mark.timeout(120)
def test_full_disk_in_foreach_batch_is_a_full_disk(listen, rows):
    """Both classes, the words of the innermost, when it ended and what was committed; past the grace too."""
    listener = listen(grace_seconds=0.5)
    query = rows.writeStream.foreachBatch(_write_to_full_disk).queryName("full").start()
    wait_for(lambda: query.exception() is not None, 60, "the failure")

    def failure():
        return value(
            page(listener._agent),
            "query_failure_info",
            query="full",
            cause_class="OSError",
            message=FULL,
        )

    wait_for(lambda: failure() == 1, 20, "the failure on the page")
    ended = value(page(listener._agent), "query_ended_timestamp_seconds", query="full")
    wait_for(
        lambda: value(page(listener._agent), "batches_total", query="full", data="true") is None,
        20,
        "the end of its grace",
    )
    samples = page(listener._agent)
    assert failure() == 1
    assert value(samples, "query_ended_timestamp_seconds", query="full") == ended
    assert value(samples, "query_terminations_total", query="full", outcome="failed") == 1
    (reason,) = [
        dict(labels)["reason"]
        for name, labels in samples
        if name == "streamgauge_query_reason_info" and ("query", "full") in labels
    ]
    assert reason.endswith(f", caused by OSError: {FULL}")


@pytest.mark.timeout(120)
def test_java_failure_in_foreach_batch_is_unwrapped(listen, rows):
    """Java's exception came through Python, and Python's through Java."""
    listener = listen()
    query = (
        rows.writeStream.foreachBatch(_write_where_no_folder_can_be).queryName("nowhere").start()
    )
    wait_for(lambda: query.exception() is not None, 60, "the failure")

    def found():
        return [
            dict(labels)
            for name, labels in page(listener._agent)
            if name == "streamgauge_query_failure_info"
        ]

    (failure,) = wait_for(found, 20, "the failure on the page")
    assert failure["error_class"] in {"FOREACH_BATCH_USER_FUNCTION_ERROR", "Py4JException"}
    assert failure["cause_class"] == "ParentNotDirectoryException"
    assert failure["message"] == "Parent path is not a directory: file:/dev/null"
