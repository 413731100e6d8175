"""A look at the driver of a classic Spark application, through Py4J, in the watchdog's thread.

Reads only. Everything private that is used here is tried, and what this Spark does not have is
unknown. `hasattr` on a Py4J object is always true, so the way to ask is to call.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from streamgauge.masking import clean, mask
from streamgauge.model import decoder
from streamgauge.model.kinds import sink_kind
from streamgauge.model.observations import (
    ApplicationStatus,
    CheckpointNames,
    Gone,
    QueryStatus,
    RunDetails,
    Tasks,
)
from streamgauge.model.query import Query
from streamgauge.model.sources import find_reader, parse
from streamgauge.model.sources.waiting import Place, Waiting

from .hadoop import HadoopFiles

_TRIGGERS = {
    "ProcessingTimeTrigger": "processing_time",
    "AvailableNowTrigger": "available_now",
    "OneTimeTrigger": "once",
    "ContinuousTrigger": "continuous",
    "RealTimeTrigger": "real_time",
}
_PHASES = (
    ("Waiting for data", "waiting_for_data"),
    ("Waiting for next trigger", "waiting_for_trigger"),
    ("Getting offsets", "offsets"),
    ("Processing new data", "processing"),
    ("Committing epoch", "epochs"),
)
_RECENT_JOBS = 64
_TASKS_AFTER = 2.0  # a shorter trigger is over before anybody could ask for its tasks
_BATCH = re.compile(r"\bbatch = (\d+)")


class ApplicationStopped(Exception):  # noqa: N818 - it reads as a sentence
    """There is no Spark application (any more)."""


class ClassicDriver:
    """Looks at one application. One thread at a time."""

    def __init__(
        self,
        listeners: Callable[[], list[Any]],
        clock: Callable[[], float] = time.time,
        everywhere: Callable[[], Any] = lambda: None,
    ) -> None:
        self._listeners = listeners  # our Java listeners, to see whether one is still on the bus
        self._everywhere = everywhere  # our own bus for all sessions, where there is one
        self._clock = clock
        self._executions: dict[str, Any] = {}  # run id → the JVM's StreamExecution
        self._strikes: dict[str, int] = {}
        self._jobs: dict[str, BatchJobs] = {}  # run id → jobs of its running batch
        self._wide: set[str] = set()  # folders with too many files to be listed again
        self._parting: Any = None  # the context that is being stopped, or was

    # ---- the application -------------------------------------------------------------------

    def tick(self) -> ApplicationStatus:
        """The application as a whole; raise `ApplicationStopped` if there is none."""
        context = _context()
        return ApplicationStatus(
            at=self._clock(),
            app_name=clean(context.appName),
            spark_version=_try(lambda: str(context.version)),
            bus_dropped=_try(_bus_dropped),
            ui_url=_try(lambda: context.uiWebUrl),
        )

    # ---- queries ---------------------------------------------------------------------------

    def details(self, query_id: str, run_id: str) -> RunDetails | None:
        """How a run is configured; None when it is not there."""
        execution = self._execution(query_id, run_id)
        return None if execution is None else _details(execution, query_id, run_id)

    def sight(self, query: Query) -> QueryStatus | Gone | None:
        """One live query now; None when nothing can be said yet."""
        execution = self._execution(query.query_id, query.run_id)
        if execution is None or not execution.isActive():
            return self._strike(query, execution)
        self._strikes.pop(query.run_id, None)
        status = json.loads(execution.status().json())
        active = bool(status.get("isTriggerActive"))
        batch_id, started_at = _batch_of(execution)
        since = query.active_since
        long = active and since is not None and self._clock() - since > _TASKS_AFTER
        began = started_at or (since or 0.0) - query.watch_seconds
        return QueryStatus(
            query_id=query.query_id,
            run_id=query.run_id,
            at=self._clock(),
            trigger_active=active,
            data_available=bool(status.get("isDataAvailable")),
            phase=phase_of(str(status.get("message", ""))),
            batch_id=batch_id,
            trigger_started_at=started_at if active else None,
            tasks=_try(lambda: self._tasks(query.run_id, batch_id, began)) if long else None,
            listening=_try(lambda: self._listening(execution)),
        )

    def checkpoint(self, query: Query, *, size: bool) -> CheckpointNames | None:
        """The batches on disk of one live query, listed by Spark itself; and the state's size."""
        execution = self._execution(query.query_id, query.run_id)
        if execution is None:
            return None
        offsets = _batches(execution.offsetLog())
        commits = _batches(execution.commitLog())
        return CheckpointNames(
            query_id=query.query_id,
            run_id=query.run_id,
            at=self._clock(),
            offsets=offsets,
            commits=commits,
            last_commit_at=_try(lambda: _written_at(execution, f"commits/{commits[-1]}")),
            state_bytes=_size(execution, "state") if size else None,
        )

    def waiting(self, query: Query) -> dict[str, Waiting]:
        """What waits in the sources that don't say it themselves, past the last batch of this run."""
        execution = self._execution(query.query_id, query.run_id)
        if execution is None or query.last is None or not query.has_batch:
            return {}
        found = {}
        for number, source in enumerate(query.last.sources):
            ask = find_reader(source.description).waiting
            if ask is None or source.end is None:
                continue
            described = execution.lastProgress().sources()[number].description()  # with secrets
            place = Place(
                path=described.partition("[")[2].removesuffix("]"),
                log=f"{execution.resolvedCheckpointRoot()}/sources/{number}",
                options=_try(lambda: _reader_options(execution)),
            )
            conf = execution.sparkSession().sessionState().newHadoopConf()
            seen = None
            with suppress(msgspec.MsgspecError):  # a log of another form
                seen = ask(HadoopFiles(_jvm(), conf, self._wide), place, parse(source.end))
            if seen is not None:
                found[source.label] = seen
        return found

    def forget(self, run_ids: set[str]) -> None:
        """Let go of the JVM's objects of all runs but these."""
        for run_id in set(self._executions) - run_ids:
            del self._executions[run_id]
        for run_id in set(self._strikes) - run_ids:
            del self._strikes[run_id]
        for run_id in set(self._jobs) - run_ids:
            del self._jobs[run_id]

    def drain(self, seconds: float) -> None:
        """Wait, for so long at most, until Spark's bus is empty."""
        _try(lambda: _bus().waitUntilEmpty(int(seconds * 1000)))

    def part(self, context: Any) -> None:
        """The application is about to stop its context, which may take long. Any thread."""
        self._parting = context

    def _strike(self, query: Query, execution: Any) -> Gone | None:
        """A run that is not active any more: its Terminated event may still be on the way."""
        strikes = self._strikes[query.run_id] = self._strikes.get(query.run_id, 0) + 1
        if strikes < 3:
            return None
        failure, given = None, None
        # A stop breaks healthy runs too, and the exception that it leaves on them means nothing.
        if not self._is_parting():
            failure, given = _try(lambda: _failure(execution)) or (None, None)
        return Gone(
            query_id=query.query_id,
            run_id=query.run_id,
            at=self._clock(),
            why="it is not active any more, and no Terminated event came",
            exception=failure,
            error_class=decoder.error_class(given, failure) if failure else None,
        )

    def _is_parting(self) -> bool:
        """Whether a stop has begun, and no other context has taken the place since."""
        context = _active()
        return self._parting is not None and (context is None or context is self._parting)

    def _execution(self, query_id: str, run_id: str) -> Any:
        """The JVM's object of a run, remembered for as long as the run lives."""
        execution = self._executions.get(run_id)
        if execution is None:
            execution = _find(query_id)
            if execution is None or execution.runId().toString() != run_id:
                return None
            self._executions[run_id] = execution
        return execution

    def _tasks(self, run_id: str, batch_id: int | None, began: float) -> Tasks:
        """Tasks of all jobs of the running batch, added up from look to look."""
        jobs = self._jobs.get(run_id)
        if jobs is None or jobs.batch_id != batch_id:
            jobs = self._jobs[run_id] = BatchJobs(batch_id, began)
        jobs.look(run_id)
        return jobs.tasks()

    def _listening(self, execution: Any) -> bool | None:
        everywhere = self._everywhere()
        if everywhere is not None and _bus().listeners().contains(everywhere):
            return True
        ours = self._listeners()
        if not ours:
            return None
        there = list(execution.sparkSession().streams().listListeners())
        return any(listener.equals(mine) for listener in there for mine in ours)


