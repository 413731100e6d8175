"""The poller of checkpoints: what a store that fails or dawdles does to it."""

from __future__ import annotations

import time

from stage import Life, apply_to

from streamgauge.listener.classic.checkpoint_poller import CheckpointPoller
from streamgauge.listener.inbox import Inbox
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import CheckpointNames, SourceBacklog
from streamgauge.model.sources.waiting import Waiting


class Store:
    """Stands where Spark's file system does: as slow and as broken as a test wants it."""

    def __init__(self):
        self.asked, self.sized = [], []
        self.error, self.seconds = None, 0.0
        self.behind = {}

    def read_backlog(self, query):
        return self.behind

    def read_names(self, query, *, with_state_size):
        self.asked.append(query.label)
        self.sized.append(with_state_size)
        time.sleep(self.seconds)
        if self.error:
            raise self.error
        return CheckpointNames(
            query_id=query.query_id, run_id=query.run_id, at=0.0, offsets=(1,), commits=(1,),
            state_bytes=4096.0 if with_state_size else None,
        )  # fmt: skip


def _poller(*names, seconds=0.05, sizes=False):
    fleet, store, inbox, errors = Fleet(), Store(), Inbox(1000), []
    for name in names:
        apply_to(fleet, decode(Life(name).started()), time.time())
    poller = CheckpointPoller(
        store,
        inbox,
        lambda: fleet.queries,
        interval_seconds=seconds,
        with_state_size=sizes,
        report_error=errors.append,
    )
    return poller, store, inbox, errors


def test_store_that_fails_is_counted_and_asked_less_often():
    """Twice the pause after each round that failed: five rounds at most in 0.05 x (2^5 - 1) s."""
    poller, store, _, errors = _poller("orders")
    store.error = OSError("503 Slow Down")
    poller.start()
    time.sleep(0.05 * 31 - 0.1)
    poller.close()
    assert 2 <= len(errors) <= 4
    assert len(store.asked) == len(errors)


def test_round_ends_in_time_and_the_next_begins_with_who_was_left_out():
    """Three queries on a store that takes longer than a round for each."""
    poller, store, inbox, errors = _poller("a", "b", "c")
    store.seconds = 0.06
    for _ in range(3):
        assert poller.poll()
    assert sorted(store.asked) == ["a", "b", "c"]
    assert len(inbox) == 3
    assert not errors


def test_size_of_the_state_is_asked_for_seldom_and_only_on_demand():
    """Without the setting never; with it each tenth time, and known in between."""
    poller, store, inbox, _ = _poller("orders")
    poller.poll()
    assert store.sized == [False]
    assert inbox.take(0)[0].content.state_bytes is None
    poller, store, inbox, _ = _poller("orders", sizes=True)
    for _ in range(11):
        poller.poll()
    assert store.sized == [True, *[False] * 9, True]
    assert {item.content.state_bytes for item in inbox.take(0)} == {4096.0}


def test_backlog_is_read_whatever_becomes_of_the_names():
    """On its own: a store that can't list the checkpoint may still have the table's log."""
    poller, store, inbox, errors = _poller("orders", seconds=60)
    store.error, store.behind = OSError("403"), {"0-delta": Waiting(versions=3)}
    assert not poller.poll()
    (item,) = inbox.take(0)
    assert isinstance(item.content, SourceBacklog)
    assert item.content.waiting == store.behind
    assert 170 < item.content.until - time.time() <= 180
    assert len(errors) == 1
