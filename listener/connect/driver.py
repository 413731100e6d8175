"""A Spark Connect application (4.0 and newer), read through its client.

What the client can't know is absent: tasks, checkpoint, trigger, the batch that runs. What keeps it
from seeing anything at all is an observation of its own, `Unseen`, which makes the verdict `blind`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from streamgauge.listener.driver import ApplicationInfo, ApplicationStopped
from streamgauge.listener.phases import phase_of
from streamgauge.model.observations import (
    ApplicationStatus,
    Gone,
    GoneCause,
    QueryStatus,
    RunDetails,
    Unseen,
    UnseenCause,
)
from streamgauge.model.query import Query
from streamgauge.steady import steady_time

from . import patches
from .blindness import Blindness
from .client import Answer, Client, endpoint_of

_WAIT_SECONDS = 1.0  # how long a call may hold up the watchdog; the rest of it goes on by itself
_MISSED_POLLS = 3  # so many polls in a row without the run: it is over
_MOST_SESSIONS = 64


class ConnectDriver:
    """Reads the sessions of one client, and follows the application to its new ones.

    Implements `Driver`, whose docstring has the threading contract. `lose_all` ends every run that is
    known; `wake` is called when there is a new session, in the thread that made it. Neither may wait.
    """

    stop_cause = GoneCause.SESSION_STOPPED
    may_hang = False  # what may not return is done in the background

    def __init__(
        self,
        *,
        lose_all: Callable[[GoneCause], None],
        wake: Callable[[], None],
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._lose_all = lose_all
        self._wake = wake
        self._clock = clock
        self._clients: list[Client] = []
        self._new: list[weakref.ref[Any]] = []  # sessions that the application has made since
        self._dead: list[Any] = []  # sessions that had our listener and died
        self._missed_polls: dict[str, int] = {}  # by run id
        self._everywhere = False  # follow every new session, not only in place of a dead one

    # ---- sessions --------------------------------------------------------------------------

    def add(self, stoppable: Any, listener: Any, *, everywhere: bool = False) -> ApplicationInfo:
        """Follow a session from now on; waits a second at most for a first answer.

        Patches PySpark (`connect.patches`): new sessions of the process are noted from now on, and the
        removal of our listener from this session is handled by us.
        """
        self._everywhere = self._everywhere or everywhere
        patches.notify_of_new_sessions(self._note)
        known = next((c for c in self._clients if c.session is stoppable), None)
        if known is not None:
            known.rejoin(listener)
            return _info(known.answer)
        client = self._make_client(stoppable, listener)
        self._clients = [*self._clients[-_MOST_SESSIONS:], client]
        client.ask(_WAIT_SECONDS)
        self._wake()
        return _info(client.answer)

    def part(self, stoppable: Any) -> None:
        """The application is about to stop a session: the next `drain` is for that one."""
        for client in self._clients:
            if client.session is stoppable:
                client.part()

    def leave(self, stoppable: Any) -> bool:
        """The application has stopped a session by itself; whether there is another."""
        for client in self._clients:
            if client.session is stoppable:
                client.note_stopped()
        return any(not client.left for client in self._clients)

    def close(self) -> None:
        """At the agent's end: note no more sessions."""
        patches.stop_notifying(self._note)

    def skip_farewells(self) -> None:
        """Have the client not wait at exit for servers that don't answer."""
        lost = [client.session for client in self._clients if client.unreachable]
        servers = {endpoint_of(session) for session in lost} - {None}
        others = [s for s in self._unknown_sessions() if endpoint_of(s) in servers]
        for session in (*lost, *others, *self._dead):
            patches.skip_exit_call(session)

    def _note(self, session: Any) -> None:
        self._new = [*self._new[-_MOST_SESSIONS:], weakref.ref(session)]
        self._wake()

    def _make_client(self, session: Any, listener: Any) -> Client:
        """A client of a session, whose bus is patched so that we handle the removal of our listener."""
        client = Client(session, listener, self._clock)
        patches.intercept_listener_removal(session, client.subscription.handle_removal)
        return client

    def _unknown_sessions(self) -> list[Any]:
        """Sessions that the application has made and we do not follow."""
        known = {id(client.session) for client in self._clients}
        made = [session for session in (ref() for ref in self._new) if session is not None]
        return [session for session in made if id(session) not in known]

    def _here(self) -> list[Client]:
        """The sessions that the application has not stopped itself."""
        return [client for client in self._clients if not client.left]

    def _follow_new_sessions(self) -> None:
        """Join a new session of the application's, once the old ones are dead."""
        new = [session for session in self._unknown_sessions() if not session.is_stopped]
        here = self._here()
        if not new or not here:
            return
        for client in here:
            if client.failures and not client.dead:
                client.ask_through(new[-1])
                client.ask(_WAIT_SECONDS)
        dead = [client for client in here if client.dead or _is_left_behind(client, new[-1])]
        if len(dead) == len(here):
            self._lose_all(GoneCause.SESSION_DIED)
        elif not self._everywhere:
            return
        self._replace(dead, new if self._everywhere else new[-1:], here[-1].subscription.listener)

    def _replace(self, dead: list[Client], new: list[Any], listener: Any) -> None:
        """Follow new sessions instead of dead ones.

        The poll that follows adds our listener as soon as its server answers, and not before: Spark
        would hold the session's bus while it tries, and the application's own `start()` with it.
        """
        kept = [client for client in self._clients if client not in dead]
        self._dead = [*self._dead, *(client.session for client in dead)][-_MOST_SESSIONS:]
        self._clients = [*kept, *(self._make_client(session, listener) for session in new)]

    # ---- the watchdog's questions ----------------------------------------------------------

    def poll_application(self) -> ApplicationStatus:
        """The application as a whole; raises `ApplicationStopped` once it has left its sessions."""
        self._follow_new_sessions()
        here = self._here()
        if not here:
            raise ApplicationStopped
        for client in here:
            if not client.session.is_stopped:
                client.ask(_WAIT_SECONDS)
            blindness = client.blindness()
            cleared = blindness and blindness.cause == UnseenCause.LISTENER_CLEARED
            if cleared and not client.parting:
                client.listen(_WAIT_SECONDS)
        answer = next((c.answer for c in reversed(here) if c.answer), None)
        return ApplicationStatus(
            at=self._clock(),
            app_name=answer.app_name if answer else None,
            spark_version=answer.version if answer else None,
        )

    def details(self, query_id: str, run_id: str) -> RunDetails | None:
        """What the client knows of a run: its names."""
        for client in self._clients:
            answer = client.answer
            if answer is not None and run_id in answer.running:
                return RunDetails(
                    query_id=query_id,
                    run_id=run_id,
                    name=answer.running[run_id].name,
                    app_id=answer.app_id,
                    spark_version=answer.version,
                )
        return None

    def poll_query(self, query: Query) -> QueryStatus | Unseen | Gone | None:
        """One live query now; what hides it, if something does."""
        here = self._here()
        for client in here:
            if client.answer and query.run_id in client.answer.running:
                return self._read_status(query, client)
        hidden = next((found for c in here if (found := c.blindness()) is not None), None)
        if hidden is not None:
            return self._unseen(query, hidden)
        return self._miss(query, here)

    def forget(self, run_ids: set[str]) -> None:
        """Drop what belongs to other runs."""
        self._missed_polls = {run: n for run, n in self._missed_polls.items() if run in run_ids}

    def drain(self, seconds: float) -> None:
        """Take our listener off the session that parts, or off each; that waits for its last events."""
        here = self._here()
        parting = [client for client in here if client.parting] or here
        for client in parting:
            client.leave(seconds / len(parting))

    def checkpoint_files(self) -> None:
        """None: a Connect client can't read checkpoints."""
        return

    # ---- one query -------------------------------------------------------------------------

    def _read_status(self, query: Query, client: Client) -> QueryStatus | Unseen | None:
        blindness = client.blindness()
        if blindness is not None:
            return self._unseen(query, blindness)
        answer = client.answer
        status = answer.running[query.run_id].status if answer else None
        if answer is None or status is None or client.failures:
            return None
        self._missed_polls.pop(query.run_id, None)
        return QueryStatus(
            query_id=query.query_id,
            run_id=query.run_id,
            at=answer.at,
            trigger_active=bool(status.get("isTriggerActive")),
            data_available=bool(status.get("isDataAvailable")),
            phase=phase_of(str(status.get("message", ""))),
            listening=client.listens(),
        )

    def _unseen(self, query: Query, blindness: Blindness) -> Unseen:
        return Unseen(
            query_id=query.query_id,
            run_id=query.run_id,
            at=self._clock(),
            cause=blindness.cause,
            why=blindness.why,
        )

    def _miss(self, query: Query, here: list[Client]) -> Gone | None:
        """A run that no session has: its Terminated event may still be on the way."""
        if any(c.answer is None or c.failures or c.answer.at < query.last_event_at for c in here):
            return None
        missed = self._missed_polls[query.run_id] = self._missed_polls.get(query.run_id, 0) + 1
        if missed < _MISSED_POLLS:
            return None
        return Gone(
            query_id=query.query_id,
            run_id=query.run_id,
            at=self._clock(),
            cause=GoneCause.INACTIVE,
            why=GoneCause.INACTIVE.sentence,
        )


def _info(answer: Answer | None) -> ApplicationInfo:
    """The name alone: a client may have sessions of several servers, and is one application here."""
    return ApplicationInfo(name=answer.app_name if answer else None)


def _is_left_behind(client: Client, newer: Any) -> bool:
    """Whether the application has gone on to another server while this one does not answer."""
    return client.unreachable and endpoint_of(newer) != endpoint_of(client.session)
