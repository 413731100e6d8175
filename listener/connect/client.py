"""One Connect session as its client can see it, asked on threads that may never come back.

A call on a dead server blocks for minutes (spark-facts 10), so a probe with a deadline of its own goes first,
and every public call after it is made on a disposable daemon thread. Nothing here waits longer than
it is told to.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from streamgauge.masking import clean

SERVER_GONE = "server_gone"
NETWORK_CUT = "network_cut"
SESSION_DEAD = "session_dead"
LISTENER_CLEARED = "listener_cleared"
LISTENER_REMOVED = "listener_removed"

_DEADLINE = 5.0  # for the server's answer to a probe
_OVERDUE = 12.0  # a round that takes longer counts as no answer
_FAILURES = 2  # so many in a row are no accident
_DEAD_SESSION = ("INVALID_HANDLE.SESSION", "NO_ACTIVE_SESSION", "server side session identifier")
_PASSES_OVER = "_streamgauge_passes_over"
_REFUSED = ("refused", "Name resolution", "DNS resolution")


class Running(Struct, frozen=True):
    """A query that the server says is active."""

    query_id: str
    run_id: str
    name: str | None
    status: Mapping[str, Any] | None


class Answer(Struct, frozen=True):
    """What one round of questions found."""

    at: float
    version: str | None
    app_name: str | None
    app_id: str | None
    running: Mapping[str, Running]  # by run id


class Failure(Struct, frozen=True):
    """Why a round found nothing."""

    at: float
    cause: str
    words: str


class Client:
    """A session, and our listener on it. The watchdog's thread calls; errands do what may not come back."""

    def __init__(self, session: Any, listener: Any, clock: Callable[[], float] = time.time) -> None:
        self.session = session
        self.listener = listener
        self.parting = False  # about to be stopped by the application itself
        self.left = False  # stopped by it
        self.removed = False  # the application took our listener off
        self.helper: Any = None  # a newer session of the same server, to ask through
        self.answer: Answer | None = None
        self.failures: list[Failure] = []  # since the last answer
        self._clock = clock
        self._round: threading.Thread | None = None
        self._round_began = 0.0
        self._adding: threading.Thread | None = None
        self._app: tuple[str | None, str | None] | None = None
        self._bus = _known_bus(session)
        self._note_removal()

    # ---- asking ----------------------------------------------------------------------------

    def ask(self, seconds: float) -> None:
        """Begin a round unless one is under way, and give it so many seconds."""
        if self._round is None or not self._round.is_alive():
            self._round_began = self._clock()
            self._round = _Errand(self._ask, "probe")
            self._round.begin(seconds)
        else:
            self._round.join(seconds)
        if self._round.is_alive() and self._clock() - self._round_began > _OVERDUE:
            waited = self._clock() - self._round_began
            self._fail(NETWORK_CUT, f"the Connect server has not answered for {waited:.0f} s")
            self._round = None  # left to itself; the next round is another thread's

    def _ask(self) -> None:
        began = self._round_began
        try:
            version = self._probe()
            app = self._app = self._app or self._read_app()
            running = {query.run_id: query for query in self._read_queries()}
        except Exception as error:  # noqa: BLE001 - gRPC's, PySpark's; each says that we can't see
            if began == self._round_began:
                self._fail(*classify(error, stopped=self.session.is_stopped))
            return
        self.answer = Answer(self._clock(), version, *app, running)
        self.failures = []

    def _fail(self, cause: str, words: str) -> None:
        self.failures = [*self.failures[-9:], Failure(self._clock(), cause, words)]

    def _probe(self) -> str | None:
        """The server's version; one call with a deadline and without Connect's own retries.

        There is no public way. Where this Spark has another private one its public call is made,
        and only `_OVERDUE` bounds it.
        """
        try:
            request = self.session.client._analyze_plan_request_with_metadata()  # noqa: SLF001
            request.spark_version.SetInParent()
            via = (self.helper or self.session).client
            ask, metadata = via._stub.AnalyzePlan, via._builder.metadata()  # noqa: SLF001
        except AttributeError:
            return str(self.session.version)
        reply = ask(request, metadata=metadata, timeout=_DEADLINE)
        return reply.spark_version.version or None

    def _read_app(self) -> tuple[str | None, str | None]:
        conf = self.session.conf
        return _text(lambda: conf.get("spark.app.name")), _text(lambda: conf.get("spark.app.id"))

    def _read_queries(self) -> list[Running]:
        return [
            Running(str(query.id), str(query.runId), query.name, _status(query))
            for query in self.session.streams.active
        ]

    # ---- judging ---------------------------------------------------------------------------

    def blindness(self) -> tuple[str, str] | None:
        """Which cause keeps us from seeing this session, and in what words; None when none does."""
        if self.session.is_stopped:
            return SESSION_DEAD, "its Connect session is dead; the application needs a new one"
        if self.failures:
            last = self.failures[-1]
            if last.cause == SESSION_DEAD or len(self.failures) >= _FAILURES:
                return last.cause, last.words
        if self.removed:
            return LISTENER_REMOVED, "the listener was removed from this query's session"
        if self.answers and not self.listens():
            return (
                LISTENER_CLEARED,
                "Connect has cleared this session's listeners; adding ours again",
            )
        return None

    def listens(self) -> bool:
        """Whether our listener is on the client's bus, and the bus has a thread that lives.

        True on a bus we don't know: what can't be seen is not a fault.
        """
        bus = self._bus
        if bus is None:
            return True
        thread = bus._execution_thread  # noqa: SLF001
        there = any(one is self.listener for one in bus._listener_bus)  # noqa: SLF001
        return there and thread is not None and thread.is_alive()

    @property
    def answers(self) -> bool:
        """Whether the server answered when it was last asked."""
        return not self.session.is_stopped and self.answer is not None and not self.failures

    @property
    def unreachable(self) -> bool:
        """Whether there is no point in calling this server: it is gone, or silent more than once."""
        if self.session.is_stopped:
            return True
        gone = bool(self.failures) and self.failures[-1].cause in {SERVER_GONE, SESSION_DEAD}
        return gone or len(self.failures) >= _FAILURES

    # ---- listening -------------------------------------------------------------------------

    def listen(self, seconds: float) -> None:
        """Put our listener on the session (again), giving it so many seconds."""
        if self._adding is None or not self._adding.is_alive():
            self._adding = _Errand(self._add, "add")
            self._adding.begin(seconds)
        else:
            self._adding.join(seconds)

    def _add(self) -> None:
        bus = self._bus
        if bus is not None:
            with bus._lock:  # noqa: SLF001
                thread = bus._execution_thread  # noqa: SLF001
                if thread is not None and not thread.is_alive():  # it died without clearing its bus
                    bus._execution_thread = None  # noqa: SLF001
                    bus._listener_bus.clear()  # noqa: SLF001
                alone = not bus._listener_bus  # noqa: SLF001
            if alone:
                self._reset_server()
        if bus is None or not self.listens():
            self.session.streams.addListener(self.listener)

    def _reset_server(self) -> None:
        """Have the server let go of its end of the stream of events, which then ends.

        Without this it refuses a new stream after one that broke.
        """
        from pyspark.sql.connect import proto  # noqa: PLC0415 - pyspark is an extra

        command = proto.Command()
        command.streaming_query_listener_bus_command.remove_listener_bus_listener = True
        self.session.client.execute_command(command)

    def ask_through(self, newer: Any) -> None:
        """Ask through a newer session's connection, if it has the same server.

        After an outage the old connection may wait for minutes before it tries again.
        """
        endpoint = endpoint_of(newer)
        if endpoint is not None and endpoint == endpoint_of(self.session):
            self.helper = newer

    def leave(self, seconds: float) -> None:
        """Take our listener off, after it was given what is on the way; waits so long at most."""
        self.ask(seconds / 3)
        if self.answers and self._bus is not None and self.listens():
            _Errand(self._take_off, "leave").begin(seconds * 2 / 3)

    def _take_off(self) -> None:
        """What Spark's own `remove` does, which can't be used while events come.

        It waits for the thread that hands out events while it holds the lock which that thread
        needs for the next one: neither ever ends.
        """
        bus = self._bus
        thread = bus._execution_thread  # noqa: SLF001
        if self.listener not in bus._listener_bus:  # noqa: SLF001
            return
        if all(one is self.listener for one in bus._listener_bus):  # noqa: SLF001
            self._reset_server()
            if thread is not None:
                thread.join()
        with bus._lock:  # noqa: SLF001
            with suppress(ValueError):
                bus._listener_bus.remove(self.listener)  # noqa: SLF001
            if not bus._listener_bus:  # noqa: SLF001
                bus._execution_thread = None  # noqa: SLF001

    def _note_removal(self) -> None:
        """Tell the application's own `removeListener` from a bus that was cleared."""
        bus = self._bus
        if bus is None:
            return
        remove: Callable[[Any], None] = bus.remove

        def remove_and_note(listener: Any) -> None:
            if listener is not self.listener:
                remove(listener)
                return
            self.removed = True
            try:
                self._take_off()
            except Exception as error:  # noqa: BLE001 - Spark's own does not raise either
                warnings.warn(f"the listener was not removed: {error}", stacklevel=3)

        bus.remove = remove_and_note


