"""The driver's clock is set while queries run: no verdict, no budget and no length changes by it."""

import json
from datetime import datetime, timezone

import pytest
from stage import Life, apply_to

from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import QueryStatus, RunDetails, Tasks
from streamgauge.model.timeshift import shift_event, shift_query, to_steady
from streamgauge.model.verdict import judge

START = 1_794_787_200.0  # 2026-11-16T00:00:00Z


class SteppedLife:
    """A query of a driver whose wall clock is set now and then; the steady clock runs on."""

    def __init__(self, trigger_seconds=10.0):
        self.fleet, self.life = Fleet(silence_floor=lambda _: 0.0), Life()
        self.now, self.offset = START, 0.0
        self.batch_id = 1
        self.hear(self.life.started(self.wall()))
        details = {"trigger": "processing_time", "trigger_seconds": trigger_seconds}
        ids = {"query_id": self.life.query_id, "run_id": self.life.run_id}
        apply_to(self.fleet, RunDetails(**ids, **details, idle_seconds=10.0), self.now)

    @property
    def query(self):
        (query,) = self.fleet.queries.values()
        return query

    def wall(self, ago=0.0):
        at = datetime.fromtimestamp(self.now - ago + self.offset, timezone.utc)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def hear(self, text):
        """As the worker does."""
        event = decode(text)
        steady = to_steady(event, self.fleet.queries.get(event.query_id), self.now, self.offset)
        apply_to(self.fleet, steady, self.now)
        return steady

    def batch(self, seconds=2.0, step=0.0, ends_later=0.0):
        """A batch of so many true seconds, in which the clock is set by `step`."""
        began = self.wall()
        self.now += seconds
        self.offset += step
        spent = max(0, int((seconds + step) * 1000))  # what Spark's clock says
        text = json.loads(self.life.progress(began))
        durations = {"triggerExecution": spent, "addBatch": max(0, spent - 100), "walCommit": 50}
        text["progress"]["durationMs"] = durations
        self.now += ends_later
        return self.hear(json.dumps(text))

    def look(self, began, completed=None):
        """A poll that finds a trigger at work; `began` is Spark's word for its start."""
        tasks = None if completed is None else Tasks(running=1, completed=completed, failed=0)
        status = QueryStatus(
            query_id=self.life.query_id,
            run_id=self.life.run_id,
            at=self.now,
            trigger_active=True,
            data_available=True,
            phase="processing",
            batch_id=1,
            trigger_started_at=began,
            clock_offset=self.offset,
            tasks=tasks,
        )
        apply_to(self.fleet, status, self.now)
        return judge(self.query, self.now).state


@pytest.mark.parametrize("step", [3600.0, 86_400.0])
def test_step_forward_in_a_batch_makes_it_no_longer(step):
    """Spark says it took an hour; since the last sign of the run there were seconds."""
    driver = SteppedLife()
    for _ in range(5):
        driver.now += 8.0
        driver.batch()
    budget = driver.query.silence_budget
    driver.now += 8.0
    batch = driver.batch(step=step)
    assert batch.seconds == pytest.approx(
        10.0
    )  # the batch and the wait before it: no more is known
    assert batch.ended_at == driver.now
    assert batch.phases == {"wal_commit": 0.05}
    assert (batch.input_rate, batch.processed_rate) == (None, None)
    assert driver.query.silence_budget <= budget + 10.0
    assert driver.query.longest_ever < 11.0
    assert judge(driver.query, driver.now).state == "running"


def test_stall_after_a_step_forward_is_found_in_time():
    """The budget is not an hour longer from then on."""
    driver = SteppedLife()
    for step in (0.0, 0.0, 3600.0, 0.0):
        driver.now += 8.0
        driver.batch(step=step)
    driver.now += 60.0
    assert judge(driver.query, driver.now).state == "stalled"


def test_step_back_in_a_batch_leaves_its_length_unknown():
    """Spark says that it took no time at all; that is no length to learn from."""
    driver = SteppedLife()
    driver.batch()
    driver.now += 8.0
    batch = driver.batch(seconds=5.0, step=-3600.0)
    assert batch.seconds is None
    assert driver.now - 6 < batch.ended_at <= driver.now
    assert judge(driver.query, driver.now).state == "running"


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_batches_after_a_step_are_as_before(step):
    """Their times are those of the steady clock, whatever the wall clock says."""
    driver = SteppedLife()
    driver.batch()
    driver.offset += step
    for _ in range(5):
        driver.now += 8.0
        batch = driver.batch()
        assert (batch.ended_at, batch.seconds) == (pytest.approx(driver.now, abs=0.01), 2.0)
        assert shift_event(batch, step).ended_at == pytest.approx(driver.now + step, abs=0.01)
    assert driver.query.started_at == START
    assert judge(driver.query, driver.now).state == "running"


