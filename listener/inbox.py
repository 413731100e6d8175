"""Where Spark's threads leave what they bring: bounded in number and in size, and putting never waits.

When the box is full, old observations go first, which newer ones replace; then only the oldest *progress* of
the same query, and that is counted. What a query's life hangs on (started, terminated) stays.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from streamgauge.steady import steady_time

# Started and terminated events are kept past the limit, but a query that dies every second under a
# blocked worker must not eat the driver: past this many times the limit the oldest go, counted.
_VITAL_CEILING = 4
# An event of a thousand partitions is long: whatever the limit, no more than this waits.
_MOST_BYTES = 64 * 1024 * 1024
# The reader polls this often instead of being woken: a reader that wakes up takes the
# interpreter from the very callback that has yet to answer Spark (a fifth of its time).
_NAP_SECONDS = 0.015
# Queries on one trigger bring their events together: the reader lets such a burst pass before it works, for
# so many polls at most.
_BURST_POLLS = 3
OBSERVATION = "observation"  # what a poller found; its next poll tells the same, and later
GONE = "gone"  # an observation that no later one repeats: a run is over, the application stops
MARK = "mark"  # the kind of an item that says: everything put before has been handled
FAILURE = "failure"  # of an item that Spark's threads leave for the worker to count and to log
_VITAL = frozenset({"started", "terminated", GONE, MARK})


class Item(NamedTuple):
    """One thing on its way to the worker."""

    kind: str  # started, progress, idle, terminated, or one of the kinds above
    content: Any  # an event's JSON; an observation; a mark's threading.Event; an exception
    at: float  # the steady clock at receipt
    callback_seconds: float | None = None  # time on Spark's bus; None when there is none
    fallback: bool = False  # came through the public objects


class Inbox:
    """A queue for one reader and any number of writers. All methods are safe on any thread."""

    def __init__(self, limit: int, most_bytes: int = _MOST_BYTES) -> None:
        self._limit = limit
        self._most_bytes = most_bytes
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._closed = False
        self.dropped: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def count_dropped(self) -> Mapping[str, int]:
        """How many were dropped, by kind."""
        return self.dropped

    def put(self, item: Item) -> None:
        """Add an item; never waits for the reader and never raises because of a full box.

        After the end nobody reads any more, and nothing is kept.
        """
        if self._closed:
            return
        size = _size_of(item)
        with self._lock:
            if not self._make_room(item, size):
                self._count(item)
                return
            self._items.append(item)
            self._bytes += size

    def put_failure(self, error: BaseException) -> None:
        """Leave it to the worker to tell of a failure on Spark's threads; never raises."""
        with suppress(Exception):
            self.put(Item(FAILURE, error.with_traceback(None), steady_time()))

    def take(self, timeout: float) -> list[Item]:
        """Return everything that waits, oldest first; an empty list after `timeout` seconds."""
        until = time.monotonic() + timeout
        while not self._items and not self._closed and time.monotonic() < until:
            time.sleep(_NAP_SECONDS)
        self._let_burst_pass()
        with self._lock:
            items = list(self._items)
            self._items.clear()
            self._bytes = 0
            return items

    def close(self) -> None:
        """Let the reader go, for good."""
        self._closed = True

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def _let_burst_pass(self) -> None:
        for _ in range(_BURST_POLLS):
            count = len(self._items)
            if not count or self._closed:
                return
            time.sleep(_NAP_SECONDS)
            if len(self._items) == count:
                return

    def _make_room(self, item: Item, size: int) -> bool:
        """Give up others until the item fits in; False when it is the one to go."""
        if size > self._most_bytes:
            return False
        while len(self._items) >= self._limit or self._bytes + size > self._most_bytes:
            victim = self._find_least(item)
            if victim is None:
                if item.kind not in _VITAL:
                    return False
                fits = self._bytes + size <= self._most_bytes
                if fits and len(self._items) < self._limit * _VITAL_CEILING:
                    return True
                victim = self._items[0]
            self._items.remove(victim)
            self._bytes -= _size_of(victim)
            self._count(victim)
        return True

    def _find_least(self, item: Item) -> Item | None:
        """The oldest observation; for an event else the oldest progress of its query, else of any. Never a vital one."""
        observation = next((i for i in self._items if i.kind == OBSERVATION), None)
        if observation is not None or item.kind == OBSERVATION:
            return observation
        same = _query_of(item)
        return next(
            (i for i in self._items if i.kind not in _VITAL and same and _query_of(i) == same),
            None,
        ) or next((i for i in self._items if i.kind not in _VITAL), None)

    def _count(self, item: Item) -> None:
        if item.kind == OBSERVATION:
            return  # the next one tells the same, and later
        self.dropped[item.kind] = self.dropped.get(item.kind, 0) + 1


def _size_of(item: Item) -> int:
    """Bytes of an event's text; other things are small."""
    return sys.getsizeof(item.content) if isinstance(item.content, str) else 0


def _query_of(item: Item) -> str | None:
    """Query id of an event, cut out of its text: decoding is not done on Spark's threads."""
    text = item.content
    if not isinstance(text, str):
        return None
    begin = text.find('"id":"', 0, 200)
    return text[begin + 6 : begin + 42] if begin >= 0 else None
