"""Sees applications through to their end: a classic context's `stop()`, a Connect client's sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamgauge.listener.classic.application import hook_stop
from streamgauge.listener.classic.driver import ClassicDriver
from streamgauge.listener.connect.driver import ConnectDriver
from streamgauge.listener.watchdog import Watchdog


class Following:
    """What an agent does when an application begins or ends. Any thread; nothing here raises."""

    def __init__(
        self,
        watchdog: Watchdog,
        *,
        flush: Callable[[], object],
        breaking: Callable[[], None],
        lose_all: Callable[[str], None],
        name: Callable[[str | None], None],
        made: Callable[[], None],
        attempt: Callable[[str, Callable[[], Any]], None],
    ) -> None:
        self._watchdog = watchdog
        self._flush = flush
        self._breaking = breaking  # told when what lives is about to be broken by a stop
        self._lose_all = lose_all
        self._name = name
        self._made = made  # told of each new Connect session
        self._attempt = attempt  # the guard

    def watch(self, context: Any, stopped: Callable[[], None]) -> None:
        """See a context through its `stop()`: what is on the bus then is not lost."""

        def before() -> None:
            driver = self._watchdog.driver
            if isinstance(driver, ClassicDriver):
                driver.part(context)

        def after() -> None:
            stopped()
            self._lose_all("the Spark application was stopped")

        self._hook(context, before, after, self._breaking)

    def follow(self, session: Any, listener: Any, *, everywhere: bool = False) -> None:
        """Look at a Connect session from now on, and at the one that takes its place."""
        driver = self._watchdog.driver
        if not isinstance(driver, ConnectDriver):
            driver = self._watchdog.driver = ConnectDriver(self._watchdog.lose_all, self._made)
        driver.everywhere = driver.everywhere or everywhere
        answer = driver.add(session, listener).answer
        if answer is not None:
            self._name(answer.app_name)
        self._hook(
            session, lambda: driver.part(session), lambda: self._session_stopped(driver, session)
        )

    def skip_farewells(self) -> None:
        """At exit: have no client wait for a server that does not answer."""
        driver = self._watchdog.driver
        if isinstance(driver, ConnectDriver):
            self._attempt("exit", driver.skip_farewells)

    def close(self) -> None:
        """The agent has ended."""
        driver = self._watchdog.driver
        if isinstance(driver, ConnectDriver):
            self._attempt("exit", driver.close)

    def _session_stopped(self, driver: ConnectDriver, session: Any) -> None:
        if not driver.leave(session):
            self._lose_all("the application stopped its Connect session")

    def _hook(
        self,
        stoppable: Any,
        before: Callable[[], None],
        after: Callable[[], None],
        flushed: Callable[[], None] = lambda: None,
    ) -> None:
        def flush() -> None:
            before()
            self._flush()
            flushed()

        self._attempt(
            "bridge",
            lambda: hook_stop(
                stoppable,
                lambda: self._attempt("bridge", flush),
                lambda: self._attempt("bridge", after),
            ),
        )
