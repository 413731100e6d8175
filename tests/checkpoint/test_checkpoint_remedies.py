"""Plans, preflights, lint and differences, from files alone."""

from __future__ import annotations

import json
import struct
import zlib

import pytest
from recorded_checkpoints import packed, recorded

from streamgauge.checkpoint.checkpoint import read_checkpoint
from streamgauge.checkpoint.checksums import matches
from streamgauge.checkpoint.describe import describe
from streamgauge.checkpoint.description import (
    Description,
    OperatorDescription,
    SourceDescription,
    dump_description,
    load_description,
)
from streamgauge.checkpoint.diff import diff
from streamgauge.checkpoint.errors import CannotLookError
from streamgauge.checkpoint.lint import RULES, lint, lint_location
from streamgauge.checkpoint.places import is_inside
from streamgauge.checkpoint.plan import GOALS, make_plan
from streamgauge.checkpoint.preflight import preflight
from streamgauge.checkpoint.render_remedies import (
    render_difference,
    render_findings,
    render_plan,
    render_preflight,
)
from streamgauge.checkpoint.report import make_report
from streamgauge.checkpoint.restart import Restart
from streamgauge.checkpoint.store import MemoryStore
from streamgauge.model.checkpoint_names import look_at_names


def kafka(commits=3, root="s3://lake/orders"):
    """A stateless Kafka query by hand, four batches planned."""
    files = {"metadata": '{"id":"a"}'}
    for batch in range(4):
        end = json.dumps({"orders": {"0": batch * 10}})
        files[f"offsets/{batch}"] = f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{end}'
    for batch in range(commits + 1):
        files[f"commits/{batch}"] = "v1\n{}"
    return read_checkpoint(MemoryStore(files, root=root))


def test_plan_without_a_goal_names_the_least_harmful():
    """All four goals with what is possible, and one piece of advice."""
    plan = make_plan(kafka(), restart=Restart(sink="kafka"))
    assert [goal.goal for goal in plan.goals] == list(GOALS)
    assert plan.advice.startswith("resume")
    assert "dry run" in render_plan(plan)


def test_replay_has_its_starting_offsets():
    """The offsets before the range, as the JSON that Kafka's reader takes."""
    (goal,) = make_plan(kafka(), "replay", Restart(sink="kafka"), first=2, last=3).goals
    assert goal.possible
    assert any("""startingOffsets", '{"orders":{"0":10}}'""" in text for text in goal.steps[1].use)
    assert [step.proof for step in goal.steps] == ["unproved", "proved", "unproved", "unproved"]


def test_backfill_has_both_ends():
    """A closed range, for a batch job beside the stream."""
    (goal,) = make_plan(kafka(), "backfill", first=2, last=3).goals
    use = " ".join(goal.steps[0].use)
    assert """startingOffsets", '{"orders":{"0":10}}'""" in use
    assert """endingOffsets", '{"orders":{"0":30}}'""" in use
    (first,) = make_plan(kafka(), "backfill", first=0, last=0).goals
    assert "'earliest'" in " ".join(first.steps[0].use)


def test_range_that_is_not_kept_is_not_possible():
    """Batches that Spark has purged can't be replayed by their offsets."""
    (goal,) = make_plan(kafka(), "replay", first=50, last=60).goals
    assert goal.possible is False


def test_reset_comes_in_the_safe_order():
    """Stop, clear the output, move the checkpoint away, start from the earliest, watch."""
    (goal,) = make_plan(kafka(), "reset", Restart(sink="file")).goals
    words = [step.do.split()[0] for step in goal.steps]
    assert words == ["Stop", "Clear", "Move", "Start", "Watch"]
    assert "_spark_metadata" in goal.steps[1].effect
    assert any("earliest" in text for text in goal.steps[3].use)
    assert all(step.effect and step.needs and step.proof for step in goal.steps)


def test_plan_of_a_broken_checkpoint_says_what_to_restore():
    """Resume is not possible; the one file that stops it is named."""
    files = packed("4.3.0/agg-hdfs") | {"offsets/3": b""}
    plan = make_plan(read_checkpoint(MemoryStore(files)))
    resume = plan.goals[0]
    assert resume.possible is False
    assert "offsets/3" in resume.steps[0].do
    assert plan.advice.startswith("not resume")


