"""Why a Connect client can't see its queries, from the errors of gRPC and Spark."""

from __future__ import annotations

from msgspec import Struct

from streamgauge.model.observations import UnseenCause

PROBE_SECONDS = 5.0  # deadline for the server's answer to a probe
# Parts of the messages that Spark and gRPC raise.
_DEAD_SESSION = ("INVALID_HANDLE.SESSION", "NO_ACTIVE_SESSION", "server side session identifier")
_REFUSED = ("refused", "Name resolution", "DNS resolution")


class Blindness(Struct, frozen=True):
    """A cause, and the same for people to read."""

    cause: UnseenCause
    why: str


SESSION_DEAD = Blindness(
    UnseenCause.SESSION_DEAD, "its Connect session is dead; the application needs a new one"
)
SERVER_GONE = Blindness(
    UnseenCause.SERVER_GONE, "the Connect server is gone: nothing answers at its address"
)
CONNECTION_CUT = Blindness(UnseenCause.NETWORK_CUT, "the connection to the Connect server is cut")
LISTENER_REMOVED = Blindness(
    UnseenCause.LISTENER_REMOVED, "the listener was removed from this query's session"
)
LISTENER_CLEARED = Blindness(
    UnseenCause.LISTENER_CLEARED, "Connect has cleared this session's listeners; adding ours again"
)


def no_answer(seconds: float) -> Blindness:
    """The server has been silent for so long."""
    return Blindness(
        UnseenCause.NETWORK_CUT, f"the Connect server has not answered for {seconds:.0f} s"
    )


def classify(error: BaseException, *, stopped: bool = False) -> Blindness:
    """What an error of Connect's client means; `stopped`: the client knows its session is over."""
    text = str(error)
    if stopped or any(sign in text for sign in _DEAD_SESSION):
        return SESSION_DEAD
    code = getattr(error, "code", None)
    name = getattr(code(), "name", "") if callable(code) else ""
    if name == "UNAVAILABLE" and any(sign in text for sign in _REFUSED):
        return SERVER_GONE
    if name == "DEADLINE_EXCEEDED":
        return no_answer(PROBE_SECONDS)
    if name == "UNAVAILABLE":
        return CONNECTION_CUT
    why = f"the Connect server can't be asked: {type(error).__name__}"
    return Blindness(UnseenCause.NETWORK_CUT, why)
