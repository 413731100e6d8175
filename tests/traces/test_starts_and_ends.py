"""Every restart a story, and the failure on the batch that failed."""

import json
import threading

import pytest
from opentelemetry.trace import StatusCode
from stage import recorded
from theatre import T0, Stage

from streamgauge.exporters.traces import ids as span_ids
from streamgauge.exporters.traces.tracer import Tracer
from streamgauge.model.observations import Tasks

P = "spark.streaming."
RUN = json.loads(recorded("4.3.0", "query-terminated-task-error"))["exception"]
REPLAY = {"addBatch": 400, "getBatch": 1, "queryPlanning": 3, "commitOffsets": 2}
BOOM = "org.apache.spark.SparkException: Job aborted\n\tat a.b.C(password=hunter2)\n" + "x" * 20_000


def _said(span, *names):
    return {name: span.attributes.get(P + name) for name in names}


# ---- starts ---------------------------------------------------------------------------------


def test_first_start_lasts_until_the_first_commit():
    """From QueryStarted to the end of the first batch."""
    stage = Stage()
    stage.start(after=1.0)
    stage.batch(after=2.0, seconds=0.5)
    span = stage.only("start orders")
    assert (span.start_time, span.end_time) == ((T0 + 1) * 1e9, (T0 + 3.5) * 1e9)
    assert span.status.status_code is StatusCode.UNSET
    names = ("start.kind", "start.outcome", "start.batch.id", "start.replayed", "start.gap")
    told = ("first", "committed", 0, False, None)
    assert _said(span, *names) == dict(zip(names, told, strict=True))


def test_restart_tells_what_came_before():
    """Gap, how the last run ended, where it resumed, whether a batch ran again, how often."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.end(BOOM, "JOB_ABORTED")
    stage.start(after=30.0)
    stage.batch(phases=REPLAY)
    spans = stage.spans("start orders")
    assert len(spans) == 2
    assert _said(
        spans[1],
        "start.kind",
        "start.gap",
        "start.last_outcome",
        "start.last_error_type",
        "start.batch.id",
        "start.replayed",
        "start.restarts_last_hour",
        "start.outcome",
    ) == {
        "start.kind": "restart",
        "start.gap": 30.0,
        "start.last_outcome": "failed",
        "start.last_error_type": "JOB_ABORTED",
        "start.batch.id": 1,
        "start.replayed": True,
        "start.restarts_last_hour": 1,
        "start.outcome": "committed",
    }


def test_restart_points_to_the_batch_that_failed():
    """From the recovery to its cause."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.end(BOOM)
    stage.start()
    stage.batch()
    spans = stage.spans()
    failed = next(span for span in spans if span.status.status_code is StatusCode.ERROR)
    restart = [span for span in spans if span.name == "start orders"][1]
    (link,) = restart.links
    assert link.context.span_id == failed.context.span_id
    assert link.attributes[f"{P}link"] == "failed_batch"


def test_first_start_seen_may_be_a_restart():
    """A driver that begins at batch 7 has a checkpoint, whoever wrote it."""
    stage = Stage()
    stage.life.batch_id = 6
    stage.start()
    stage.batch()
    span = stage.only("start orders")
    assert _said(span, "start.kind", "start.batch.id") == {
        "start.kind": "restart",
        "start.batch.id": 7,
    }


def test_stop_before_the_first_commit_is_no_error():
    """The start is told with how it ended."""
    stage = Stage()
    stage.start()
    stage.end()
    span = stage.only("start orders")
    assert span.attributes[f"{P}start.outcome"] == "stopped"
    assert span.status.status_code is StatusCode.UNSET


def test_run_that_began_before_us_has_no_start():
    """A listener added late does not invent what it did not see."""
    stage = Stage()
    stage.batch()
    spans = stage.spans()
    assert "start orders" not in {span.name for span in spans}
    assert spans[-1].links == ()


# ---- failures -------------------------------------------------------------------------------


