"""Polls the names in each query's `offsets/` and `commits/`, and the backlog of its sources.

It reads names, if asked for the size of `state/`, and of a source's own log also contents, within
bounds. Nothing is ever written. It has a thread of its own: an object store that hangs holds up nobody
else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from streamgauge.listener.driver import ApplicationStopped, CheckpointFiles
from streamgauge.listener.inbox import OBSERVATION, Inbox, Item
from streamgauge.listener.poller import Pace, PollLoop
from streamgauge.model.observations import CheckpointNames, SourceBacklog
from streamgauge.model.query import Query
from streamgauge.steady import steady_time

from .jvm import explain

_LONGEST_PAUSE_SECONDS = 900.0
_INTERVALS_KEPT = 3  # for so long a backlog is shown without a new observation
_SIZE_EVERY_POLLS = 10  # sizes change slowly, and each file of `state/` is listed for them


@dataclass
class _Past:
    """What earlier polls know of a run."""

    polls: int = 0
    state_bytes: float | None = None


class CheckpointPoller:
    """Polls every live query each interval; half as often after each round that failed."""

    def __init__(
        self,
        files: CheckpointFiles,
        inbox: Inbox,
        queries: Callable[[], Mapping[str, Query]],
        *,
        interval_seconds: float,
        with_state_size: bool,
        report_error: Callable[[BaseException], None],
    ) -> None:
        self._files = files
        self._inbox = inbox
        self._queries = queries
        self._interval_seconds = interval_seconds
        self._with_state_size = with_state_size
        self._report_error = report_error
        self._past: dict[str, _Past] = {}  # by run id
        self._loop = PollLoop(
            "streamgauge-checkpoints",
            self.poll,
            pace=Pace(
                interval_seconds=interval_seconds,
                first_pause_seconds=interval_seconds,
                longest_pause_seconds=_LONGEST_PAUSE_SECONDS,
            ),
            report_error=report_error,
        )

    def start(self) -> None:
        """Begin to poll; raises RuntimeError when no thread can be started."""
        self._loop.start()

    def close(self) -> None:
        """Stop polling; never waits."""
        self._loop.close()

    def poll(self) -> bool:
        """One round over the live queries; whether all that was asked could be read.

        A slow store gets no more time than one interval: queries that were left out come first in the
        next round. For the poller's thread.
        """
        succeeded = True
        live = [query for query in self._queries().values() if query.live]
        self._past = {query.run_id: self._past.get(query.run_id, _Past()) for query in live}
        deadline = time.monotonic() + self._interval_seconds
        for query in sorted(live, key=lambda query: self._past[query.run_id].polls):
            if self._loop.closed or time.monotonic() > deadline:
                break
            for read in (self._read_names, self._read_backlog):
                try:
                    self._put(read(query))
                except ApplicationStopped:
                    return succeeded
                except Exception as error:  # noqa: BLE001 - a store that fails is counted, and asked again
                    succeeded = False
                    self._report_error(explain(error))
        return succeeded

    def _put(self, observed: CheckpointNames | SourceBacklog | None) -> None:
        if observed is not None:
            self._inbox.put(Item(OBSERVATION, observed, steady_time()))

    def _read_names(self, query: Query) -> CheckpointNames | None:
        """The names each time; the size each tenth time, and kept in between."""
        past = self._past[query.run_id]
        due = self._with_state_size and past.polls % _SIZE_EVERY_POLLS == 0
        past.polls += 1
        names = self._files.read_names(query, with_state_size=due)
        if names is None or not self._with_state_size:
            return names
        if due:
            past.state_bytes = names.state_bytes
        return msgspec.structs.replace(names, state_bytes=past.state_bytes)

    def _read_backlog(self, query: Query) -> SourceBacklog | None:
        """The backlog; None for a query whose sources can't be asked."""
        backlog = self._files.read_backlog(query)
        if not backlog and not any(lag.waiting for lag in query.lags.values()):
            return None
        until = steady_time() + _INTERVALS_KEPT * self._interval_seconds
        return SourceBacklog(
            query_id=query.query_id, run_id=query.run_id, until=until, waiting=backlog
        )
