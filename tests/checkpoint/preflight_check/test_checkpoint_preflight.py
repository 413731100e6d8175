"""New code against a checkpoint: each difference and what it does."""

from __future__ import annotations

import pytest
from recorded_checkpoints import kafka_checkpoint, packed

from streamgauge.checkpoint.errors import CannotLookError
from streamgauge.checkpoint.preflight_check.compare import preflight
from streamgauge.checkpoint.preflight_check.describe import describe
from streamgauge.checkpoint.preflight_check.description import (
    Description,
    OperatorDescription,
    SourceDescription,
    dump_description,
    load_description,
)
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.render.remedies_text import render_preflight


def described(**changes):
    """The plain query, as describe() would say it."""
    fields = {
        "spark": "4.3",
        "sources": [SourceDescription("file", places=["/data/agg-hdfs/in"])],
        "operators": [OperatorDescription("stateStoreSave", ["string"], ["long"])],
        "sink": "foreachBatch",
        "output_mode": "update",
    }
    return Description(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "status", "rule"),
    [
        ({}, 0, "sink"),
        ({"sources": [SourceDescription("file")] * 2}, 1, "number of sources"),
        ({"sources": [SourceDescription("kafka")]}, 1, "kind of source"),
        ({"sources": [SourceDescription("file", places=["/other"])]}, 1, "place of a source"),
        ({"sources": [SourceDescription("file")]}, 2, "place of a source"),
        ({"sources": None}, 2, "sources"),
        ({"operators": []}, 1, "stateful operators"),
        ({"operators": None}, 2, "stateful operators"),
        ({"operators": [OperatorDescription("dedupe", ["string"])]}, 1, "stateful operators"),
        ({"operators": [OperatorDescription("stateStoreSave", ["long"])]}, 1, "state key schema"),
        (
            {"operators": [OperatorDescription("stateStoreSave", ["string"], [])]},
            1,
            "state value schema",
        ),
        ({"operators": [OperatorDescription("stateStoreSave")]}, 2, "state schema"),
        ({"conf": {"spark.sql.shuffle.partitions": "9"}}, 0, "pinned setting"),
    ],
)
def test_preflight_finds_each_kind_of_change(changes, status, rule):
    """0 allowed, 1 fails or harms, 2 can't be told; and the rule that says so."""
    checkpoint = read_checkpoint(MemoryStore(packed("4.3.0/agg-hdfs")))
    found = preflight(checkpoint, described(**changes))
    assert found.status == status
    assert rule in {each.rule for each in found.findings}
    assert found.verdict in render_preflight(found)


def test_preflight_on_3_5_accepts_a_removed_operator_silently():
    """3.5 does not compare operators: the state is left behind, and nobody is told."""
    checkpoint = read_checkpoint(MemoryStore(packed("3.5.9/agg-hdfs")))
    found = preflight(checkpoint, described(spark="3.5", operators=[]))
    assert found.verdict == "loses data"


def test_preflight_compares_topics():
    """A topic that is no longer read is silently wrong; a new one is allowed."""
    plan = Description(
        sources=[SourceDescription("kafka", options={"subscribe": "payments"})], operators=[]
    )
    effects = {each.effect for each in preflight(kafka_checkpoint(), plan).findings}
    assert effects >= {"silently wrong", "allowed"}
    pattern = Description(sources=[SourceDescription("kafka")], operators=[])
    assert preflight(kafka_checkpoint(), pattern).status == 2


def test_description_survives_its_file():
    """What describe() writes is what preflight reads; a wrong file says where."""
    plan = described()
    assert load_description(dump_description(plan)) == plan
    with pytest.raises(CannotLookError, match="sources"):
        load_description(b'{"sources": 7}')


def test_relative_folder_cannot_be_compared():
    """Spark resolves it against a directory that nobody knows here."""
    checkpoint = read_checkpoint(MemoryStore(packed("4.3.0/agg-hdfs")))
    plan = described(sources=[SourceDescription("file", places=["in"])])
    assert preflight(checkpoint, plan).status == 2


def test_description_on_connect_says_unknown():
    """There the plan is on the server: sources and operators are null, the settings are not."""

    class Session:
        version = "4.3.0"
        conf = {"spark.sql.shuffle.partitions": "7"}  # noqa: RUF012 - a double of a session's conf

    class Frame:
        sparkSession = Session()  # noqa: N815 - PySpark's name

    plan = describe(Frame())
    assert (plan.spark, plan.sources, plan.operators) == ("4.3", None, None)
    assert plan.conf["spark.sql.shuffle.partitions"] == "7"
    assert preflight(kafka_checkpoint(), plan).status == 2
