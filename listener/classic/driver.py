"""The driver of a classic Spark application, read through Py4J.

Reads only. Everything private that is used here is tried, and what this Spark does not have is unknown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from streamgauge.listener.driver import ApplicationInfo
from streamgauge.listener.phases import phase_of
from streamgauge.masking import clean, mask
from streamgauge.model import decoder
from streamgauge.model.causes import condense
from streamgauge.model.observations import (
    ApplicationStatus,
    Gone,
    GoneCause,
    QueryStatus,
    RunDetails,
    Tasks,
)
from streamgauge.model.query import Query
from streamgauge.steady import no_offset, steady_time

from .application import active_context, describe_application
from .batch_jobs import BatchJobs
from .checkpoint_files import ClassicCheckpointFiles
from .details import read_details
from .executions import Executions
from .jvm import attempt, listener_bus, reach, require_context

_TASKS_AFTER_SECONDS = 2.0  # a shorter trigger is over before anybody could ask for its tasks
_MOST_CAUSES = 10
_MISSED_POLLS = 3  # so many polls in a row without the run: it is over


class ClassicDriver:
    """Reads one application; implements `Driver`, whose docstring has the threading contract.

    `listeners` gives our Java listeners, to see whether one is still on the bus; `everywhere` our own bus
    for all sessions, None where there is none; `drain` waits for what they have heard.
    """

    stop_cause = GoneCause.APPLICATION_STOPPED
    may_hang = True

    def __init__(
        self,
        *,
        listeners: Callable[[], Sequence[Any]],
        everywhere: Callable[[], Any] = lambda: None,
        drain: Callable[[float], bool] = lambda _: True,
        clock: Callable[[], float] = steady_time,
        wall_offset: Callable[[], float] = no_offset,
    ) -> None:
        self._listeners = listeners
        self._everywhere = everywhere
        self._drain = drain
        self._clock = clock
        self._wall_offset = wall_offset
        self._executions = Executions()
        self._missed_polls: dict[str, int] = {}  # by run id
        self._jobs: dict[str, BatchJobs] = {}  # run id → jobs of its running batch
        self._parting: Any = None  # the context that is being stopped, or was

    # ---- the application -------------------------------------------------------------------

    def add(self, stoppable: Any, listener: Any, *, everywhere: bool = False) -> ApplicationInfo:
        """What a context says of its application; there is one per process, so nothing is kept."""
        return describe_application(stoppable)

    def part(self, stoppable: Any) -> None:
        """The application is about to stop its context, which may take long."""
        self._parting = stoppable

    def leave(self, stoppable: Any) -> bool:
        """The application has stopped its context; there is no other."""
        return False

    def poll_application(self) -> ApplicationStatus:
        """The application as a whole; raises `ApplicationStopped` and `DriverUnreachable`."""
        context = require_context()
        reach(lambda: context._jsc.sc().isStopped())  # noqa: SLF001 - all else here is glad with no answer
        application = describe_application(context)
        return ApplicationStatus(
            at=self._clock(),
            app_name=clean(application.name) if application.name else None,
            spark_version=application.spark_version,
            bus_dropped=attempt(_bus_dropped),
            ui_url=attempt(lambda: context.uiWebUrl),
        )

    def drain(self, seconds: float) -> None:
        """Wait, for so long at most, until Spark's bus is empty and our listeners' events are here."""
        until = time.monotonic() + seconds
        attempt(lambda: listener_bus().waitUntilEmpty(int(seconds * 1000)))
        self._drain(max(0.0, until - time.monotonic()))

    def skip_farewells(self) -> None:
        """Nothing to do: a classic driver waits for no server at exit."""

    def close(self) -> None:
        """Nothing to do: the process has one application at a time, which is asked for each time."""

    # ---- queries ---------------------------------------------------------------------------

    def checkpoint_files(self) -> ClassicCheckpointFiles:
        """A reader of checkpoint files, for one other thread."""
        return ClassicCheckpointFiles(self._executions, self._clock)

    def details(self, query_id: str, run_id: str) -> RunDetails | None:
        """How a run is configured; None when it is not there."""
        execution = reach(lambda: self._executions.find(query_id, run_id))
        return None if execution is None else read_details(execution, query_id, run_id)

    def poll_query(self, query: Query) -> QueryStatus | Gone | None:
        """One live query now; None when nothing is known yet."""
        observed: QueryStatus | Gone | None = reach(lambda: self._poll(query))
        return observed

    def _poll(self, query: Query) -> QueryStatus | Gone | None:
        execution = self._executions.find(query.query_id, query.run_id)
        if execution is None or not execution.isActive():
            return self._miss(query, execution)
        self._missed_polls.pop(query.run_id, None)
        status = json.loads(execution.status().json())
        active = bool(status.get("isTriggerActive"))
        batch_id, started_at = _batch_of(execution)
        since = query.active_since
        long = active and since is not None and self._clock() - since > _TASKS_AFTER_SECONDS
        offset = self._wall_offset()
        began = started_at or (since or 0.0) + offset - query.watch_seconds
        return QueryStatus(
            query_id=query.query_id,
            run_id=query.run_id,
            at=self._clock(),
            trigger_active=active,
            data_available=bool(status.get("isDataAvailable")),
            phase=phase_of(str(status.get("message", ""))),
            batch_id=batch_id,
            trigger_started_at=started_at if active else None,
            clock_offset=offset,
            tasks=attempt(lambda: self._tasks(query.run_id, batch_id, began)) if long else None,
            listening=attempt(lambda: self._listening(execution)),
        )

    def forget(self, run_ids: set[str]) -> None:
        """Drop the JVM's objects of all runs but these."""
        self._executions.forget(run_ids)
        self._missed_polls = {run: n for run, n in self._missed_polls.items() if run in run_ids}
        self._jobs = {run: jobs for run, jobs in self._jobs.items() if run in run_ids}

    def _miss(self, query: Query, execution: Any) -> Gone | None:
        """A run that is not active any more: its Terminated event may still be on the way."""
        missed = self._missed_polls[query.run_id] = self._missed_polls.get(query.run_id, 0) + 1
        if missed < _MISSED_POLLS:
            return None
        failure, given = None, None
        # A stop breaks healthy runs too, and the exception that it leaves on them means nothing.
        if not self._is_parting():
            failure, given = attempt(lambda: _failure(execution)) or (None, None)
        return Gone(
            query_id=query.query_id,
            run_id=query.run_id,
            at=self._clock(),
            cause=GoneCause.INACTIVE,
            why=GoneCause.INACTIVE.sentence,
            exception=failure,
            error_class=decoder.error_class(given, failure) if failure else None,
        )

    def _is_parting(self) -> bool:
        """Whether a stop has begun, and no other context has taken the place since."""
        context = active_context()
        return self._parting is not None and (context is None or context is self._parting)

    def _tasks(self, run_id: str, batch_id: int | None, began: float) -> Tasks:
        """Tasks of all jobs of the running batch, added up from poll to poll."""
        jobs = self._jobs.get(run_id)
        if jobs is None or jobs.batch_id != batch_id:
            jobs = self._jobs[run_id] = BatchJobs(batch_id, began)
        jobs.poll(run_id)
        return jobs.tasks()

    def _listening(self, execution: Any) -> bool | None:
        """Whether our listener hears this query; None when there is none to look for."""
        everywhere = self._everywhere()
        if everywhere is not None and listener_bus().listeners().contains(everywhere):
            return True
        ours = self._listeners()
        if not ours:
            return None
        there = list(execution.sparkSession().streams().listListeners())
        return any(listener.equals(mine) for listener in there for mine in ours)


