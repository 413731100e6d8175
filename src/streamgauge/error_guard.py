"""Failures of our own: counted, logged once a minute, and never the query's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from structlog.typing import FilteringBoundLogger

from streamgauge.exporters.logs import Throttle
from streamgauge.model.stats import Stats

from .masking import mask


class Guarded:
    """Something whose parts may fail. All methods are safe on any thread, and none raises."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self.logger = logger
        self.stats = Stats()
        self._throttle = Throttle()

    def _failed(self, part: str, error: BaseException) -> None:
        self.stats.count("errors", part)
        self.complain(part, error)

    def complain(self, part: str, error: BaseException) -> None:
        """Log a failure of ours, masked for loggers of others, once a minute a part. Never raises."""
        try:
            held = self._throttle.ask(part)
            if held is not None:
                self.logger.error(
                    "a part of the agent failed; the query is not affected",
                    part=part,
                    error=mask(f"{type(error).__name__}: {error}"),
                    held_back=held,
                )
        except Exception:  # noqa: BLE001 - a broken log is not worth a word, there is nowhere to say it
            self.stats.count("errors", "logs")

    def _try(self, part: str, work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the query must not notice
            self._failed(part, error)