def keep_off(session: Any, is_off: Callable[[Any], bool]) -> bool:
    """Have a session's bus pass over the listeners that are off when they are added; whether it does.

    Then nothing is registered on the server and no thread begins; to remove one that is not on
    the bus is nothing to Spark. Raises what a session that is built differently raises.
    """
    bus = _known_bus(session)
    append: Callable[[Any], None] | None = getattr(bus, "append", None)
    if append is None:
        return False
    if not hasattr(append, _PASSES_OVER):

        def append_others(listener: Any) -> None:
            if not is_off(listener):
                append(listener)

        setattr(append_others, _PASSES_OVER, True)
        bus.append = append_others
    return True


def classify(error: BaseException, *, stopped: bool = False) -> tuple[str, str]:
    """Cause and words of an error of Connect's client."""
    text = str(error)
    if stopped or any(sign in text for sign in _DEAD_SESSION):
        return SESSION_DEAD, "its Connect session is dead; the application needs a new one"
    code = getattr(error, "code", None)
    name = getattr(code(), "name", "") if callable(code) else ""
    if name == "UNAVAILABLE" and any(sign in text for sign in _REFUSED):
        return SERVER_GONE, "the Connect server is gone: nothing answers at its address"
    if name == "DEADLINE_EXCEEDED":
        return NETWORK_CUT, f"the Connect server has not answered for {_DEADLINE:.0f} s"
    if name == "UNAVAILABLE":
        return NETWORK_CUT, "the connection to the Connect server is cut"
    return NETWORK_CUT, f"the Connect server can't be asked: {type(error).__name__}"


