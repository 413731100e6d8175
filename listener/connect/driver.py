"""A look at a Spark Connect application (4.0 and newer), in the watchdog's thread.

What the client can't know is absent: tasks, checkpoint, trigger, the batch that runs. What keeps it
from seeing anything at all is said: `looks.Unseen`, which makes the verdict `blind`.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from streamgauge.listener.classic.driver import ApplicationStopped, phase_of
from streamgauge.model.observations import ApplicationStatus, Gone, QueryStatus, RunDetails, Unseen
from streamgauge.model.query import Query

from . import patches as manners
from .client import LISTENER_CLEARED, SESSION_DEAD, Client, endpoint_of

_PATIENCE = 1.0  # how long a round may hold up the watchdog; the rest of it goes on by itself
_STRIKES = 3
_SESSIONS = 64


class ConnectDriver:
    """Looks at the sessions of one client, and follows the application to its new ones."""

    def __init__(
        self,
        lose: Callable[[str], None],
        wake: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`lose` ends every run that is known; `wake` is told of a session. Neither may wait."""
        self._lose = lose
        self._wake = wake
        self._clock = clock
        self._clients: list[Client] = []
        self._made: list[weakref.ref[Any]] = []  # sessions the application has made since
        self._dead: list[Any] = []  # sessions that had our listener and died
        self._strikes: dict[str, int] = {}
        self.everywhere = False  # follow every new session, not only in place of a dead one
        manners.hear_of_sessions(self._note)

    # ---- sessions --------------------------------------------------------------------------

    def add(self, session: Any, listener: Any) -> Client:
        """Look at a session from now on. Any thread; waits a little for a first answer."""
        known = next((c for c in self._clients if c.session is session), None)
        if known is not None:
            known.left = known.removed = known.parting = False
            known.listener = listener
            return known
        client = Client(session, listener, self._clock)
        self._clients = [*self._clients[-_SESSIONS:], client]
        client.ask(_PATIENCE)
        self._wake()
        return client

    def part(self, session: Any) -> None:
        """The application is about to stop a session: the next `drain` is for that one. Any thread."""
        for client in self._clients:
            client.parting = client.parting or client.session is session

    def leave(self, session: Any) -> bool:
        """The application has stopped a session by itself; whether there is another. Any thread."""
        for client in self._clients:
            if client.session is session:
                client.left = True
        return any(not client.left for client in self._clients)

    def close(self) -> None:
        """At the agent's end: hear of no more sessions."""
        manners.hear_of_sessions(None)

    def skip_farewells(self) -> None:
        """Have the client not wait at exit for servers that don't answer. Never waits."""
        lost = [client.session for client in self._clients if client.unreachable]
        servers = {endpoint_of(session) for session in lost} - {None}
        known = {id(client.session) for client in self._clients}
        made = [session for session in (ref() for ref in self._made) if session is not None]
        others = [s for s in made if id(s) not in known and endpoint_of(s) in servers]
        for session in (*lost, *others, *self._dead):
            manners.skip_farewell(session)

    def _note(self, session: Any) -> None:
        self._made = [*self._made[-_SESSIONS:], weakref.ref(session)]
        self._wake()

    def _follow(self) -> None:
        """Join a new session of the application's, once the old ones are dead."""
        known = {id(client.session) for client in self._clients}
        new = [s for s in (ref() for ref in self._made) if s is not None and id(s) not in known]
        new = [session for session in new if not session.is_stopped]
        here = [client for client in self._clients if not client.left]
        for client in here if new else ():
            if client.failures and not _is_dead(client):
                client.ask_through(new[-1])
                client.ask(_PATIENCE)
        dead = [c for c in here if _is_dead(c) or (new and _is_left_behind(c, new[-1]))]
        if not new or not here or not (self.everywhere or len(dead) == len(here)):
            return
        if len(dead) == len(here):
            self._lose("its Connect session died; the application has a new one")
        listener = here[-1].listener
        self._clients = [client for client in self._clients if client not in dead]
        self._dead = [*self._dead, *(client.session for client in dead)][-_SESSIONS:]
        # The round that follows adds our listener as soon as its server answers, and not before: Spark
        # would hold the session's bus while it tries, and the application's own `start()` with it.
        added = [Client(s, listener, self._clock) for s in (new if self.everywhere else new[-1:])]
        self._clients = [*self._clients, *added]

    # ---- the watchdog's questions ----------------------------------------------------------

    def tick(self) -> ApplicationStatus:
        """The application as a whole; raise `ApplicationStopped` once it has left its sessions."""
        self._follow()
        here = [client for client in self._clients if not client.left]
        if not here:
            raise ApplicationStopped
        for client in here:
            if not client.session.is_stopped:
                client.ask(_PATIENCE)
            why = client.blindness()
            if why is not None and why[0] == LISTENER_CLEARED and not client.parting:
                client.listen(_PATIENCE)
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

    def sight(self, query: Query) -> QueryStatus | Unseen | Gone | None:
        """One live query now; what hides it, if something does."""
        here = [client for client in self._clients if not client.left]
        for client in here:
            if client.answer and query.run_id in client.answer.running:
                return self._sight(query, client)
        hidden = next((why for c in here if (why := c.blindness()) is not None), None)
        if hidden is not None:
            return self._unseen(query, hidden)
        return self._strike(query, here)

    def forget(self, run_ids: set[str]) -> None:
        """Let go of what belongs to other runs."""
        self._strikes = {run: n for run, n in self._strikes.items() if run in run_ids}

    def drain(self, seconds: float) -> None:
        """Take our listener off the session that parts, or off each; that waits for its last events."""
        here = [client for client in self._clients if not client.left]
        parting = [client for client in here if client.parting] or here
        for client in parting:
            client.leave(seconds / len(parting))

    # ---- one query -------------------------------------------------------------------------

    def _sight(self, query: Query, client: Client) -> QueryStatus | Unseen | None:
        why = client.blindness()
        if why is not None:
            return self._unseen(query, why)
        answer = client.answer
        status = answer.running[query.run_id].status if answer else None
        if answer is None or status is None or client.failures:
            return None
        self._strikes.pop(query.run_id, None)
        return QueryStatus(
            query_id=query.query_id,
            run_id=query.run_id,
            at=answer.at,
            trigger_active=bool(status.get("isTriggerActive")),
            data_available=bool(status.get("isDataAvailable")),
            phase=phase_of(str(status.get("message", ""))),
            listening=client.listens(),
        )

    def _unseen(self, query: Query, why: tuple[str, str]) -> Unseen:
        cause, words = why
        return Unseen(
            query_id=query.query_id, run_id=query.run_id, at=self._clock(), cause=cause, why=words
        )

    def _strike(self, query: Query, here: list[Client]) -> Gone | None:
        """A run that no session has: its Terminated event may still be on the way."""
        if any(c.answer is None or c.failures or c.answer.at < query.last_event_at for c in here):
            return None
        strikes = self._strikes[query.run_id] = self._strikes.get(query.run_id, 0) + 1
        if strikes < _STRIKES:
            return None
        why = "it is not active any more, and no Terminated event came"
        return Gone(query_id=query.query_id, run_id=query.run_id, at=self._clock(), why=why)


def _is_left_behind(client: Client, newer: Any) -> bool:
    """Whether the application has gone on to another server while this one does not answer."""
    return client.unreachable and endpoint_of(newer) != endpoint_of(client.session)


def _is_dead(client: Client) -> bool:
    why = client.blindness()
    return why is not None and why[0] == SESSION_DEAD
