"""The tasks of the batch that runs, from the jobs that Spark runs for it."""

from __future__ import annotations

import re
from typing import Any

from streamgauge.model.observations import Tasks

from .jvm import read_numbers, require_context

_RECENT_JOBS = 64
_BATCH = re.compile(r"\bbatch = (\d+)")


class BatchJobs:
    """The jobs of one batch. A batch may have many; each poll asks only for those that changed.

    One thread at a time.
    """

    def __init__(self, batch_id: int | None, began: float) -> None:
        self.batch_id = batch_id
        self._began = began  # when its trigger did, or a little earlier
        self._open: dict[int, tuple[int, int, int]] = {}  # job → tasks running, completed, failed
        self._ended: set[int] = set()  # jobs in the sums below, of those that Spark still lists
        self._completed = self._failed = self._jobs = self._failed_jobs = 0

    def poll(self, run_id: str) -> None:
        """Ask Spark, which puts the run into the job's group and the batch into its description.

        The user's code may describe its jobs as it likes: those of the group are the batch's if they
        were submitted since its trigger began. Raises what Py4J raises.
        """
        spark = require_context()._jsc.sc()  # noqa: SLF001
        ids = read_numbers(spark.statusTracker().getJobIdsForGroup(run_id))
        store = spark.statusStore()
        self._open.clear()
        self._ended.intersection_update(ids)
        for number in sorted(ids, reverse=True)[:_RECENT_JOBS]:
            if number in self._ended:
                continue
            job = store.job(number)
            if not self._owns(job):
                break
            counts = job.numActiveTasks(), job.numCompletedTasks(), job.numFailedTasks()
            status = str(job.status().toString())
            if status == "RUNNING":
                self._open[number] = counts
            else:
                self._ended.add(number)
                self._jobs += 1
                self._failed_jobs += status == "FAILED"
                self._completed += counts[1]
                self._failed += counts[2]

    def _owns(self, job: Any) -> bool:
        description = job.description()
        words = _BATCH.search(str(description.get())) if description.isDefined() else None
        if words is not None and self.batch_id is not None:
            return int(words[1]) == self.batch_id
        submitted = job.submissionTime()
        return not submitted.isDefined() or submitted.get().getTime() / 1000.0 >= self._began

    def tasks(self) -> Tasks:
        """The sums."""
        running, completed, failed = (
            sum(part[i] for part in self._open.values()) for i in range(3)
        )
        return Tasks(
            running=running,
            completed=completed + self._completed,
            failed=failed + self._failed,
            jobs=len(self._open) + self._jobs,
            failed_jobs=self._failed_jobs,
        )
