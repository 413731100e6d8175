"""The decision table: what is known and the time give the verdict, and the reason in words."""

import json

import pytest
from stage import Life, apply_to, recorded

from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import Gone, GoneCause, QueryStatus, RunDetails, Tasks
from streamgauge.model.verdict import STATES, judge

START = 1_794_787_200.0  # 2026-11-16T00:00:00Z


class Story:
    """A query's history, told in a few words."""

    def __init__(self, trigger="processing_time", trigger_seconds=0.0):
        self.fleet = Fleet()
        self.life = Life()
        self.now = START
        self.trigger, self.trigger_seconds = trigger, trigger_seconds

    @property
    def query(self):
        (query,) = self.fleet.queries.values()
        return query

    def verdict(self, **kwargs):
        return judge(self.query, self.now, **kwargs)

    def start(self, *, learn=True):
        self._handle(self.life.started(_iso(self.now)))
        if not learn:
            return self
        apply_to(
            self.fleet,
            RunDetails(
                query_id=self.life.query_id,
                run_id=self.life.run_id,
                trigger=self.trigger,
                trigger_seconds=self.trigger_seconds,
                idle_seconds=10.0,
            ),
            self.now,
        )
        return self

    def batch(self, after=1.0, rows=10, backlog=0, rates=(10.0, 20.0), seconds=0.5, **source_says):
        self.now += after
        text = json.loads(self.life.progress(_iso(self.now - seconds)))
        progress = text["progress"]
        progress["durationMs"]["triggerExecution"] = int(seconds * 1000)
        progress["numInputRows"] = rows
        progress["inputRowsPerSecond"], progress["processedRowsPerSecond"] = rates
        source = progress["sources"][0]
        source["numInputRows"] = rows
        source.update(source_says)
        if backlog is None:
            source["latestOffset"] = None
        else:
            end = source["endOffset"]["orders"]["0"]
            source["latestOffset"] = {"orders": {"0": end + backlog}}
        return self._handle(json.dumps(text))

    def idle(self, after=10.0):
        self.now += after
        return self._handle(self.life.idle(_iso(self.now)))

    def end(self, exception=None):
        self.now += 1
        return self._handle(self.life.terminated(exception))

    def look(self, after=5.0, tasks=None, **changes):
        self.now += after
        values = {"trigger_active": True, "data_available": True, "phase": "processing"}
        apply_to(
            self.fleet,
            QueryStatus(
                query_id=self.life.query_id,
                run_id=self.life.run_id,
                at=self.now,
                tasks=Tasks(**tasks) if tasks else None,
                **{**values, **changes},
            ),
        )
        return self

    def waiting(self, after=5.0, phase="waiting_for_data", data=False):
        return self.look(after, trigger_active=False, data_available=data, phase=phase)

    def _handle(self, text):
        apply_to(self.fleet, decode(text), self.now)
        return self