def endpoint_of(session: Any) -> str | None:
    """Host and port of a session's server; None where this Spark does not tell."""
    try:
        return str(session.client._builder.endpoint)  # noqa: SLF001 - there is no public way
    except AttributeError:
        return None


def _known_bus(session: Any) -> Any:
    """The client's own listener bus, if it is built as we know it; else None."""
    bus = getattr(session.streams, "_sqlb", None)
    parts = ("_listener_bus", "_execution_thread", "_lock", "remove")
    return bus if all(hasattr(bus, part) for part in parts) else None


class _Errand(threading.Thread):
    """Work on a daemon thread that nobody needs to come back."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        super().__init__(name=f"streamgauge-{name}", daemon=True)
        self._work = work

    def run(self) -> None:
        with suppress(Exception):  # the next round finds what is wrong
            self._work()

    def begin(self, seconds: float) -> None:
        """Start it, and give it so many seconds.

        At exit no thread can be started from Python 3.12 on; the work is done here then, in the
        watchdog's thread, for which nobody waits any more.
        """
        try:
            self.start()
        except RuntimeError:
            self.run()
        else:
            self.join(seconds)


def _status(query: Any) -> Mapping[str, Any] | None:
    try:
        status: Mapping[str, Any] = query.status
    except Exception:  # noqa: BLE001 - it has just ended
        return None
    return status


def _text(read: Callable[[], Any]) -> str | None:
    try:
        return clean(str(read()))
    except Exception:  # noqa: BLE001 - a server that does not tell
        return None
