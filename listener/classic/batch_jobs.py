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
        self._ended: dict[int, tuple[int, int]] = {}  # job → tasks completed, failed
        self._open: dict[int, tuple[int, int, int]] = {}  # job → running, completed, failed

    def poll(self, run_id: str) -> None:
        """Ask Spark, which puts the run into the job's group and the batch into its description.

        The user's code may describe its jobs as it likes: those of the group are the batch's if they
        were submitted since its trigger began. Raises what Py4J raises.
        """
        spark = require_context()._jsc.sc()  # noqa: SLF001
        ids = read_numbers(spark.statusTracker().getJobIdsForGroup(run_id))
        store = spark.statusStore()
        self._open.clear()
        for number in sorted(ids, reverse=True)[:_RECENT_JOBS]:
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