def _iso(at):
    from datetime import datetime, timezone

    return (
        datetime.fromtimestamp(at, timezone.utc)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def _waiting_for_data():
    story = Story().start().batch().idle()
    for _ in range(120):
        story.waiting()
        story.idle(after=5.0)
    return story


def _idle_without_heartbeat():
    """`noDataProgressEventInterval` of an hour: no idle events, and the status says why."""
    story = Story().start().batch()
    for _ in range(200):
        story.waiting()
    return story


def _between_long_triggers():
    story = Story(trigger_seconds=3600.0).start().batch()
    for _ in range(600):
        story.waiting(phase="waiting_for_trigger", data=True)
    return story


def _between_long_triggers_over_connect():
    story = Story("unknown", None).start().batch()
    for _ in range(600):
        story.waiting(phase="waiting_for_trigger", data=True)
    return story


def _long_batch():
    story = Story().start().batch()
    for _ in range(50):
        story.look()
    return story


def _slow_batch_with_tasks():
    story = Story().start().batch()
    for n in range(200):
        story.look(tasks={"running": 2, "completed": n, "failed": 0}, batch_id=1)
    return story


def _hung_batch():
    story = Story().start().batch()
    for _ in range(80):
        story.look(tasks={"running": 1, "completed": 7, "failed": 0}, batch_id=1)
    return story


def _retrying_batch():
    story = Story().start().batch()
    for n in range(80):
        story.look(tasks={"running": 1, "completed": 0, "failed": n}, batch_id=1)
    return story


def _retrying_a_poisoned_row():
    story = Story().start().batch()
    for n in range(80):
        story.look(tasks={"running": 1, "completed": 7, "failed": n // 20}, batch_id=1)
    return story


def _retry_loop():
    """Somebody's code catches the error of each job and tries again; other tasks finish each time."""
    story = Story().start().batch(seconds=4.0)
    for n in range(150):
        tasks = {"running": 1, "completed": 7 * n, "failed": 4 * n, "jobs": n + 1, "failed_jobs": n}
        story.look(tasks=tasks, batch_id=1)
    return story


def _retry_loop_in_the_first_batch():
    story = Story().start()
    for n in range(150):
        tasks = {"running": 1, "completed": 7 * n, "failed": 4 * n, "jobs": n + 1, "failed_jobs": n}
        story.look(tasks=tasks, batch_id=0)
    return story


def _retry_loop_without_failures():
    """The jobs succeed, what the code does with their result does not: the same work, hour after hour."""
    story = Story().start().batch(after=5.0, seconds=4.0)
    for n in range(800):
        story.look(tasks={"running": 1, "completed": 8 * n, "failed": 0, "jobs": 2 * n}, batch_id=1)
    return story


def _large_healthy_batch():
    """After a day's outage: two hours instead of four seconds, in the three jobs that a batch has."""
    story = Story().start().batch(after=5.0, seconds=4.0)
    for n in range(1440):
        story.look(tasks={"running": 8, "completed": n, "failed": 0, "jobs": 3}, batch_id=1)
    return story


def _large_batch_that_lost_executors():
    """Tasks that failed with their executors run again; no job failed."""
    story = Story().start().batch(after=5.0, seconds=4.0)
    for n in range(1440):
        tasks = {"running": 8, "completed": n, "failed": n // 10, "jobs": 3, "failed_jobs": 0}
        story.look(tasks=tasks, batch_id=1)
    return story


def _backfill():
    """The first batch reads a year; nothing is known of how long one takes."""
    story = Story().start()
    for n in range(3000):
        tasks = {"running": 8, "completed": n, "failed": 0, "jobs": n // 50}
        story.look(tasks=tasks, batch_id=0)
    return story


def _batch_that_failed_a_job_and_went_on():
    """One failed job is no loop: code may do without it."""
    story = Story().start().batch(after=5.0, seconds=4.0)
    for n in range(1440):
        tasks = {"running": 8, "completed": n, "failed": 4, "jobs": 3, "failed_jobs": 1}
        story.look(tasks=tasks, batch_id=1)
    return story


def _awake_again():
    """A quiet night, and now data: at work, though no event has said so yet."""
    story = Story().start().batch().idle().waiting()
    for n in range(5):
        story.look(tasks={"running": 2, "completed": n, "failed": 0}, batch_id=1)
    return story


def _asking_for_data():
    """An idle query that is found while it asks its sources stays idle."""
    return Story().start().batch().idle().waiting().look(phase="offsets", data_available=False)


def _hung_first_batch():
    story = Story().start()
    for _ in range(80):
        story.look(tasks={"running": 0, "completed": 0, "failed": 0}, batch_id=0)
    return story


def _hung_source():
    story = Story().start().batch()
    for _ in range(80):
        story.look(phase="offsets", data_available=False)
    return story


def _dead_thread():
    story = Story().start().batch()
    story.now += 400
    return story


def _commits_stalled():
    story = Story().start().batch()
    for n in range(100):
        story.waiting(phase="waiting_for_trigger", data=True)
        if n % 2:
            story.idle(after=0.1)
    return story


def _source_not_advancing():
    story = Story().start()
    for _ in range(40):
        story.batch(after=10.0, rows=0, backlog=500)
    return story


def _falling_behind():
    story = Story().start()
    for n in range(40):
        story.batch(after=10.0, backlog=100 * n)
    return story


def _falling_behind_by_rate():
    story = Story().start()
    for _ in range(40):
        story.batch(after=10.0, backlog=None, rates=(30.0, 20.0), seconds=9.9)
    return story


def _falling_behind_by_a_hair():
    story = Story().start()
    for _ in range(40):
        story.batch(after=10.0, backlog=None, rates=(1.2, 1.1), seconds=9.9)
    return story


def _a_file_every_three_minutes():
    """Each batch by itself reads in seconds what took minutes to come: rates of such batches say nothing."""
    story = Story(trigger_seconds=2.0).start()
    for _ in range(20):
        story.batch(after=180.0, backlog=None, rates=(1.4, 1.0), seconds=4.0)
    return story


def _file_after_file_with_idle_triggers_between():
    """One that had nothing to do in between is not behind."""
    story = Story().start()
    for _ in range(20):
        story.batch(after=25.0, backlog=None, rates=(1.4, 1.0), seconds=24.0)
        story.idle(after=1.0)
    return story.batch(after=25.0, backlog=None, rates=(1.4, 1.0), seconds=24.0)


def _falling_behind_in_files():
    """Delta tells the files that wait, and no rows."""
    story = Story().start()
    for n in range(40):
        waiting = {"numFilesOutstanding": str(10 + 3 * n), "numBytesOutstanding": str(1000 * n)}
        delta = "DeltaSource[s3://lake/orders]"
        story.batch(after=10.0, backlog=None, description=delta, metrics=waiting)
    return story


def _files_that_come_and_go():
    """A few files more or less are no trend, nor are the rates where files are known."""
    story = Story().start()
    for n in range(40):
        waiting = {"numFilesOutstanding": str((3, 5, 2, 4)[n % 4])}
        rates, delta = (30.0, 20.0), "DeltaSource[s3://lake/orders]"
        story.batch(*(10.0, 10, None, rates), seconds=9.9, description=delta, metrics=waiting)
    return story


def _wobbling():
    """A throttled source in health: what waits goes up and down, and is more at the end."""
    story = Story().start()
    for n in range(12):
        story.batch(after=60.0, backlog=(300, 900, 100, 700, 400, 800)[n % 6])
    return story


def _a_few_rows_left():
    story = Story().start()
    for n in range(60):
        story.batch(after=10.0, backlog=3 if n == 59 else 0)
    return story


def _catching_up():
    story = Story().start()
    for n in range(10):
        story.batch(after=10.0, backlog=10_000 - 900 * n)
    return story


def _steady():
    story = Story().start()
    for n in range(60):
        story.batch(after=10.0, backlog=50 + n % 3)
    return story


def _steady_without_backlog():
    story = Story().start()
    for _ in range(60):
        story.batch(after=10.0, backlog=None, rates=(20.0, 20.0))
    return story


def _failed():
    return Story().start().batch().end("java.lang.IllegalStateException: batch 7 doesn't exist")


def _stopped():
    return Story().start().batch().end()


def _available_now_without_data():
    return Story("available_now", None).start().end()


def _lost():
    story = Story().start().batch()
    apply_to(
        story.fleet,
        Gone(query_id=story.life.query_id, run_id=story.life.run_id, at=story.now, why="stopped"),
    )
    return story


def _restarting():
    story = Story()
    for _ in range(3):
        story.start().batch().end("E: x")
    return story.start().batch()


def _deployed_three_times():
    story = Story()
    for _ in range(5):
        story.start().batch().end()
    return story.start().batch()


def _two_failures_among_deployments():
    story = Story()
    for error in (None, "E: x", None, None, None):
        story.start().batch().end(error)
    return story.start().batch()


def _application_restarted_in_a_notebook():
    story = Story()
    for _ in range(5):
        story.start().batch()
        gone = {"cause": GoneCause.APPLICATION_STOPPED, "why": "the Spark application was stopped"}
        ids = {"query_id": story.life.query_id, "run_id": story.life.run_id}
        apply_to(story.fleet, Gone(**ids, at=story.now, **gone))
    return story.start().batch()


def _deployed_after_a_loop():
    story = Story()
    for _ in range(4):
        story.start().batch().end("E: x")
    return story.start().batch().end().start().batch()


def _vanished_again_and_again():
    story = Story()
    for _ in range(3):
        story.start().batch()
        ids = {"query_id": story.life.query_id, "run_id": story.life.run_id}
        apply_to(story.fleet, Gone(**ids, at=story.now, cause=GoneCause.INACTIVE, why="inactive"))
    return story.start().batch()


def _available_now_every_minute():
    story = Story("available_now", None)
    for _ in range(10):
        story.start().batch(after=5).end()
        story.now += 60
    return story.start().batch()


def _available_now_has_just_begun():
    """Its details are not read yet, but the last run's are known."""
    story = Story("available_now", None)
    for _ in range(6):
        story.start().batch(after=5).end()
        story.now += 60
    return story.start(learn=False)


def _continuous():
    story = Story("continuous", None).start()
    for _ in range(500):
        story.waiting(phase="other")
    return story


def _events_missing():
    story = Story().start().batch()
    for n in range(20):
        story.look(batch_id=5 + n)
    return story


def _listener_removed():
    return Story().start().batch().look(listening=False)


def _bus_is_late():
    """Events come, only not the newest: a slow bus is not blindness."""
    story = Story().start().batch()
    for n in range(20):
        story.look(batch_id=10 + n)
        story.batch(after=0.1)
    return story


TABLE = [
    (lambda: Story().start(), "starting", "no batch yet"),
    (lambda: Story().start().batch(), "running", "batch 0 done"),
    (_waiting_for_data, "idle", "waiting for data"),
    (_idle_without_heartbeat, "idle", "waiting for data"),
    (_between_long_triggers, "idle", "next trigger"),
    (_between_long_triggers_over_connect, "idle", "next trigger"),
    (_long_batch, "running", "has run for"),
    (_slow_batch_with_tasks, "running", "199 tasks done"),
    (_hung_batch, "stalled", "no task finished for"),
    (_retrying_batch, "stalled", "tasks failed, none finished"),
    (_retrying_a_poisoned_row, "stalled", "3 failed and were tried again"),
    (_retry_loop, "stalled", "149 jobs of it failed"),
    (_retry_loop_in_the_first_batch, "stalled", "jobs of it failed"),
    (_retry_loop_without_failures, "stalled", "it has begun 1598 jobs"),
    (_large_healthy_batch, "running", "1439 tasks done"),
    (_large_batch_that_lost_executors, "running", "143 failed and tried again"),
    (_backfill, "starting", "no batch yet"),
    (_batch_that_failed_a_job_and_went_on, "running", "1439 tasks done"),
    (_awake_again, "running", "4 tasks done"),
    (_asking_for_data, "idle", "waiting for data"),
    (_hung_first_batch, "stalled", "batch 0 has run for"),
    (_hung_source, "stalled", "asking the sources for offsets"),
    (_dead_thread, "stalled", "no event for"),
    (_commits_stalled, "stalled", "nothing was committed"),
    (_source_not_advancing, "running", "read nothing while 500 rows wait"),
    (_falling_behind, "falling_behind", "backlog grew"),
    (_wobbling, "running", "done"),
    (_a_few_rows_left, "running", "done"),
    (_falling_behind_by_rate, "falling_behind", "30 rows/s arrive"),
    (_falling_behind_by_a_hair, "falling_behind", "1.2 rows/s arrive, 1.1 rows/s are processed"),
    (_a_file_every_three_minutes, "running", "done in 4.0 s"),
    (_file_after_file_with_idle_triggers_between, "running", "done"),
    (_falling_behind_in_files, "falling_behind", "files in source 0-delta"),
    (_files_that_come_and_go, "running", "done"),
    (_catching_up, "catching_up", "backlog fell"),
    (_steady, "running", "done"),
    (_steady_without_backlog, "running", "done"),
    (_failed, "failed", "IllegalStateException: batch 7 doesn't exist"),
    (_stopped, "stopped", "without an error"),
    (_available_now_without_data, "stopped", "nothing new"),
    (_lost, "stopped", "not known"),
    (_restarting, "restarting", "4 starts in"),
    (_deployed_three_times, "running", "done"),
    (_two_failures_among_deployments, "running", "done"),
    (_application_restarted_in_a_notebook, "running", "done"),
    (_deployed_after_a_loop, "running", "done"),
    (_vanished_again_and_again, "restarting", "4 starts in"),
    (_available_now_every_minute, "running", "done"),
    (_available_now_has_just_begun, "starting", "no batch yet"),
    (_continuous, "running", "continuous"),
    (_events_missing, "blind", "no event came"),
    (_listener_removed, "blind", "listener was removed"),
    (_bus_is_late, "running", "done"),
]


@pytest.mark.parametrize(
    ("story", "state", "words"), TABLE, ids=[f"{n}-{row[1]}" for n, row in enumerate(TABLE)]
)
def test_decision_table(story, state, words):
    """Each row of the table gives its verdict, with a reason that names what was seen."""
    verdict = story().verdict()
    assert verdict.state == state, verdict
    assert words in verdict.reason


def test_table_covers_every_state():
    """No state of the contract is without a row."""
    assert {row[1] for row in TABLE} == set(STATES)


def test_blocked_worker_is_blind():
    """Ages are computed when they are read, so a page that is not written any more says so."""
    story = Story().start().batch()
    assert story.verdict(worker_seen_at=story.now - 10).state == "running"
    assert story.verdict(worker_seen_at=story.now - 40).state == "blind"


def test_stalled_not_a_second_before_the_budget():
    """The budget is the border."""
    story = Story().start().batch()
    story.now += story.query.silence_budget
    assert story.verdict().state != "stalled"
    story.now += 0.1
    assert story.verdict().state == "stalled"


def test_batch_that_can_be_looked_at_no_more_is_not_idle():
    """Its trigger was at work when the JVM last answered."""
    story = Story(trigger_seconds=10.0).start().batch().look()
    story.now += 100
    assert story.verdict().state == "running"


def test_recovered_query_is_not_stalled():
    """The first batch after a hang clears it."""
    story = _hung_batch()
    assert story.verdict().state == "stalled"
    assert story.batch().verdict().state == "running"


def test_real_time_batches_are_never_stalled():
    """A batch of five minutes that always runs, whose tasks don't end before it does."""
    story = Story("real_time", 300.0).start()
    for _ in range(6):
        for _ in range(60):
            story.look(after=5)
            assert story.verdict().state not in {"stalled", "blind"}
        story.batch(after=1.0)
    assert story.verdict().state == "running"


def test_real_time_query_that_hangs_is_stalled():
    """Three batch lengths without an end are not the mode's fault."""
    story = Story("real_time", 300.0).start().batch()
    for _ in range(200):
        story.look(after=5)
    assert story.verdict().state == "stalled"


def test_wait_for_a_trigger_is_never_stalled_where_the_interval_is_unknown():
    """Not while it lasts, not in the batch that ends it, and not after the next restart."""
    story = Story("unknown", None)
    for _ in range(2):
        story.start().batch()
        for _ in range(300):
            story.waiting(phase="waiting_for_trigger", data=True)
            assert story.verdict().state in {"running", "idle"}
        for _ in range(100):
            assert story.look().verdict().state == "running"
        story.batch().end()


def test_triggers_without_events_are_stalled_where_the_interval_is_unknown():
    """A wait that was seen to end and brought no event is silence."""
    story = Story("unknown", None).start().batch()
    for _ in range(35):
        story.look().waiting(phase="waiting_for_trigger")
    assert story.verdict().state == "stalled"


def test_continuous_is_known_by_its_epochs_where_the_trigger_is_not():
    """Over Connect the status is all there is."""
    story = Story("unknown", None).start()
    story.waiting(after=3600, phase="epochs")
    assert story.verdict().state == "running"
    assert "continuous" in story.verdict().reason


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("query-terminated-foreachbatch-error", "caused by ValueError: boom in foreachBatch"),
        ("query-terminated-task-error", "USER_RAISED_EXCEPTION: x"),
    ],
)
def test_failure_is_told_in_the_words_of_who_raised_it(name, words):
    """Not in those of the layers between: Py4J's first line says nothing."""
    story = Story().start().batch()
    event = json.loads(recorded("4.3.0", name))
    event |= {"id": story.life.query_id, "runId": story.life.run_id}
    story._handle(json.dumps(event))
    verdict = story.verdict()
    assert verdict.state == "failed"
    assert words in verdict.reason
    assert "Traceback" not in verdict.reason


def test_clean_end_that_is_heard_of_late_excuses_the_start():
    """The next run may begin before the end of the last one has arrived."""
    story = Story()
    for _ in range(5):
        story.start().batch()
        late = story.life.terminated()
        story.start()
        story._handle(late)
    assert story.batch().verdict().state == "running"
