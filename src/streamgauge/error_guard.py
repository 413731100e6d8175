"""Errors of our own: counted, logged once a minute per part, and never the query's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamgauge.listener.driver import DriverUnreachable
from streamgauge.model.stats import Stats

from .masking import mask
from .throttle import Throttle

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_FAILED = "a part of the agent failed; the query is not affected"
_UNREACHABLE = "the agent can't reach Spark; whether its queries run is unknown"


class ErrorGuard:
    """What every part of the agent reports its errors to. Safe on any thread; nothing here raises."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self.logger = logger
        self.stats = Stats()
        self._throttle = Throttle()

    def run(self, part: str, work: Callable[[], Any]) -> None:
        """Do the work; an error is counted and logged under the part's name."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the query must not notice
            self.count_error(part, error)

    def count_error(self, part: str, error: BaseException) -> None:
        """Count an error of a part, and log it."""
        self.stats.count("errors", part)
        self.report_error(part, error)

    def report_error(self, part: str, error: BaseException) -> None:
        """Log an error that is counted elsewhere, masked, once a minute per part."""
        words = _UNREACHABLE if isinstance(error, DriverUnreachable) else _FAILED
        self.log_once_a_minute(
            part if words is _FAILED else "unreachable",
            lambda held: self.logger.error(
                words,
                part=part,
                error=mask(f"{type(error).__name__}: {error}"),
                held_back=held,
            ),
        )

    def log_once_a_minute(self, key: str, write: Callable[[int], object]) -> None:
        """Log unless that was done for this key within the last minute; `write` gets the number held back."""
        try:
            held = self._throttle.ask(key)
            if held is not None:
                write(held)
        except Exception:  # noqa: BLE001 - a broken log is not worth a word, there is nowhere to say it
            self.stats.count("errors", "logs")