def test_offsets_of_other_sources_are_given_as_they_are():
    """Files by their log entries, Delta by versions, others as text."""
    files = dict(packed("4.3.0/plain"))
    use = make_plan(read_checkpoint(MemoryStore(files)), "backfill").goals[0].steps[0].use
    assert "1 file(s), entries 3 to 3" in use[0]
    assert use[1].endswith("/f3.json")
    rate = make_plan(read_checkpoint(recorded("4.3.0/agg-hdfs")), "backfill").goals[0].steps[0].use
    assert "rate-micro-batch" in rate[0]


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
    effects = {each.effect for each in preflight(kafka(), plan).findings}
    assert effects >= {"silently wrong", "allowed"}
    pattern = Description(sources=[SourceDescription("kafka")], operators=[])
    assert preflight(kafka(), pattern).status == 2


def test_description_survives_its_file():
    """What describe() writes is what preflight reads; a wrong file says where."""
    plan = described()
    assert load_description(dump_description(plan)) == plan
    with pytest.raises(CannotLookError, match="sources"):
        load_description(b'{"sources": 7}')


@pytest.mark.parametrize(
    ("root", "rules"),
    [
        ("s3://lake/checkpoints/orders", []),
        ("s3://lake/checkpoints/orders/2026-11-16", ["date-in-path"]),
        ("s3://lake/date=today/orders", ["date-in-path"]),
        ("hdfs://nn/ck/20261116/orders", ["date-in-path"]),
        ("s3://lake/ck/7b9d8fe9-b4f9-4c70-804e-eabd28b8567b", ["random-in-path"]),
        ("s3://lake/ck/run-1794797243", ["random-in-path"]),
        ("/tmp/orders", ["temp-directory"]),
        ("/mnt/data/orders", ["local-disk"]),
    ],
)
def test_locations_are_judged(root, rules):
    """Fixed, durable, one per query: a date, a random part or a temp directory is a defect."""
    assert [rule for rule, _ in lint_location(root)] == rules


def test_lint_of_many_finds_what_is_between_them():
    """A copy has the same query id; a path twice is shared; one may lie inside another."""
    every = [kafka(), kafka(root="s3://lake/orders/copy"), kafka()]
    rules = {each.rule for each in lint(every)}
    assert rules == {"copied", "inside-another", "shared-path"}
    assert "copied" in render_findings(lint(every))
    assert render_findings([]) == "nothing found"


def test_lint_of_one_names_what_is_wrong():
    """Gaps, lost identity, broken and leftover files, state that is incomplete."""
    files = dict(packed("4.3.0/agg-hdfs"))
    for name in ("metadata", "offsets/1", "commits/0", "state/0/1/4.delta"):
        del files[name]
    files |= {"offsets/.4.x.tmp": b"", "commits/3": b"nope", "state/0/_metadata/metadata": b"?"}
    rules = {each.rule for each in lint([read_checkpoint(MemoryStore(files, root="s3://a/b"))])}
    assert rules == {
        "missing-metadata",
        "offset-gap",
        "leftovers",
        "unreadable-file",
        "incomplete-state",
    }
    assert rules <= set(RULES)


def test_whole_checkpoints_have_no_fault():
    """What Spark left in order is in order; sparse async logs are too."""
    for name in ("plain", "agg-hdfs", "agg-rocksdb", "agg-v2", "join-hdfs"):
        assert lint([read_checkpoint(MemoryStore(packed(f"4.3.0/{name}"), root="s3://a/b"))]) == []
    assert lint([read_checkpoint(recorded("4.3.0/async-progress-tracking"))]) == []


def test_lint_sees_growth_and_late_snapshots():
    """Thousands of batches and hundreds of changes since a snapshot."""
    files = {"metadata": '{"id":"a"}'}
    line = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n1'
    files |= {f"offsets/{n}": line for n in range(1200)} | {
        f"commits/{n}": "v1" for n in range(1200)
    }
    sizes = {f"state/0/0/{n}.delta": 9 for n in range(1, 1201)}
    found = lint([read_checkpoint(MemoryStore(files, sizes, root="s3://a/b"))])
    assert {each.rule for each in found} == {"growth", "no-snapshot"}


