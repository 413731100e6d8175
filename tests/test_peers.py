"""The bugs of others, one test each: we don't have them (they are listed in the project's research)."""

import io
import json
import subprocess
import sys
import time
import urllib.request

from stage import Life, feed, free_port, page, value, wait_for

from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.exporters.logs import make_logger
from streamgauge.listener.inbox import Item


def test_dead_gateway_does_not_slow_a_callback(agent):
    """Others push synchronously in every callback: 5 s of Spark's time each."""
    mine = agent(pushgateway_url=f"http://127.0.0.1:{free_port()}")
    life = Life()
    began = time.perf_counter()
    for text in [life.started(), *(life.progress() for _ in range(200)), life.terminated()]:
        mine.inbox.put(Item("progress", text, time.time()))
    assert time.perf_counter() - began < 1


def test_clean_stop_is_no_exception(agent):
    """Others count every end as one."""
    mine = agent()
    life = Life()
    feed(mine, life.started(), life.terminated())
    samples = page(mine)
    assert value(samples, "query_terminations_total", outcome="failed") == 0
    assert value(samples, "query_terminations_total", outcome="stopped") == 1


def test_rates_are_not_added_up(agent):
    """Others add rows per second to a counter of rows."""
    mine = agent()
    life = Life()
    feed(mine, life.started(), *(life.progress() for _ in range(5)))
    samples = page(mine)
    assert value(samples, "processed_rows_per_second") == 20.0
    assert value(samples, "input_rows_total") == 50


def test_unknown_output_rows_break_nothing(agent):
    """Others add -1 to a counter, which raises, and lose the whole push."""
    mine = agent()
    life = Life()
    feed(mine, life.started(), life.progress(sink={"description": "x", "numOutputRows": -1}))
    samples = page(mine)
    assert value(samples, "output_rows_total") is None
    assert value(samples, "input_rows_total") == 10
    assert sum(mine.stats.of("errors").values()) == 0


def test_two_applications_dont_overwrite_each_other(agent, gateway):
    """Others push with one constant grouping key."""
    url = gateway()
    first = agent(app="first", pushgateway_url=url)
    second = agent(app="second", pushgateway_url=url)
    one, two = Life("a"), Life("b")
    feed(first, one.started(), one.progress(), one.terminated())
    feed(second, two.started(), two.progress(), two.terminated())
    first.close()
    second.close()
    text = urllib.request.urlopen(f"{url}/metrics", timeout=5).read().decode()
    samples = page(text)
    assert value(samples, "input_rows_total", query="a") == 10
    assert value(samples, "input_rows_total", query="b") == 10


def test_unnamed_query_has_one_name_everywhere(agent):
    """Others call it "default" in one series and a UUID in another."""
    mine = agent()
    life = Life(None)
    feed(mine, life.started(), life.progress(), life.idle(), life.terminated())
    names = {dict(labels)["query"] for _, labels in page(mine) if "query" in dict(labels)}
    assert names == {f"unnamed-{life.query_id[:8]}"}


def test_descriptions_are_no_labels(agent):
    """Others put the source's description there: paths, options, a new one every run."""
    mine = agent()
    life = Life()
    source = {"description": "FileStreamSource[s3a://bucket/secret/path]", "numInputRows": 1}
    feed(mine, life.started(), life.progress(sources=[source]))
    assert "secret/path" not in str(page(mine))
    assert value(page(mine), "source_input_rows_total", source="0-file") == 1


def test_import_configures_no_logging():
    """Others call logging.basicConfig at import."""
    code = "import logging, streamgauge.agent; assert not logging.root.handlers"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_idle_is_a_sign_of_life(agent):
    """Others ignore idle events, and alarm on every quiet stream since Spark 3.5."""
    mine = agent()
    life = Life()
    feed(mine, life.started(), life.progress(), life.idle())
    samples = page(mine)
    assert value(samples, "query_state", state="idle") == 1
    assert value(samples, "freshness_lag_seconds") == 0
    assert value(samples, "last_event_timestamp_seconds") == value(
        samples, "last_idle_timestamp_seconds"
    )


def test_names_are_let_go(agent):
    """Others keep a map of names that never shrinks."""
    mine = agent(grace_seconds=0.0)
    for n in range(50):
        life = Life(f"q{n}")
        feed(mine, life.started(), life.progress(), life.terminated())
    wait_for(lambda: not mine.queries, what="an empty fleet")
    assert not [1 for _, labels in page(mine) if "query" in dict(labels)]


def test_lag_is_computed(agent):
    """Others show raw offsets and leave the subtraction to the reader."""
    mine = agent()
    life = Life()
    text = json.loads(life.progress())
    text["progress"]["sources"][0]["latestOffset"] = {"orders": {"0": 25}}
    feed(mine, life.started(), json.dumps(text))
    assert value(page(mine), "source_backlog_rows", source="0-kafka") == 15


def test_progress_json_is_not_logged(agent):
    """Others write the whole event to the log with every batch."""
    stream = io.StringIO()
    mine = agent(logger=make_logger("debug", stream))
    life = Life()
    feed(mine, life.started(), life.progress())
    assert "latestOffset" not in stream.getvalue()
    assert "durationMs" not in stream.getvalue()


def test_late_rows_are_added_up(agent):
    """Others take the per-batch figure for a total, and undercount."""
    mine = agent()
    life = Life()
    operator = {"operatorName": "dedupe", "numRowsDroppedByWatermark": 4, "customMetrics": {}}
    feed(mine, life.started(), *(life.progress(stateOperators=[operator]) for _ in range(3)))
    assert value(page(mine), "state_rows_dropped_by_watermark_total") == 12


def test_backlogs_of_sources_are_not_mixed_up(agent):
    """Others sum the maxima of the sources and call it lag; ours is a sum of rows, source by source."""
    mine = agent()
    life = Life()
    text = json.loads(life.progress())
    first = text["progress"]["sources"][0]
    first["latestOffset"] = {"orders": {"0": 25}}
    second = {**first, "latestOffset": {"orders": {"0": 11}}}
    text["progress"]["sources"] = [first, second]
    feed(mine, life.started(), json.dumps(text))
    samples = page(mine)
    assert value(samples, "source_backlog_rows", source="0-kafka") == 15
    assert value(samples, "source_backlog_rows", source="1-kafka") == 1


def test_every_series_of_a_query_names_it(agent):
    """Others have gauges without any query label."""
    mine = agent()
    life = Life()
    feed(mine, life.started(), life.progress())
    for name, labels in page(mine):
        if "_agent_" not in name and "build_info" not in name:
            assert {"app", "query"} <= set(dict(labels)), name


def test_works_without_a_spark_context():
    """Others reach for `sparkContext`, which Connect does not have, as soon as they are made."""
    made = Agent(make_config({"metrics_address": "", "log_level": "off"}))
    made.close()
