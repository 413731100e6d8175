"""Forecast = fact: each case is foreseen from the files, then really restarted."""

from __future__ import annotations

import pytest
from forecast_cases import cases
from forecast_judge import compare
from forecast_lab import Laboratory
from forecast_shapes import SHAPES
from forecast_spark import open_session

from streamgauge.checkpoint import describe, dump_description, preflight_query

CASES = cases()


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    """One Spark and one set of base checkpoints for all cases; a Spark that was there stays."""
    from pyspark import SparkContext

    mine = SparkContext._active_spark_context is None
    spark = open_session()
    yield Laboratory(spark, tmp_path_factory.mktemp("forecast"))
    if mine:
        spark.stop()


def run_case(laboratory, case):
    """Compare one case; a line that does not have it has nothing to show."""
    if laboratory.fits(case):
        row = compare(laboratory, case)
        assert row.disagreements == (), f"{row.forecast} | {row.fact}"


@pytest.mark.spark
def test_description_of_a_real_query(laboratory):
    """Sources, stateful operators with their types, settings; secrets in options are masked."""
    place = laboratory.base("agg-hdfs")
    stream = laboratory.spark.readStream.schema("k STRING, v INT")
    stream = (
        stream.option("path", str(place.folder)).option("password", "verysecret").format("json")
    )
    plan = describe(stream.load().groupBy("k").count(), sink="kafka", options={})
    assert b"verysecret" not in dump_description(plan)
    assert (plan.spark, plan.async_progress) == (laboratory.line, False)
    assert (plan.sources[0].kind, plan.sources[0].places) == ("file", [str(place.folder)])
    (operator,) = plan.operators
    assert (operator.name, operator.key_types, operator.key_names) == (
        "stateStoreSave",
        ["string"],
        ["k"],
    )
    assert (operator.value_types, operator.value_names) == (["long"], ["count"])


@pytest.mark.spark
def test_preflight_in_one_call(laboratory):
    """A DataFrame and a path are enough; nothing is started."""
    place = laboratory.base("agg-hdfs")
    same = SHAPES["count-by-key"](laboratory.spark, place.folder)
    assert preflight_query(same, place.checkpoint, sink="foreachBatch", options={}).status == 0
    other = SHAPES["count-by-number"](laboratory.spark, place.folder)
    assert preflight_query(other, place.checkpoint, sink="foreachBatch").status == 1
    assert laboratory.spark.streams.active == []


@pytest.mark.spark
@pytest.mark.parametrize("case", [c for c in CASES if c.quick], ids=lambda case: case.id)
def test_forecast_is_what_spark_does(laboratory, case):
    """Batches, rows, error and verdict of the restart are the foreseen ones."""
    run_case(laboratory, case)


@pytest.mark.integration
@pytest.mark.parametrize("case", [c for c in CASES if not c.quick], ids=lambda case: case.id)
def test_every_forecast_is_what_spark_does(laboratory, case):
    """The rest of the matrix."""
    run_case(laboratory, case)


@pytest.mark.integration
def test_matrix_is_large_enough_and_both_providers_are_in_it():
    """At least 60 cases on the newest Spark."""
    newest = [case for case in CASES if "4.3" in case.lines]
    assert len(newest) >= 60
    assert {"agg-hdfs", "agg-rocksdb"} <= {case.base for case in newest}