@pytest.mark.parametrize(
    ("offsets", "commits", "summary"),
    [
        ([], [], (None, None, 0, set())),
        (["0", "1", ".1.x.tmp"], ["0", ".0.crc"], (1, 0, 1, set())),
        (["0", "1", "2", "3"], ["0"], (3, 0, 3, {"uncommitted"})),
        (["0", "1"], ["0", "1", "2"], (1, 2, 0, {"commit-ahead"})),
        (["0", "2", "3"], ["0", "1", "2", "3"], (3, 3, 0, {"offset-gap"})),
        (["0", "36", "71"], ["0", "36", "71"], (71, 71, 0, set())),
        ([], ["4"], (None, 4, 0, {"no-offsets"})),
    ],
)
def test_names_alone_tell_most(offsets, commits, summary):
    """The agent's timer needs two listings and no file."""
    found = look_at_names(offsets, commits)
    assert (found.last_offset, found.last_commit, found.uncommitted, set(found.findings)) == summary


def test_difference_of_one_checkpoint_at_two_times():
    """What moved: batches, offsets, and nothing else."""
    before, after = kafka(commits=2), kafka()
    found = diff(before, after, (make_report(before, 0), make_report(after, 0)))
    assert found.same_query
    assert {each.what for each in found.changes} == {
        "last committed",
        "uncommitted",
        "committed batches",
        "next watermark ms",
    } - {"next watermark ms"}
    assert "last committed: 2 → 3" in render_difference(found)
    same = diff(after, after, (make_report(after, 0), make_report(after, 0)))
    assert render_difference(same) == "nothing moved"


def test_difference_of_two_queries():
    """Another query id, other settings, other state, and offsets measured where both have them."""
    stores = [MemoryStore(packed(f"4.3.0/{name}")) for name in ("agg-hdfs", "agg-rocksdb")]
    before, after = (read_checkpoint(store) for store in stores)
    found = diff(before, after, (make_report(before, 0), make_report(after, 0)))
    what = {each.what for each in found.changes}
    assert not found.same_query
    assert {
        "query id",
        "operator 0 provider",
        "spark.sql.streaming.stateStore.providerClass",
    } <= what
    moved = diff(kafka(), before, (make_report(kafka(), 0), make_report(before, 0)))
    assert moved.ranges
    assert "NOT the same query id" in render_difference(moved)


def test_replay_of_a_stateful_query_is_not_promised():
    """Rows of a range alone do not rebuild the state that came before them."""
    plan = make_plan(read_checkpoint(MemoryStore(packed("4.3.0/agg-hdfs"))))
    possible = {goal.goal: goal.possible for goal in plan.goals}
    assert possible == {"resume": True, "replay": None, "backfill": None, "reset": True}


def test_file_that_was_changed_by_hand_is_seen():
    """Hadoop's checksum files on local disks betray an edit; Spark itself does not look."""
    files = dict(packed("4.3.0/plain"))
    data = files["offsets/3"]
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    files["offsets/.3.crc"] = b"crc\0" + struct.pack(f">{len(sums) + 1}I", 512, *sums)
    assert lint([read_checkpoint(MemoryStore(files, root="s3://a/b"))]) == []
    files["offsets/3"] = data.replace(b'"logOffset":3', b'"logOffset":2')
    (found,) = lint([read_checkpoint(MemoryStore(files, root="s3://a/b"))])
    assert (found.rule, found.harmless) == ("edited", False)
    assert "offsets/3" in found.what
    for strange in (b"", b"crc\0", b"crc\0\0\0\0\0", b"nonsense"):
        assert matches(data, strange)


def test_first_offsets_are_shown():
    """Kafka's initial offsets are in the report, where the source keeps them."""
    checkpoint = kafka()
    assert make_report(checkpoint, 0).sources[0].first is None
    files = checkpoint.store.files | {"sources/0/0": b'\0v1\n{"orders":{"0":0}}'}
    assert make_report(read_checkpoint(MemoryStore(files)), 0).sources[0].first == {
        "orders": {"0": 0}
    }


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        ("file:/data/ck/state/0", "/data/ck", True),
        ("file:///data/ck/state/0", "file:/data/ck/", True),
        ("s3a://lake/ck/state/0", "s3://lake/ck", True),
        ("s3a://lake/ck2/state/0", "s3://lake/ck", False),
        ("file:/old/ck/state/0", "/data/ck", False),
    ],
)
def test_places_are_compared_without_their_schemes(path, root, inside):
    """What Spark wrote down and what a person typed is one place."""
    assert is_inside(path, root) is inside


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
    assert preflight(kafka(), plan).status == 2
