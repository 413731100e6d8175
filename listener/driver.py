"""What can be asked about a Spark application, whichever way it is reached.

`ClassicDriver` goes through Py4J, `ConnectDriver` through the Connect client. Which one it is, is decided
before anything that polls is built, and stays so for the life of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from streamgauge.errors import StreamgaugeError
from streamgauge.model.observations import (
    ApplicationStatus,
    CheckpointNames,
    Gone,
    GoneCause,
    QueryStatus,
    RunDetails,
    Unseen,
)
from streamgauge.model.query import Query
from streamgauge.model.sources.waiting import Waiting


class ApplicationStopped(StreamgaugeError):  # noqa: N818 - it reads as a sentence
    """There is no Spark application (any more)."""


class DriverUnreachable(StreamgaugeError):  # noqa: N818 - it reads as what it is
    """Spark does not answer: what its queries do is unknown. `gone`: nothing listens at its address any more."""

    def __init__(self, why: str, *, gone: bool = False) -> None:
        super().__init__(why)
        self.gone = gone


class ApplicationInfo(NamedTuple):
    """What Spark says about an application, unmasked; unknown is None."""

    name: str | None = None
    app_id: str | None = None
    spark_version: str | None = None


class CheckpointFiles(Protocol):
    """What reads checkpoints with Spark's own file system. One thread, not the watchdog's."""

    def read_names(self, query: Query, *, with_state_size: bool) -> CheckpointNames | None:
        """The batches on disk of one live query, and the size of its state if wanted.

        None when the run is not there. Raises what the file system raises.
        """

    def read_backlog(self, query: Query) -> Mapping[str, Waiting]:
        """Unprocessed data by source label, for sources that do not report it themselves.

        Raises what the file system raises.
        """


class Driver(Protocol):
    """Reads one application and follows it from session to session.

    `poll_application`, `details`, `poll_query`, `forget` and `drain` are called by the watchdog's thread
    only, and may raise what Spark's client raises. The others are safe on any thread; they do not wait,
    except `add`, and raise nothing on the Sparks we know.
    """

    @property
    def stop_cause(self) -> GoneCause:
        """The cause of the end of all runs once `leave` has returned False."""

    @property
    def may_hang(self) -> bool:
        """Whether a call may never return: one that does not then means that Spark can't be seen."""

    def add(self, stoppable: Any, listener: Any, *, everywhere: bool = False) -> ApplicationInfo:
        """Follow a context or a session that our listener was added to; what it says of itself.

        `everywhere`: also follow all sessions that the application makes later. May wait one second for
        a Connect server.
        """

    def part(self, stoppable: Any) -> None:
        """The application is about to stop a context or session, which may take long."""

    def leave(self, stoppable: Any) -> bool:
        """The application has stopped a context or session; whether another one goes on."""

    def poll_application(self) -> ApplicationStatus:
        """The application as a whole; raises `ApplicationStopped`, and `DriverUnreachable`."""

    def details(self, query_id: str, run_id: str) -> RunDetails | None:
        """How a run is configured; None when it is not there."""

    def poll_query(self, query: Query) -> QueryStatus | Unseen | Gone | None:
        """One live query now; None when nothing is known yet."""

    def forget(self, run_ids: set[str]) -> None:
        """Drop what is kept of all runs but these."""

    def drain(self, seconds: float) -> None:
        """Wait, for so long at most, until the events on Spark's bus have reached us."""

    def skip_farewells(self) -> None:
        """At exit: let no client wait for a server that does not answer."""

    def close(self) -> None:
        """The agent has ended: follow no more sessions."""

    def checkpoint_files(self) -> CheckpointFiles | None:
        """What reads checkpoint files; None where they are out of reach, as over Connect."""


class QuietDriver:
    """A `Driver` that sees nothing: for agents without a Spark, as in tests."""

    stop_cause = GoneCause.APPLICATION_STOPPED
    may_hang = False

    def add(self, stoppable: Any, listener: Any, *, everywhere: bool = False) -> ApplicationInfo:
        """Nothing is known."""
        return ApplicationInfo()

    def part(self, stoppable: Any) -> None:
        """Nothing to prepare."""

    def leave(self, stoppable: Any) -> bool:
        """There is no other."""
        return False

    def poll_application(self) -> ApplicationStatus:
        """An application of which nothing is known."""
        return ApplicationStatus(at=0.0)

    def details(self, query_id: str, run_id: str) -> RunDetails | None:
        """Unknown."""
        return None

    def poll_query(self, query: Query) -> QueryStatus | Unseen | Gone | None:
        """Unknown."""
        return None

    def forget(self, run_ids: set[str]) -> None:
        """Nothing is kept."""

    def drain(self, seconds: float) -> None:
        """No event is on the way."""

    def skip_farewells(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """Nothing is followed."""

    def checkpoint_files(self) -> CheckpointFiles | None:
        """Out of reach."""
        return None
