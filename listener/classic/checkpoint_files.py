"""Checkpoints and the backlog of file-like sources, read through Spark's own file system.

That file system has the credentials. Nothing is ever written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from streamgauge.model.observations import CheckpointNames
from streamgauge.model.query import Query
from streamgauge.model.sources import find_reader, parse
from streamgauge.model.sources.waiting import Place, Waiting

from .executions import Executions
from .hadoop import HadoopFiles
from .jvm import attempt, read_numbers, require_jvm


class ClassicCheckpointFiles:
    """Reads for live queries. One thread at a time, which need not be the watchdog's."""

    def __init__(self, executions: Executions, clock: Callable[[], float]) -> None:
        self._executions = executions
        self._clock = clock
        self._wide: set[str] = set()  # folders with too many files to be listed again

    def read_names(self, query: Query, *, with_state_size: bool) -> CheckpointNames | None:
        """The batches on disk of one live query, listed by Spark itself; and the state's size.

        None when the run is not there. Raises what Spark's file system raises.
        """
        execution = self._executions.find(query.query_id, query.run_id)
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
            last_commit_at=attempt(lambda: _written_at(execution, f"commits/{commits[-1]}")),
            state_bytes=_size(execution, "state") if with_state_size else None,
        )

    def read_backlog(self, query: Query) -> dict[str, Waiting]:
        """Data past the last batch of this run, by label, for sources that do not report it themselves.

        Raises what Spark's file system raises.
        """
        execution = self._executions.find(query.query_id, query.run_id)
        if execution is None or query.last is None or not query.has_batch:
            return {}
        found = {}
        for number, source in enumerate(query.last.sources):
            read = find_reader(source.description).waiting
            if read is None or source.end is None:
                continue
            conf = execution.sparkSession().sessionState().newHadoopConf()
            files = HadoopFiles(require_jvm(), conf, self._wide)
            backlog = None
            with suppress(msgspec.MsgspecError):  # a log of another form
                backlog = read(files, _place_of(execution, number), parse(source.end))
            if backlog is not None:
                found[source.label] = backlog
        return found


def _place_of(execution: Any, number: int) -> Place:
    """Where a source of a query reads, by its number."""
    described = execution.lastProgress().sources()[number].description()  # with secrets
    return Place(
        path=described.partition("[")[2].removesuffix("]"),
        log=f"{execution.resolvedCheckpointRoot()}/sources/{number}",
        options=attempt(lambda: _reader_options(execution)),
    )


def _reader_options(execution: Any) -> str | None:
    """The options of a query's readers of files and Delta tables, as one text."""
    leaves = execution.analyzedPlan().collectLeaves()
    plans = [leaves.apply(number) for number in range(leaves.size())]
    readers = [p for p in plans if p.getClass().getSimpleName() == "StreamingRelation"]
    options = [reader.dataSource().options().toString() for reader in readers]
    return " ".join(options).lower() if options else None


def _batches(log: Any) -> tuple[int, ...]:
    """The ids of the files in a metadata log: one listing, one call."""
    return tuple(sorted(read_numbers(log.listBatchesOnDisk())))


def _written_at(execution: Any, name: str) -> float:
    files, path = _locate(execution, name)
    return float(files.getFileStatus(path).getModificationTime()) / 1000.0


def _size(execution: Any, name: str) -> float | None:
    """Bytes of all files below a directory, in one call; None if it is not there."""
    files, path = _locate(execution, name)
    return float(files.getContentSummary(path).getLength()) if files.exists(path) else None


def _locate(execution: Any, name: str) -> tuple[Any, Any]:
    """Spark's own file system, which has the credentials, and a path in the checkpoint."""
    path = require_jvm().org.apache.hadoop.fs.Path(f"{execution.resolvedCheckpointRoot()}/{name}")
    return path.getFileSystem(execution.sparkSession().sessionState().newHadoopConf()), path