def _bus_dropped() -> int:
    registry = listener_bus().metrics().metricRegistry()
    return int(registry.counter("queue.streams.numDroppedEvents").getCount())


def _batch_of(execution: Any) -> tuple[int | None, float | None]:
    """Number of the batch that runs or runs next, and when its trigger began (Spark 4.x)."""
    try:
        running = execution.getLatestExecutionContext()
        began = running.currentTriggerStartTimestamp()
        number = running.batchId()
    except Exception:  # noqa: BLE001 - Spark 3.5, or no batch yet; a dead JVM is found by the next call
        return attempt(lambda: _natural(execution.currentBatchId())), None
    return _natural(number), began / 1000.0 if began > 0 else None


def _natural(number: int) -> int | None:
    return number if number >= 0 else None


def _failure(execution: Any) -> tuple[str | None, str | None]:
    """What a run failed with, and Spark's error class where the exception has one.

    Only the Terminated event has that of a failed foreachBatch: Spark unwraps the exception.
    """
    exception = execution.exception()
    if not exception.isDefined():
        return None, None
    cause = exception.get().cause()
    given = attempt(cause.getCondition) or attempt(cause.getErrorClass)  # before 4.0
    return mask(condense("\nCaused by: ".join(_chain(cause)))), given


def _chain(exception: Any) -> Iterator[str]:
    """An exception and its causes, in words."""
    for _ in range(_MOST_CAUSES):
        if exception is None:
            return
        yield str(exception.toString())
        exception = attempt(exception.getCause)