def test_clean_stop_is_not_an_error():
    """No span for a batch that was cut short, and none with status ERROR."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.look(batch_id=1)
    stage.end()
    spans = stage.spans()
    assert len([span for span in spans if span.name == "batch orders"]) == 1
    assert all(span.status.status_code is StatusCode.UNSET for span in spans)


def test_failure_is_on_the_batch_after_the_last_seen():
    """Status, error.type and the exception event, masked and bounded."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.end(BOOM, "JOB_ABORTED", after=2.0)
    span = stage.spans("batch orders")[-1]
    assert span.attributes[f"{P}batch.id"] == 1
    assert span.attributes["error.type"] == "JOB_ABORTED"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "org.apache.spark.SparkException: Job aborted"
    (event,) = span.events
    assert event.name == "exception"
    assert event.attributes["exception.type"] == "JOB_ABORTED"
    assert "hunter2" not in event.attributes["exception.stacktrace"]
    assert len(event.attributes["exception.stacktrace"]) == 8192
    # It began at some time after the batch before; when, Spark did not say.
    assert span.attributes[f"{P}batch.start_estimated"] is True
    assert span.end_time - span.start_time == 2_000_000_000


def test_error_type_without_an_error_class():
    """Then it is the exception's class, from the first line."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.end(BOOM)
    assert stage.spans("batch orders")[-1].attributes["error.type"] == "SparkException"


def test_failure_of_python_code_is_told_by_its_own_words():
    """Py4J wraps it; the line that says what happened is the last of Python's traceback."""
    stage = Stage()
    stage.play(recorded("4.3.0", "query-terminated-foreachbatch-error"))
    (span,) = stage.spans()
    assert span.status.description == "ValueError: boom in foreachBatch"


def test_failed_batch_begins_where_a_look_saw_it_begin():
    """Spark 4 tells when the trigger began; then nothing is estimated."""
    stage = Stage()
    stage.start()
    stage.batch()
    began = stage.now + 4.0
    stage.look(after=5.0, batch_id=1, trigger_started_at=began)
    stage.end(BOOM, after=1.0)
    span = stage.spans("batch orders")[-1]
    assert span.start_time == round(began * 1000) * 1_000_000
    assert f"{P}batch.start_estimated" not in span.attributes


def test_idle_time_is_not_part_of_the_failed_batch():
    """A query that waited for an hour did not fail for an hour."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.idle(after=3600.0)
    stage.end(BOOM, after=2.0)
    span = stage.spans("batch orders")[-1]
    assert span.end_time - span.start_time == 2_000_000_000


def test_failure_before_any_batch_is_on_the_start():
    """Nothing had begun, as far as can be told."""
    stage = Stage()
    stage.start()
    stage.end(BOOM, "CANNOT_LOAD")
    (span,) = stage.spans()
    assert span.name == "start orders"
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "CANNOT_LOAD"
    assert span.attributes[f"{P}start.outcome"] == "failed"
    assert [event.name for event in span.events] == ["exception"]


def test_first_batch_that_fails_is_found_in_the_offset_log():
    """The exception is on the batch; the start that never got to a commit is an error too."""
    stage = Stage(planned=4)
    stage.start()
    stage.learn(checkpoint="file:/c")
    stage.end(BOOM, "JOB_ABORTED")
    start, batch = stage.spans()
    assert batch.attributes[f"{P}batch.id"] == 4
    assert [event.name for event in batch.events] == ["exception"]
    assert start.status.status_code is StatusCode.ERROR
    assert start.events == ()


def test_failure_before_any_batch_is_not_on_one_that_an_earlier_run_planned():
    """Batch 5 waits in the offset log; this run did not get to it."""
    stage = Stage(planned=(5, T0))
    stage.start()
    stage.learn(checkpoint="file:/c")
    stage.look(batch_id=None, trigger_active=False, phase="other")
    stage.end(BOOM, "CANNOT_LOAD")
    (span,) = stage.spans()
    assert span.name == "start orders"
    assert [event.name for event in span.events] == ["exception"]


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", "4.2.1", "4.3.0"])
@pytest.mark.parametrize("where", ["task", "foreachbatch"])
def test_batch_that_an_earlier_run_planned_and_that_fails_again_has_the_failure(version, where):
    """No look was quick enough, but the stack of what failed says that it was run."""
    stage = Stage(planned=(5, T0))
    stage.start()
    stage.learn(checkpoint="file:/c")
    stage.end(json.loads(recorded(version, f"query-terminated-{where}-error"))["exception"])
    assert stage.only("batch orders").attributes[f"{P}batch.id"] == 5


def test_run_that_fails_before_its_details_are_known_has_its_offset_log_read():
    """The checkpoint of a query is where it was in the run before."""
    stage = Stage(planned=1)
    stage.start()
    stage.learn(checkpoint="file:/c")
    stage.batch()
    stage.end()
    stage.start()
    stage.end(RUN)
    failed = stage.spans("batch orders")[-1]
    assert failed.attributes[f"{P}batch.id"] == 1
    assert failed.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize(("commits", "name"), [((2, 3), "batch orders"), ((3, 4), "start orders")])
def test_checkpoint_elsewhere_is_known_by_its_last_look(commits, name):
    """What can't be read from here was read through Spark while the query ran."""
    stage = Stage()
    stage.start()
    stage.learn(checkpoint="hdfs://names/c")
    stage.inspect(offsets=(3, 4), commits=commits)
    stage.end(RUN)
    (span,) = [span for span in stage.spans() if span.events]
    assert span.name == name
    assert span.attributes.get(f"{P}batch.id") == (4 if name == "batch orders" else None)


