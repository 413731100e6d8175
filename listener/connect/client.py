"""One Connect session as its client can see it, asked on threads that may never come back.

A call on a dead server blocks for minutes, so a probe with a deadline of its own goes first, and every
public call after it is made on a disposable daemon thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from streamgauge.masking import clean
from streamgauge.model.observations import UnseenCause
from streamgauge.steady import steady_time

from .background import BackgroundCall
from .blindness import (
    LISTENER_CLEARED,
    LISTENER_REMOVED,
    PROBE_SECONDS,
    SESSION_DEAD,
    Blindness,
    classify,
    no_answer,
)
from .subscription import Subscription

_OVERDUE_SECONDS = 12.0  # a round that takes longer counts as no answer
_FAILURES = 2  # so many in a row are no accident
_FAILURES_KEPT = 10


class Running(Struct, frozen=True, kw_only=True):
    """A query that the server says is active."""

    query_id: str
    run_id: str
    name: str | None
    status: Mapping[str, Any] | None


class Answer(Struct, frozen=True, kw_only=True):
    """What one round of questions found."""

    at: float
    version: str | None
    app_name: str | None
    app_id: str | None
    running: Mapping[str, Running]  # by run id


class Client:
    """A session, and our listener on it.

    The watchdog's thread calls the methods that take seconds, and none of them takes longer than that;
    what may not return is done in the background. Properties are safe on any thread.
    """

    def __init__(
        self, session: Any, listener: Any, clock: Callable[[], float] = steady_time
    ) -> None:
        self.session = session
        self.subscription = Subscription(session, listener)
        self.parting = False  # about to be stopped by the application itself
        self.left = False  # stopped by it
        self.answer: Answer | None = None
        self.failures: list[Blindness] = []  # since the last answer
        self._ask_through: Any = None  # a newer session of the same server
        self._clock = clock
        self._round = BackgroundCall("probe")
        self._round_began = 0.0
        self._adding = BackgroundCall("add")
        self._leaving = BackgroundCall("leave")
        self._app: tuple[str | None, str | None] | None = None

    # ---- what the application does with its session (any thread) -----------------------------

    def rejoin(self, listener: Any) -> None:
        """Our listener was added to the session again."""
        self.left = self.parting = False
        self.subscription.renew(listener)

    def part(self) -> None:
        """The application is about to stop it."""
        self.parting = True

    def note_stopped(self) -> None:
        """The application has stopped it."""
        self.left = True

    # ---- asking ----------------------------------------------------------------------------

    def ask(self, seconds: float) -> None:
        """Begin a round unless one is under way, and give it so many seconds."""
        if not self._round.running:
            self._round_began = self._clock()
        self._round.run(self._ask, seconds)
        waited = self._clock() - self._round_began
        if self._round.running and waited > _OVERDUE_SECONDS:
            self._fail(no_answer(waited))
            self._round.abandon()

    def _ask(self) -> None:
        began = self._round_began
        try:
            version = self._probe()
            app_name, app_id = self._app = self._app or self._read_app()
            running = {query.run_id: query for query in self._read_queries()}
        except Exception as error:  # noqa: BLE001 - gRPC's, PySpark's; each says that we can't see
            if began == self._round_began:
                self._fail(classify(error, stopped=self.session.is_stopped))
            return
        self.answer = Answer(
            at=self._clock(), version=version, app_name=app_name, app_id=app_id, running=running
        )
        self.failures = []

    def _fail(self, failure: Blindness) -> None:
        self.failures = [*self.failures, failure][-_FAILURES_KEPT:]

    def _probe(self) -> str | None:
        """The server's version; one call with a deadline and without Connect's own retries.

        There is no public way. Where this Spark has another private one its public call is made,
        and only `_OVERDUE_SECONDS` bounds it.
        """
        try:
            request = self.session.client._analyze_plan_request_with_metadata()  # noqa: SLF001
            request.spark_version.SetInParent()
            via = (self._ask_through or self.session).client
            ask, metadata = via._stub.AnalyzePlan, via._builder.metadata()  # noqa: SLF001
        except AttributeError:
            return str(self.session.version)
        reply = ask(request, metadata=metadata, timeout=PROBE_SECONDS)
        return reply.spark_version.version or None

    def _read_app(self) -> tuple[str | None, str | None]:
        conf = self.session.conf
        return _text(lambda: conf.get("spark.app.name")), _text(lambda: conf.get("spark.app.id"))

    def _read_queries(self) -> list[Running]:
        return [
            Running(
                query_id=str(query.id),
                run_id=str(query.runId),
                name=query.name,
                status=_status(query),
            )
            for query in self.session.streams.active
        ]

    def ask_through(self, newer: Any) -> None:
        """Ask through a newer session's connection, if it has the same server.

        After an outage the old connection may wait for minutes before it tries again.
        """
        endpoint = endpoint_of(newer)
        if endpoint is not None and endpoint == endpoint_of(self.session):
            self._ask_through = newer

    # ---- judging ---------------------------------------------------------------------------

    def blindness(self) -> Blindness | None:
        """What keeps us from seeing this session; None when nothing does."""
        if self.session.is_stopped:
            return SESSION_DEAD
        failures = self.failures
        if failures:
            last = failures[-1]
            if last.cause == UnseenCause.SESSION_DEAD or len(failures) >= _FAILURES:
                return last
        if self.subscription.removed:
            return LISTENER_REMOVED
        if self.answers and not self.listens():
            return LISTENER_CLEARED
        return None

    @property
    def dead(self) -> bool:
        """Whether the session is over: the server has let go of it, or the client has."""
        failures = self.failures
        reported = bool(failures) and failures[-1].cause == UnseenCause.SESSION_DEAD
        return reported or bool(self.session.is_stopped)

    @property
    def answers(self) -> bool:
        """Whether the server answered when it was last asked."""
        return not self.session.is_stopped and self.answer is not None and not self.failures

    @property
    def unreachable(self) -> bool:
        """Whether there is no point in calling this server: it is gone, or silent more than once."""
        failures = self.failures
        gone = bool(failures) and failures[-1].cause == UnseenCause.SERVER_GONE
        return gone or self.dead or len(failures) >= _FAILURES

    # ---- listening -------------------------------------------------------------------------

    def listens(self) -> bool:
        """Whether our listener is on the client's bus, as far as can be seen."""
        return self.subscription.listens()

    def listen(self, seconds: float) -> None:
        """Put our listener on the session (again), giving it so many seconds."""
        self._adding.run(self.subscription.add, seconds)

    def leave(self, seconds: float) -> None:
        """Take our listener off, after it was given what is on the way; waits so long at most."""
        self.ask(seconds / 3)
        if self.answers and self.subscription.known and self.listens():
            self._leaving.run(self.subscription.take_off, seconds * 2 / 3)


def endpoint_of(session: Any) -> str | None:
    """Host and port of a session's server; None where this Spark does not say."""
    try:
        return str(session.client._builder.endpoint)  # noqa: SLF001 - there is no public way
    except AttributeError:
        return None


def _status(query: Any) -> Mapping[str, Any] | None:
    try:
        status: Mapping[str, Any] = query.status
    except Exception:  # noqa: BLE001 - it has just ended
        return None
    return status


def _text(read: Callable[[], Any]) -> str | None:
    try:
        return clean(str(read()))
    except Exception:  # noqa: BLE001 - a server that does not say
        return None
