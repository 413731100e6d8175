"""The four goals: what is possible, and the steps of each."""

from __future__ import annotations

from recorded_checkpoints import kafka_checkpoint, packed, recorded

from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.store import MemoryStore
from streamgauge.checkpoint.remedies.goal_names import GOALS
from streamgauge.checkpoint.remedies.plan import make_plan
from streamgauge.checkpoint.render.remedies_text import render_plan
from streamgauge.checkpoint.restart.circumstances import Restart


def test_plan_without_a_goal_names_the_least_harmful():
    """All four goals with what is possible, and one piece of advice."""
    plan = make_plan(kafka_checkpoint(), restart=Restart(sink="kafka"))
    assert [goal.goal for goal in plan.goals] == list(GOALS)
    assert plan.advice.startswith("resume")
    assert "dry run" in render_plan(plan)


def test_replay_has_its_starting_offsets():
    """The offsets before the range, as the JSON that Kafka's reader takes."""
    (goal,) = make_plan(kafka_checkpoint(), "replay", Restart(sink="kafka"), first=2, last=3).goals
    assert goal.possible
    assert any("""startingOffsets", '{"orders":{"0":10}}'""" in text for text in goal.steps[1].use)
    assert [step.proof for step in goal.steps] == ["unproved", "proved", "unproved", "unproved"]


def test_backfill_has_both_ends():
    """A closed range, for a batch job beside the stream."""
    (goal,) = make_plan(kafka_checkpoint(), "backfill", first=2, last=3).goals
    use = " ".join(goal.steps[0].use)
    assert """startingOffsets", '{"orders":{"0":10}}'""" in use
    assert """endingOffsets", '{"orders":{"0":30}}'""" in use
    (first,) = make_plan(kafka_checkpoint(), "backfill", first=0, last=0).goals
    assert "'earliest'" in " ".join(first.steps[0].use)


def test_range_that_is_not_kept_is_not_possible():
    """Batches that Spark has purged can't be replayed by their offsets."""
    (goal,) = make_plan(kafka_checkpoint(), "replay", first=50, last=60).goals
    assert goal.possible is False


def test_reset_comes_in_the_safe_order():
    """Stop, clear the output, move the checkpoint away, start from the earliest, watch."""
    (goal,) = make_plan(kafka_checkpoint(), "reset", Restart(sink="file")).goals
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


def test_replay_of_a_stateful_query_is_not_promised():
    """Rows of a range alone do not rebuild the state that came before them."""
    plan = make_plan(read_checkpoint(MemoryStore(packed("4.3.0/agg-hdfs"))))
    possible = {goal.goal: goal.possible for goal in plan.goals}
    assert possible == {"resume": True, "replay": None, "backfill": None, "reset": True}
