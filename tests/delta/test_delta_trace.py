"""The trace of a batch names the version of the table that it made."""

import json

import pytest
from delta_driver import FILES, start_query, write_source

from streamgauge import TelemetryListener

pytestmark = pytest.mark.integration


def _attributes(file):
    """Of each batch's root span, by batch."""
    found = {}
    for line in file.read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    pairs = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
                    if span["name"] == "batch copy":
                        found[int(pairs["spark.streaming.batch.id"])] = pairs
    return found


def test_version_of_the_sink_is_in_the_trace(spark, tmp_path):
    """As the table itself tells it: its history has the query and the batch of each version."""
    write_source(spark, tmp_path)
    listener = TelemetryListener(
        metrics_address="", log_level="off", traces=str(tmp_path / "traces.jsonl")
    )
    spark.streams.addListener(listener)
    try:
        query = start_query(spark, tmp_path, availableNow=True)
        assert query.awaitTermination(120)
    finally:
        listener.close()
        spark.streams.removeListener(listener)
    history = spark.sql(f"describe history delta.`{tmp_path / 'target'}`").collect()
    made = {
        int(row.operationParameters["epochId"]): row.version
        for row in history
        if row.operation == "STREAMING UPDATE"
    }
    told = _attributes(tmp_path / "traces.jsonl")
    assert len(made) == FILES
    assert {b: int(told[b]["spark.streaming.sink.delta.version"]) for b in told} == made
    assert {told[b]["spark.streaming.sink.kind"] for b in told} == {"delta"}
