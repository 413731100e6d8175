"""Structured logs: one line for what a person wants to know, JSON where nobody is watching.

The logger is our own; the user's logging and structlog configuration are neither read nor changed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any, TextIO

from streamgauge.masking import mask, mask_all
from streamgauge.model.application import Application
from streamgauge.model.causes import shorten
from streamgauge.model.events import Progress, Started, Terminated
from streamgauge.model.observations import Gone, QueryStatus
from streamgauge.model.query import End, Query
from streamgauge.model.update import Update

from . import Exporter

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "off": 50}
_BAD = frozenset({"stalled", "failed", "blind", "restarting", "falling_behind"})
_EVERYDAY = frozenset({"running", "idle", "starting"})
_RAW = frozenset({"stack", "exception"})  # what a console prints as it is, on lines of its own
_LINE_BEGIN = re.compile(r"^(?!\t| {4}|\n|\Z)", re.MULTILINE)
_MOST_STACK_CHARACTERS = 4000
_BREAKS = dict.fromkeys(b"\t\n", "\N{REPLACEMENT CHARACTER}")


def make_logger(level: str = "info", stream: TextIO | None = None) -> FilteringBoundLogger:
    """Build a logger that writes to `stream` (standard error): lines for people on a terminal and in a notebook, else JSON."""
    import structlog  # noqa: PLC0415 - takes as long as all else that a driver loads

    stream = stream or sys.stderr
    on_terminal = hasattr(stream, "isatty") and stream.isatty()
    render: Any = structlog.processors.JSONRenderer()
    if on_terminal or _is_notebook(stream):
        render = structlog.dev.ConsoleRenderer(colors=on_terminal, pad_event_to=0)
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


def _is_notebook(stream: TextIO) -> bool:
    """Whether a notebook shows what is written there: no terminal, and a person reads it all the same."""
    return type(stream).__module__.partition(".")[0] == "ipykernel"


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


class LogExporter(Exporter):
    """Writes events and verdicts to a logger. It has no state: any thread may call `export`."""

    name = "logs"

    def __init__(
        self, logger: FilteringBoundLogger, *, application: Callable[[], Application]
    ) -> None:
        self._logger = logger
        self._application = application

    def export(self, update: Update) -> None:
        """Log a start, an end, a batch; and a verdict when its state is new."""
        if update.forgotten:
            self._log_forgotten(update)
            return
        self._log_cause(update)
        if update.changes_state:
            self._log_verdict(update)

    def _log_cause(self, update: Update) -> None:
        cause, query = update.cause, update.query
        if isinstance(cause, Started):
            _log_start(self._bind(update, cause.run_id), query)
        elif isinstance(cause, Progress):
            _log_batch(self._bind(update, cause.run_id), cause)
        elif isinstance(cause, Terminated):
            nothing = query.did_nothing_new and query.run_id == cause.run_id
            more = {"processed": "nothing new"} if nothing else _cause_of(query, cause.run_id)
            _log_end(self._bind(update, cause.run_id), cause, **more)
        elif isinstance(cause, Gone | QueryStatus) and query.end is not None:
            _log_lost(self._bind(update, cause.run_id), query.end)

    def _log_verdict(self, update: Update) -> None:
        """The everyday changes of a healthy query are a matter for debug."""
        before, after = update.previous, update.verdict
        states = {before.state if before else "starting", after.state}
        logger = self._bind(update, update.query.run_id)
        log = logger.warning if after.state in _BAD else logger.info
        if states <= _EVERYDAY:
            log = logger.debug
        log(
            "verdict",
            before=before.state if before else None,
            state=after.state,
            reason=after.reason,
        )

    def _log_forgotten(self, update: Update) -> None:
        """One that failed goes only when too many newer ones have; the page no longer shows it."""
        end = update.query.end
        if end is not None and end.outcome == "failed":
            self._bind(update, update.query.run_id).warning(
                "query failed long ago and is no longer shown; too many have failed since",
                hint="give queries a name; one that starts again takes the place of the old one",
            )

    def _bind(self, update: Update, run_id: str) -> FilteringBoundLogger:
        """A logger that names the run, and its trace where there is one."""
        trace = update.trace if _run_of(update) == run_id else None
        ids = {"trace_id": trace.trace_id, "span_id": trace.span_id} if trace else {}
        return self._logger.bind(
            app=self._application().known_name, query=update.query.label, run_id=run_id, **ids
        )


def _run_of(update: Update) -> str:
    """The run that an update's trace is of: an event may come late, when the next run has begun."""
    cause = update.cause
    return cause.run_id if isinstance(cause, Progress | Terminated) else update.query.run_id


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


def _cause_of(query: Query, run_id: str) -> dict[str, str]:
    """What lies below the failure of a run, where that is something else than the failure itself."""
    end = query.end if query.run_id == run_id else query.last_end
    if end is None or not end.cause_class:
        return {}
    return {"cause_class": end.cause_class, "cause": end.message}


def _log_end(logger: Any, end: Terminated | End, **more: str) -> None:
    if end.exception is None:
        logger.info("query stopped", **more)
        return
    first, _, rest = end.exception.partition("\n")
    # Here too: a logger of the user's may be a console. The causes come last.
    stack = _indent(shorten(rest, _MOST_STACK_CHARACTERS))
    logger.error("query failed", error_class=end.error_class, error=first, **more, stack=stack)


def _log_lost(logger: Any, end: End) -> None:
    """A run that ended without a Terminated event."""
    logger = logger.bind(why=end.why)
    if end.exception is None and end.clean:
        logger.info("query stopped")
    elif end.exception is None:
        logger.warning("query ended, and how is not known")
    else:
        more = {"cause_class": end.cause_class, "cause": end.message} if end.cause_class else {}
        _log_end(logger, end, **more)


def _log_batch(logger: Any, event: Progress) -> None:
    logger.debug(
        "batch",
        batch_id=event.batch_id,
        seconds=event.seconds,
        input_rows=event.input_rows,
        replayed=event.replayed,
        phases=dict(event.phases),
    )
