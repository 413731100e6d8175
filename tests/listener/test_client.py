"""What keeps a Connect client from seeing, told apart; Connect itself is tested in tests/spark."""

import threading
import time
from types import SimpleNamespace

import pytest
from stage import apply_to

from streamgauge.listener.connect.blindness import classify
from streamgauge.listener.connect.patches import DaemonPool
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import QueryStatus, Unseen, UnseenCause
from streamgauge.model.verdict import judge


class RpcError(Exception):
    """As gRPC raises it."""

    def __init__(self, name, words):
        super().__init__(words)
        self._name = name

    def code(self):
        return SimpleNamespace(name=self._name)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RpcError("UNAVAILABLE", "connect: Connection refused (111)"), UnseenCause.SERVER_GONE),
        (RpcError("UNAVAILABLE", "Socket closed"), UnseenCause.NETWORK_CUT),
        (RpcError("DEADLINE_EXCEEDED", "Deadline Exceeded"), UnseenCause.NETWORK_CUT),
        (
            RpcError("INTERNAL", "[INVALID_HANDLE.SESSION_CHANGED] The handle"),
            UnseenCause.SESSION_DEAD,
        ),
        (RuntimeError("[NO_ACTIVE_SESSION] No active Spark session"), UnseenCause.SESSION_DEAD),
        (RuntimeError("what else"), UnseenCause.NETWORK_CUT),
    ],
)
def test_causes_are_told_apart(error, cause):
    """By what gRPC and Spark say."""
    found = classify(error)
    assert found.cause is cause
    assert found.why


def _started():
    from stage import Life

    from streamgauge.model.decoder import decode

    fleet, life = Fleet(), Life()
    apply_to(fleet, decode(life.started()), 100.0)
    return fleet, life, decode


def _hidden(life, at=110.0):
    return Unseen(
        query_id=life.query_id,
        run_id=life.run_id,
        at=at,
        cause=UnseenCause.SERVER_GONE,
        why="it is gone",
    )


def test_hidden_query_is_blind_until_it_is_seen_again():
    """An event is seeing, and so is a poll; one alone may be a stray one."""
    fleet, life, decode = _started()
    query = apply_to(fleet, _hidden(life))
    assert (judge(query, 111.0).state, judge(query, 111.0).reason) == ("blind", "it is gone")
    query = apply_to(fleet, decode(life.progress()), 112.0)
    assert judge(query, 112.0).state == "blind"
    query = apply_to(fleet, decode(life.progress()), 112.5)
    assert judge(query, 112.5).state != "blind"
    apply_to(fleet, _hidden(life, 113.0))
    states = []
    for at in (114.0, 119.0):
        seen = QueryStatus(
            query_id=life.query_id,
            run_id=life.run_id,
            at=at,
            trigger_active=False,
            data_available=False,
            phase="waiting_for_data",
        )
        states.append(judge(apply_to(fleet, seen), at).state)
    assert states[0] == "blind"
    assert states[1] != "blind"


def test_ended_and_other_runs_are_not_hidden():
    """What is over can't be lost from sight."""
    fleet, life, decode = _started()
    apply_to(fleet, decode(life.terminated()), 105.0)
    assert apply_to(fleet, _hidden(life)) is None


def test_pool_runs_tasks_and_carries_their_errors():
    """On daemon threads, as an executor would."""
    pool = DaemonPool()

    def fail():
        raise ValueError("no")

    names = [pool.submit(lambda: threading.current_thread().daemon) for _ in range(20)]
    assert all(future.result(20) for future in names)
    with pytest.raises(ValueError, match="no"):
        pool.submit(fail).result(20)
    blocked = threading.Event()
    stuck = [pool.submit(blocked.wait, 20) for _ in range(3)]
    assert pool.submit(time.monotonic).result(20)
    blocked.set()
    assert all(future.result(20) for future in stuck)
