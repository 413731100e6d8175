"""Waits at the end of the process until Prometheus has fetched the final state, for a bounded time.

What was running at the last scrape and is gone at the next looks like a driver that was killed. One scrape of
the final state tells a planned end from that. Nobody is waited for who did not see a query running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from streamgauge.exporters.http.scrapers import Expected, Scraper, expect
from streamgauge.model.query import Query

from .error_guard import ErrorGuard

if TYPE_CHECKING:
    from streamgauge.exporters.http.server import MetricsServer

AT_EXIT_SECONDS = 35.0
ON_SIGTERM_SECONDS = 20.0
_HINT = "linger_seconds=0 exits at once"


class LastScrape:
    """Knows who still has to see the final state. Safe on any thread; raises nothing but bugs."""

    def __init__(
        self,
        linger_seconds: float | None,
        *,
        server: Callable[[], MetricsServer | None],
        queries: Callable[[], Mapping[str, Query]],
        guard: ErrorGuard,
    ) -> None:
        """`linger_seconds` is the setting: a fixed time, 0 for never, None for as long as it is worth."""
        self._setting = linger_seconds
        self._server = server
        self._queries = queries
        self._guard = guard

    @property
    def fixed(self) -> bool:
        """Whether the settings name a time: then any scrape of the final state will do."""
        return bool(self._setting)

    def longest(self, limit: float) -> float:
        """How long `wait` may take."""
        return limit if self._setting is None else self._setting

    def wait(self, limit: float) -> bool:
        """Wait, the limit at most, for whoever has to see what ended; whether anybody was waited for."""
        server = self._server()
        if server is None or self._setting == 0:
            return False
        try:
            if self._setting is not None:
                server.scrapers.await_any(self._setting)
                return True
            return self._wait_for_each(server, limit)
        except KeyboardInterrupt:  # somebody is in a hurry
            return True

    def stop_serving(self) -> None:
        """Serve nothing from now on: what comes after must not be scraped by chance."""
        server = self._server()
        if server is not None:
            self._guard.run("server", server.close)

    def _wait_for_each(self, server: MetricsServer, limit: float) -> bool:
        now = time.monotonic()
        found = server.scrapers.find(self._ended())
        expected = {key: due for key, one in found.items() if (due := expect(one, now)) is not None}
        for key, due in list(expected.items()):
            if due.first > limit:
                del expected[key]
                self._say_too_late(found[key], due, limit)
        if not expected:
            return False
        self._say_waiting([found[key] for key in expected], expected, limit)
        missing = server.scrapers.await_each(expected, limit)
        self._say_result(missing, time.monotonic() - now)
        return True

    def _ended(self) -> frozenset[str]:
        """The runs whose end somebody has to know. A batch job that is done is meant to be gone."""
        return frozenset(
            query.run_id
            for query in self._queries().values()
            if query.end is not None and (query.end.outcome == "failed" or not query.by_itself_over)
        )

    def _say_waiting(
        self,
        scrapers: list[Scraper],
        expected: Mapping[tuple[str, str], Expected],
        limit: float,
    ) -> None:
        self._guard.logger.info(
            "waiting until Prometheus has fetched the final state of the queries",
            scrapers=[scraper.name for scraper in scrapers],
            at_most_seconds=round(min(limit, max(due.last for due in expected.values())), 1),
            why="without it a clean end looks like a driver that was killed",
            hint=_HINT,
        )

    def _say_result(self, missing: set[str], seconds: float) -> None:
        if missing:
            self._guard.logger.warning(
                "the final state was not fetched; SparkStreamQueryVanished may fire",
                scrapers=sorted(missing),
                waited_seconds=round(seconds, 1),
            )
        else:
            self._guard.logger.info("the final state was fetched", waited_seconds=round(seconds, 1))

    def _say_too_late(self, scraper: Scraper, due: Expected, limit: float) -> None:
        self._guard.logger.warning(
            "Prometheus comes too late to fetch the final state; SparkStreamQueryVanished may fire",
            scraper=scraper.name,
            next_scrape_in_seconds=round(due.first, 1),
            longest_wait_seconds=limit,
            hint="set linger_seconds to more than its scrape interval",
        )