def _try(look: Callable[[], Any]) -> Any:
    """What a look finds; None when this Spark does not have it."""
    try:
        return look()
    except ApplicationStopped:
        raise
    except Exception:  # noqa: BLE001 - Py4J raises its own, and which ones depends on the Spark
        return None


def _active() -> Any:
    """The process's SparkContext; None when there is none, or one that is just starting."""
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark is an extra

    context = SparkContext._active_spark_context  # noqa: SLF001
    return context if getattr(context, "_jsc", None) is not None else None


def _context() -> Any:
    context = _active()
    if context is None:
        raise ApplicationStopped
    return context


def _jvm() -> Any:
    return _context()._jvm  # noqa: SLF001


def _find(query_id: str) -> Any:
    """A running query of any session of the application, by its id."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    session = SparkSession._instantiatedSession  # noqa: SLF001
    if session is None:
        return None
    uuid = _jvm().java.util.UUID.fromString(query_id)
    return session._jsparkSession.sharedState().activeStreamingQueries().get(uuid)  # noqa: SLF001


def _bus() -> Any:
    return _context()._jsc.sc().listenerBus()  # noqa: SLF001


def _bus_dropped() -> int:
    registry = _bus().metrics().metricRegistry()
    return int(registry.counter("queue.streams.numDroppedEvents").getCount())


def _batches(log: Any) -> tuple[int, ...]:
    """The ids of the files in a metadata log: one listing, one call."""
    text = _jvm().java.util.Arrays.toString(log.listBatchesOnDisk()).strip("[]")
    return tuple(sorted(int(number) for number in text.split(",") if number.strip()))


def _written_at(execution: Any, name: str) -> float:
    files, path = _place(execution, name)
    return float(files.getFileStatus(path).getModificationTime()) / 1000.0


def _size(execution: Any, name: str) -> float | None:
    """Bytes of all files below a directory, in one call; None if it is not there."""
    files, path = _place(execution, name)
    return float(files.getContentSummary(path).getLength()) if files.exists(path) else None


def _place(execution: Any, name: str) -> tuple[Any, Any]:
    """Spark's own file system, which has the credentials, and a path in the checkpoint."""
    path = _jvm().org.apache.hadoop.fs.Path(f"{execution.resolvedCheckpointRoot()}/{name}")
    return path.getFileSystem(execution.sparkSession().sessionState().newHadoopConf()), path