def test_batches_on_a_late_bus_keep_their_length():
    """Two events that come at once: the second batch began when the first had ended, not when it came."""
    driver = SteppedLife()
    driver.batch(seconds=30.0)
    first = driver.life.progress(driver.wall(), durationMs={"triggerExecution": 30_000})
    second = driver.life.progress(driver.wall(-30.0), durationMs={"triggerExecution": 30_000})
    driver.now += 65.0
    assert [driver.hear(text).seconds for text in (first, second)] == [30.0, 30.0]


def test_batch_of_a_run_that_was_not_seen_before_keeps_its_length():
    """An agent that joins in the middle has no sign to measure from."""
    fleet, life = Fleet(), Life()
    event = decode(life.progress(durationMs={"triggerExecution": 7_200_000}))
    assert to_steady(event, None, event.ended_at + 1, 0.0) is event
    assert fleet.queries == {}


def test_step_of_a_connect_client_alone_moves_nothing():
    """Events carry the server's clock, which nobody has set."""
    life = Life()
    event = decode(life.progress("2026-11-16T00:00:01.000Z"))
    assert to_steady(event, None, START + 2.0, 3600.0) is event


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_step_makes_no_running_trigger_older_or_younger(step):
    """Spark names the start of its trigger by the wall clock; the trigger is the same one as before."""
    driver = SteppedLife()
    driver.batch()
    began = driver.now + driver.offset
    states = []
    for number in range(20):
        driver.now += 5.0
        driver.offset += step if number == 2 else 0.0
        states.append(driver.look(began))
    since = driver.query.inflight_since(driver.now)
    assert driver.now - since == pytest.approx(100.0, abs=5.1)
    assert states[:6] == ["running"] * 6
    assert states[-1] == "stalled"


def test_trigger_that_begins_after_a_step_begins_after_the_last_poll():
    """Whatever Spark's clock says of it."""
    driver = SteppedLife()
    driver.batch()
    driver.now += 5.0
    driver.look(driver.now - 1.0)
    driver.now += 5.0
    driver.look(driver.now - 3600.0)
    assert driver.now - driver.query.active_since <= 5.0


def test_idle_event_that_came_twice_is_known_after_a_step():
    """A second listener brings the same event; the same offset gives the same time."""
    driver = SteppedLife()
    driver.batch()
    driver.offset = 3600.0
    idle = driver.life.idle(driver.wall())
    driver.hear(idle)
    event = to_steady(decode(idle), driver.query, driver.now + 0.1, driver.offset)
    assert driver.fleet.apply(event, driver.now + 0.1).repeated


def test_shifted_record_tells_wall_times_and_keeps_ages():
    """For those who write times down."""
    driver = SteppedLife()
    driver.batch()
    driver.look(driver.now - 1.0, completed=3)
    query = driver.query
    moved = shift_query(query, 3600.0)
    for name in ("started_at", "last_event_at", "active_since", "tasks_changed_at"):
        assert getattr(moved, name) == getattr(query, name) + 3600.0, name
    assert moved.committed.ended_at == query.committed.ended_at + 3600.0
    assert moved.status.at == query.status.at + 3600.0
    assert moved.silence_budget == query.silence_budget
    assert shift_query(query, 0.0) is query


@pytest.mark.parametrize("ahead", [0.0, 5.0, 30.0])
def test_server_whose_clock_is_ahead_cuts_no_batch(ahead):
    """Events that come late and together are no step of this host's clock, which had none."""
    fleet, life = Fleet(), Life()
    for batch, late in enumerate((0.1, 0.1, 20.1, 10.1, 0.1)):
        began = START + 10 * batch
        at = datetime.fromtimestamp(began + ahead, timezone.utc)
        text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        durations = {"triggerExecution": 9500, "addBatch": 9000}
        event = decode(life.progress(text, durationMs=durations))
        now = began + 9.5 + late
        steady = to_steady(event, fleet.queries.get(event.query_id), now, 0.0)
        apply_to(fleet, steady, now)
        assert (steady.seconds, steady.phases) == (9.5, {"add_batch": 9.0})
