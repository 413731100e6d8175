"""The JVM's objects of the runs: found once, and kept for as long as the runs live."""

from __future__ import annotations

from typing import Any

from .jvm import require_jvm


class Executions:
    """Spark's `StreamExecution` objects by run id. Any thread: single steps on a dict."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def find(self, query_id: str, run_id: str) -> Any:
        """The JVM's object of a run, also after its end; None when it is not there.

        Raises `ApplicationStopped`, and what Py4J raises.
        """
        execution = self._known.get(run_id)
        if execution is None:
            execution = _find_active(query_id)
            if execution is None or execution.runId().toString() != run_id:
                return None
            self.keep(run_id, execution)
        return execution

    def keep(self, run_id: str, execution: Any) -> None:
        """Remember a run's object."""
        self._known[run_id] = execution

    def forget(self, run_ids: set[str]) -> None:
        """Drop the objects of all runs but these."""
        for run_id in set(self._known) - run_ids:
            self._known.pop(run_id, None)


def _find_active(query_id: str) -> Any:
    """An active query of any session of the application, by its id."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - pyspark is an extra

    session = SparkSession._instantiatedSession  # noqa: SLF001
    if session is None:
        return None
    uuid = require_jvm().java.util.UUID.fromString(query_id)
    return session._jsparkSession.sharedState().activeStreamingQueries().get(uuid)  # noqa: SLF001