def _reader_options(execution: Any) -> str | None:
    """The options of a query's readers of files and Delta tables, as one text."""
    leaves = execution.analyzedPlan().collectLeaves()
    plans = [leaves.apply(number) for number in range(leaves.size())]
    readers = [p for p in plans if p.getClass().getSimpleName() == "StreamingRelation"]
    options = [reader.dataSource().options().toString() for reader in readers]
    return " ".join(options).lower() if options else None


def _details(execution: Any, query_id: str, run_id: str) -> RunDetails:
    context = _context()
    trigger, seconds = _trigger(_try(lambda: execution.trigger().toString()))
    conf = _try(lambda: execution.sparkSessionForStream().sessionState().conf())
    idle = _try(conf.streamingNoDataProgressEventInterval) if conf is not None else None
    sink = _try(lambda: execution.sink().toString())
    root = _try(lambda: str(execution.resolvedCheckpointRoot()))
    name = _try(execution.name)
    return RunDetails(
        query_id=query_id,
        run_id=run_id,
        name=clean(name) if name else None,
        app_id=context.applicationId,
        spark_version=_try(lambda: str(context.version)),
        checkpoint=mask(root) if root else None,
        trigger=trigger,
        trigger_seconds=seconds,
        idle_seconds=None if idle is None else idle / 1000.0,
        output_mode=_try(lambda: str(execution.outputMode().toString())),
        sink=sink_kind(sink) if sink else None,
        state_provider=_provider(_try(conf.stateStoreProviderClass)) if conf is not None else None,
    )