def test_first_batch_that_fails_is_found_by_a_look():
    """The driver knew its number while it ran."""
    stage = Stage()
    stage.start()
    stage.look(batch_id=3)
    stage.end(BOOM)
    assert stage.only("batch orders").attributes[f"{P}batch.id"] == 3


def test_lost_run_that_failed_is_told_once():
    """No Terminated event came; the watchdog found the exception, and looks again later."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.lose(exception=BOOM, error_class="JOB_ABORTED")
    stage.trace(stage.query)
    batches = stage.spans("batch orders")
    assert [span.status.status_code for span in batches] == [StatusCode.UNSET, StatusCode.ERROR]


def test_end_that_comes_after_the_next_start():
    """Only Started is synchronous: the run before fails late, and on its own batch."""
    stage = Stage()
    stage.start()
    stage.batch()
    first = stage.life.run_id
    late = stage.life.terminated(BOOM, "JOB_ABORTED")
    stage.start()
    stage.play(late)
    stage.batch(phases=REPLAY)
    spans = stage.spans()
    failed = next(span for span in spans if span.status.status_code is StatusCode.ERROR)
    assert failed.attributes[f"{P}run.id"] == first
    assert failed.attributes[f"{P}batch.id"] == 1
    restart = [span for span in spans if span.name == "start orders"][1]
    assert restart.attributes[f"{P}start.last_outcome"] == "failed"


# ---- a batch that hangs ---------------------------------------------------------------------


def test_hung_batch_is_told_before_it_ends():
    """Once, below the root that will come, with phase, tasks and age."""
    stage = Stage()
    stage.start()
    stage.batch()
    began = stage.now + 1.0
    tasks = Tasks(running=2, completed=7, failed=1)
    for after in (200.0, 200.0, 200.0):
        stage.look(after=after, batch_id=1, trigger_started_at=began, tasks=tasks)
    span = stage.only("running")
    root = stage.tracer.pipeline.computed((stage.life.run_id, 1))
    assert (span.parent.trace_id, span.parent.span_id) == (root.trace_id, root.span_id)
    assert span.start_time == round(began * 1000) * 1_000_000
    assert _said(
        span,
        "batch.id",
        "batch.overdue",
        "running.age",
        "running.phase",
        "running.tasks.running",
        "running.tasks.completed",
        "running.tasks.failed",
    ) == {
        "batch.id": 1,
        "batch.overdue": True,
        "running.age": 399.0,
        "running.phase": "processing",
        "running.tasks.running": 2,
        "running.tasks.completed": 7,
        "running.tasks.failed": 1,
    }


def test_hung_batch_that_ends_after_all_is_the_parent():
    """Its root has the id that was foretold, is kept, and says that it was overdue."""
    stage = Stage(keep_seconds=100_000.0, environ={})
    stage.start()
    stage.batch()
    began = stage.now + 1.0
    stage.look(after=400.0, batch_id=1, trigger_started_at=began)
    stage.batch(after=began - stage.now, seconds=500.0)
    spans = stage.spans()
    running = next(span for span in spans if span.name == "running")
    root = next(span for span in spans if span.context.span_id == running.parent.span_id)
    assert root.name == "batch orders"
    assert root.attributes[f"{P}batch.overdue"] is True


def _hang(stage):
    stage.start()
    stage.batch()
    stage.look(after=400.0, batch_id=1, trigger_started_at=stage.now + 1.0)


def _root_of_running(stage):
    spans = stage.spans()
    running = next(span for span in spans if span.name == "running")
    (root,) = [span for span in spans if span.context.span_id == running.parent.span_id]
    return root


@pytest.mark.parametrize("outcome", ["stopped", "unknown"])
def test_hung_batch_has_a_root_however_its_run_ends(outcome):
    """A stop, or an application that is gone, leaves no span without its parent, and is no error."""
    stage = Stage()
    _hang(stage)
    stage.end() if outcome == "stopped" else stage.lose()
    root = _root_of_running(stage)
    assert root.name == "batch orders"
    assert root.status.status_code is StatusCode.UNSET
    assert _said(root, "batch.id", "batch.overdue", "batch.outcome") == {
        "batch.id": 1,
        "batch.overdue": True,
        "batch.outcome": outcome,
    }


def test_hung_batch_whose_event_was_lost_has_a_root():
    """The next batch shows that it is over; how it went nobody knows."""
    stage = Stage()
    _hang(stage)
    stage.life.batch_id += 1
    stage.batch()
    assert _said(_root_of_running(stage), "batch.outcome") == {"batch.outcome": "unknown"}


def test_hung_batch_whose_event_comes_late_has_one_root():
    """A look already saw the next batch; the event of this one was still on its way."""
    stage = Stage()
    stage.start()
    stage.batch()
    began = stage.now + 1.0
    stage.look(after=400.0, batch_id=1)
    stage.look(after=400.0, batch_id=1)
    stage.look(after=1.0, batch_id=2)
    stage.batch(after=began - stage.now, seconds=800.0)
    stage.look(after=1.0, batch_id=1, trigger_started_at=began)
    stage.end()
    spans = stage.spans()
    assert [span.attributes[f"{P}batch.id"] for span in spans if span.name == "running"] == [1, 2]
    roots = [span for span in spans if span.name == "batch orders"]
    assert [span.attributes[f"{P}batch.id"] for span in roots] == [0, 1, 2]
    assert f"{P}batch.outcome" not in roots[1].attributes


def test_hung_batch_that_fails_has_one_root():
    """The failure is on it."""
    stage = Stage()
    _hang(stage)
    stage.end(BOOM)
    root = _root_of_running(stage)
    assert root.status.status_code is StatusCode.ERROR
    assert f"{P}batch.outcome" not in root.attributes


def test_verdict_of_a_hung_query_names_the_batch_that_hangs():
    """A log line of the query as it is now has the ids of the root that will come."""
    stage = Stage()
    stage.start()
    stage.batch()
    of_batch = stage.ids
    stage.look(after=1.0, batch_id=1)
    assert stage.ids == of_batch
    stage.look(after=400.0, batch_id=1, trigger_started_at=stage.now + 1.0)
    ids = stage.ids
    stage.end()
    root = _root_of_running(stage)
    assert ids == span_ids.to_hex(root.context.trace_id, root.context.span_id)


def test_runs_whose_end_was_never_told_are_let_go():
    """A query that is restarted for ever under a lossy bus does not eat the driver."""
    stage = Stage()
    for _ in range(50):
        stage.start()
        stage.batch()
    stage.start()
    for _ in range(9):
        stage.start()
    assert len(stage.tracer._runs) <= 4
    starts = stage.spans("start orders")
    assert len(starts) == 60 - 4
    assert starts[-1].attributes[f"{P}start.outcome"] == "unknown"


def test_pipeline_is_made_once_whoever_asks_first():
    """`batch_span` in the user's thread and the worker may both be the first."""
    made, slow = [], threading.Event()

    def make():
        slow.wait(0.2)  # long enough for the others to ask too
        made.append(object())
        return made[-1]

    tracer, found = Tracer(make), []
    threads = [threading.Thread(target=lambda: found.append(tracer.pipeline)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert found == made * 4


def test_patient_query_is_not_overdue():
    """A batch within the silence budget, and one that waits, are nobody's business."""
    stage = Stage()
    stage.start()
    stage.batch()
    stage.look(after=250.0, batch_id=1, trigger_started_at=stage.now)
    stage.look(after=400.0, batch_id=1, trigger_active=False, phase="waiting_for_trigger")
    assert not stage.spans("running")
