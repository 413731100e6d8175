"""Structured logs: one line for what a person wants to know, JSON where nobody is watching.

The logger is our own; the user's logging and structlog configuration are neither read nor changed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

from streamgauge.masking import mask, mask_all
from streamgauge.model.events import Event, Progress, Started, Terminated
from streamgauge.model.query import End, Query
from streamgauge.model.verdict import Verdict

from . import Exporter
from .traces.ids import Ids

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "off": 50}
_BAD = frozenset({"stalled", "failed", "blind", "restarting", "falling_behind"})
_EVERYDAY = frozenset({"running", "idle", "starting"})
_RAW = frozenset({"stack", "exception"})  # what a console prints as it is, on lines of its own
_LINE_BEGIN = re.compile(r"^(?!\t| {4}|\n|\Z)", re.MULTILINE)
_BREAKS = dict.fromkeys(b"\t\n", "\N{REPLACEMENT CHARACTER}")


def make_logger(level: str = "info", stream: TextIO | None = None) -> FilteringBoundLogger:
    """Build a logger that writes to `stream` (standard error): for eyes on a terminal, else JSON."""
    stream = stream or sys.stderr
    on_terminal = hasattr(stream, "isatty") and stream.isatty()
    render: Any = (
        structlog.dev.ConsoleRenderer(colors=True)
        if on_terminal
        else structlog.processors.JSONRenderer()
    )
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _mask,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        context_class=dict,
        cache_logger_on_first_use=False,
    ).bind(logger="streamgauge")
    return logger


def _mask(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Last but one in the chain: nothing secret and nothing that forges a line gets past here."""
    return {key: _mask_field(key, value) for key, value in event.items()}


def _mask_field(key: str, value: Any) -> Any:
    if isinstance(value, str) and key in _RAW:
        return _indent(mask(value))
    if isinstance(value, str) and (key == "event" or "\n" not in value):
        return _mask_line(value)
    return mask_all(value)


def _mask_line(text: str) -> str:
    """One line stays one line, also when a secret in it was encoded; no shorter than `mask` makes it."""
    return mask(text).translate(_BREAKS)


def _indent(text: str) -> str:
    """No line of it begins where a log line does."""
    return _LINE_BEGIN.sub("    ", text)


class Throttle:
    """Lets a complaint through once a minute, with the number of those that were held back."""

    def __init__(self, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: dict[str, tuple[float, int]] = {}

    def ask(self, what: str) -> int | None:
        """Return how many were held back since the last one, or None to hold this one back."""
        now = self._clock()
        last, held = self._last.get(what, (float("-inf"), 0))
        if now - last < self._seconds:
            self._last[what] = (last, held + 1)
            return None
        self._last[what] = (now, 0)
        return held


class LogExporter(Exporter):
    """Writes events and verdicts to a logger."""

    name = "logs"

    def __init__(self, logger: FilteringBoundLogger, app: str = "") -> None:
        self._logger = logger
        self.app = app
        self.trace_of: Callable[[Event | Query], Ids | None] = lambda _: None
        self._lost: set[str] = set()  # runs whose end was told

    def handle(self, event: Event, query: Query) -> None:
        """A start, an end, a batch."""
        logger = self._bind(event, query)
        if isinstance(event, Started):
            _log_start(logger, query)
        elif isinstance(event, Terminated):
            nothing = query.did_nothing_new and query.run_id == event.run_id
            _log_end(logger, event, **({"processed": "nothing new"} if nothing else {}))
        elif isinstance(event, Progress):
            _log_batch(logger, event)

    def observe(self, query: Query) -> None:
        """A run that ended without a word."""
        if query.end and query.end.why and query.run_id not in self._lost:
            self._lost = {query.run_id, *list(self._lost)[:99]}
            logger = self._bind(query, query).bind(why=query.end.why)
            if query.end.exception is None:
                logger.warning("query ended, and how is not known")
            else:
                _log_end(logger, query.end)

    def change(self, query: Query, before: Verdict | None, after: Verdict) -> None:
        """A new verdict; the everyday turns of a healthy query are a matter for debug."""
        states = {before.state if before else "starting", after.state}
        logger = self._bind(query, query)
        log = logger.warning if after.state in _BAD else logger.info
        if states <= _EVERYDAY:
            log = logger.debug
        log(
            "verdict",
            before=before.state if before else None,
            state=after.state,
            reason=after.reason,
        )

    def forget(self, query: Query) -> None:
        """One that failed goes only when too many newer ones have; the page no longer shows it."""
        if query.end and query.end.outcome == "failed":
            self._bind(query, query).warning(
                "query failed long ago and is no longer shown; too many have failed since",
                hint="give queries a name; one that starts again takes the place of the old one",
            )

    def _bind(self, subject: Event | Query, query: Query) -> FilteringBoundLogger:
        """A logger that names the run, and its trace where there is one."""
        ids = self.trace_of(subject)
        return self._logger.bind(
            app=self.app,
            query=query.label,
            run_id=subject.run_id,
            **(ids._asdict() if ids else {}),
        )


def _log_start(logger: Any, query: Query) -> None:
    restart = len(query.starts) > 1 or query.last_end is not None
    more: dict[str, Any] = {}
    if query.last_end:
        more["last_outcome"] = query.last_end.outcome
    if query.replaced_query_id:
        more["replaced_query_id"] = query.replaced_query_id
    if query.replaced_query_id and query.last_end is None:
        hint = "its checkpoint was deleted, moved, or has a random path"
        logger.warning(
            "query has a new id under an old name", query_id=query.query_id, hint=hint, **more
        )
    words = "query restarted" if restart else "query started"
    logger.info(words, query_id=query.query_id, starts_last_hour=len(query.starts), **more)


def _log_end(logger: Any, end: Terminated | End, **more: str) -> None:
    if end.exception is None:
        logger.info("query stopped", **more)
        return
    first, _, rest = end.exception.partition("\n")
    stack = _indent(rest[:4000])  # here too: a logger of the user's may be a console
    logger.error("query failed", error_class=end.error_class, error=first, stack=stack)


def _log_batch(logger: Any, event: Progress) -> None:
    logger.debug(
        "batch",
        batch_id=event.batch_id,
        seconds=event.seconds,
        input_rows=event.input_rows,
        replayed=event.replayed,
        phases=dict(event.phases),
    )