def _trigger(text: str | None) -> tuple[str, float | None]:
    """Kind and interval of `ProcessingTimeTrigger(5000)`; an interval only where it is periodic."""
    found = re.match(r"(\w+?)\$?(?:\((\d+)\))?(?:@\w+)?$", text or "")
    kind = _TRIGGERS.get(found[1], "unknown") if found else "unknown"
    periodic = kind in {"processing_time", "real_time"} and found is not None and found[2]
    return kind, float(found[2]) / 1000.0 if periodic and found else None


def _provider(class_name: str | None) -> str | None:
    """Short name of a state store provider: rocksdb, hdfs, or the class."""
    if not class_name:
        return None
    simple = class_name.rpartition(".")[2]
    known = {"RocksDBStateStoreProvider": "rocksdb", "HDFSBackedStateStoreProvider": "hdfs"}
    return known.get(simple, clean(simple))


def phase_of(message: str) -> str:
    """What a query is at, from the message of its status, which may hold paths and stack traces."""
    return next((phase for words, phase in _PHASES if message.startswith(words)), "other")


def _batch_of(execution: Any) -> tuple[int | None, float | None]:
    """Number of the batch that runs or runs next, and when its trigger began (Spark 4.x)."""
    try:
        running = execution.getLatestExecutionContext()
        began = running.currentTriggerStartTimestamp()
        number = running.batchId()
    except Exception:  # noqa: BLE001 - Spark 3.5, or no batch yet
        return _try(lambda: _natural(execution.currentBatchId())), None
    return _natural(number), began / 1000.0 if began > 0 else None


def _natural(number: int) -> int | None:
    return number if number >= 0 else None


def _failure(execution: Any) -> tuple[str | None, str | None]:
    """What a run failed with, and Spark's error class where the exception has one.

    That of a failed foreachBatch is told by the Terminated event alone: Spark unwraps the exception.
    """
    exception = execution.exception()
    if not exception.isDefined():
        return None, None
    cause = exception.get().cause()
    given = _try(cause.getCondition) or _try(cause.getErrorClass)  # before 4.0
    return mask(cause.toString()), given


class BatchJobs:
    """The jobs of one batch. A batch may have many; each look asks only for those that moved."""

    def __init__(self, batch_id: int | None, began: float) -> None:
        self.batch_id = batch_id
        self._began = began  # when its trigger did, or a little earlier
        self._ended: dict[int, tuple[int, int]] = {}  # job → tasks completed, failed
        self._open: dict[int, tuple[int, int, int]] = {}  # job → running, completed, failed

    def look(self, run_id: str) -> None:
        """Ask Spark, which puts the run into the job's group and the batch into its description.

        The user's code may describe its jobs as it likes: those of the group are the batch's if they
        were submitted since its trigger began.
        """
        context = _context()
        ids = context._jsc.sc().statusTracker().getJobIdsForGroup(run_id)  # noqa: SLF001
        text = _jvm().java.util.Arrays.toString(ids).strip("[]")
        newest = sorted((int(n) for n in text.split(",") if n.strip()), reverse=True)
        store = context._jsc.sc().statusStore()  # noqa: SLF001
        self._open.clear()
        for number in newest[:_RECENT_JOBS]:
            if number in self._ended:
                continue
            job = store.job(number)
            if not self._owns(job):
                break
            counts = job.numActiveTasks(), job.numCompletedTasks(), job.numFailedTasks()
            if str(job.status().toString()) == "RUNNING":
                self._open[number] = counts
            else:
                self._ended[number] = counts[1:]

    def _owns(self, job: Any) -> bool:
        description = job.description()
        words = _BATCH.search(str(description.get())) if description.isDefined() else None
        if words is not None and self.batch_id is not None:
            return int(words[1]) == self.batch_id
        submitted = job.submissionTime()
        return not submitted.isDefined() or submitted.get().getTime() / 1000.0 >= self._began

    def tasks(self) -> Tasks:
        """The sums."""
        parts = [*self._open.values(), *((0, *ended) for ended in self._ended.values())]
        running, completed, failed = (sum(part[i] for part in parts) for i in range(3))
        return Tasks(running=running, completed=completed, failed=failed)
