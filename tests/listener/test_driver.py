"""What the classic driver makes of Spark's answers; the JVM is played."""

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from stage import Life, apply_to

from streamgauge.listener.classic import batch_jobs, details, driver, jvm
from streamgauge.listener.classic.batch_jobs import BatchJobs
from streamgauge.listener.classic.driver import ClassicDriver
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet


class Option:
    """Scala's."""

    def __init__(self, content):
        self._content = content

    def isDefined(self):  # noqa: N802
        return self._content is not None

    def get(self):
        assert self._content is not None, "None.get"
        return self._content


def _job(description, submitted, status="RUNNING"):
    """A job with one task that is done and one that runs."""
    at = datetime.fromtimestamp(submitted, timezone.utc)
    time = SimpleNamespace(getTime=lambda: at.timestamp() * 1000)
    return SimpleNamespace(
        description=lambda: Option(description),
        submissionTime=lambda: Option(time),
        status=lambda: SimpleNamespace(toString=lambda: status),
        numActiveTasks=lambda: 1,
        numCompletedTasks=lambda: 1,
        numFailedTasks=lambda: 0,
    )


@pytest.fixture
def count(monkeypatch):
    """How many tasks of batch 7, whose trigger began at 100, are done in these jobs."""
    return lambda *jobs: (
        poll_jobs(monkeypatch, BatchJobs(7, 100.0), dict(enumerate(jobs))).completed
    )


def poll_jobs(monkeypatch, found, jobs):
    """What one poll makes of these jobs, by number."""
    spark = SimpleNamespace(
        statusTracker=lambda: SimpleNamespace(getJobIdsForGroup=lambda _: list(jobs)),
        statusStore=lambda: SimpleNamespace(job=lambda number: jobs[number]),
    )
    java = SimpleNamespace()
    java.java = SimpleNamespace(util=SimpleNamespace(Arrays=SimpleNamespace(toString=str)))
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: spark), _jvm=java)
    for module in (jvm, batch_jobs):
        monkeypatch.setattr(module, "require_context", lambda: context)
    found.poll("run")
    return found.tasks()


def test_jobs_that_failed_are_counted_also_when_spark_has_let_go_of_them(monkeypatch):
    """Spark lists the last thousand jobs; a retry loop has more in time, and each is counted once."""
    found = BatchJobs(7, 100.0)
    jobs = {n: _job("batch = 7", 101.0, "FAILED" if n % 2 else "SUCCEEDED") for n in range(60)}
    for first in range(0, 60, 5):
        listed = {n: job for n, job in jobs.items() if first <= n < first + 10}
        for _ in range(2):
            tasks = poll_jobs(monkeypatch, found, listed)
    assert (tasks.jobs, tasks.failed_jobs, tasks.completed) == (60, 30, 60)
    assert len(found._ended) <= 10


def test_jobs_of_the_batch_are_those_that_name_it(count):
    """Those of the batch before are not counted."""
    assert count(_job("batch = 6", 101.0), _job("batch = 7", 101.0), _job("batch = 7", 102.0)) == 2


@pytest.mark.parametrize("description", ["merge", None])
def test_jobs_with_a_description_of_the_users_are_counted(count, description):
    """`setJobDescription` in foreachBatch must not make a slow batch look hung."""
    jobs = [_job("batch = 7", 101.0), _job(description, 102.0), _job("batch = 7", 103.0)]
    assert count(*jobs) == 3
    assert count(_job(description, 99.0), *jobs) == 3


def test_path_of_a_checkpoint_is_kept_whole(monkeypatch):
    """Masked, but not cut: two that differ at their end are not one."""
    context = SimpleNamespace(applicationId="app")
    monkeypatch.setattr(details, "require_context", lambda: context)
    place = f"s3://lake/{'deep/' * 50}a"
    execution = SimpleNamespace(
        resolvedCheckpointRoot=lambda: f"{place}?token=hunter2", name=lambda: None
    )
    found = details.read_details(execution, "query", "run")
    assert found.app_id == "app"
    assert found.checkpoint == f"{place}?token=***"


class Failure:
    """A JVM's exception, as far as it has an error class."""

    def __init__(self, **classes):
        self._classes = classes

    def __getattr__(self, name):
        return lambda: self._classes[name]  # as Py4J's: it has every method until it is called

    def toString(self):  # noqa: N802
        return "org.apache.spark.SparkException: [DIVIDE_BY_ZERO] password=hunter2"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ({"getCondition": "DIVIDE_BY_ZERO", "getErrorClass": None}, "DIVIDE_BY_ZERO"),
        ({"getErrorClass": "DIVIDE_BY_ZERO"}, "DIVIDE_BY_ZERO"),
        ({}, "SparkException"),
    ],
)
def test_failure_without_an_event_has_the_class_that_the_event_would_have(classes, expected):
    """One failure has one label, however it was heard of."""
    exception = SimpleNamespace(cause=lambda: Failure(**classes))
    execution = SimpleNamespace(isActive=lambda: False, exception=lambda: Option(exception))
    life = Life()
    query = apply_to(Fleet(), decode(life.started()), 0.0)
    classic = ClassicDriver(listeners=list)
    classic._executions.keep(life.run_id, execution)
    gone = [classic.poll_query(query) for _ in range(3)][-1]
    assert gone.error_class == expected
    assert "hunter2" not in gone.exception


def test_exception_of_a_run_that_spark_stop_broke_means_nothing(monkeypatch):
    """A slow stop gives three polls time to find it; the next application's failures are told again."""
    here = SimpleNamespace(_jsc=object())
    monkeypatch.setattr(driver, "active_context", lambda: here)
    exception = SimpleNamespace(cause=Failure)
    execution = SimpleNamespace(isActive=lambda: False, exception=lambda: Option(exception))
    life = Life()
    query = apply_to(Fleet(), decode(life.started()), 0.0)
    classic = ClassicDriver(listeners=list)
    classic._executions.keep(life.run_id, execution)
    classic.part(here)
    assert [classic.poll_query(query) for _ in range(3)][-1].exception is None
    monkeypatch.setattr(driver, "active_context", lambda: None)
    assert classic.poll_query(query).exception is None
    monkeypatch.setattr(driver, "active_context", lambda: SimpleNamespace(_jsc=object()))
    assert classic.poll_query(query).error_class == "SparkException"
