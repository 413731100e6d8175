"""Who scrapes this page and how often, and whether they will have seen its final state. Any thread.

A scraper is a client that says how long it waits for an answer, as Prometheus and what scrapes like it do.
Browsers and curl don't. Two behind one address with one name are told apart by their times alone.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from streamgauge.masking import clean

_TIMEOUT_HEADER = "HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS"
_MOST_SCRAPERS = 64
_VISITS_KEPT = 12
_MOST_AT_ONE_ADDRESS = 4
_REGULAR_SHARE = 2 / 3  # of the gaps must be alike: a scrape may fail, and Prometheus may restart
_UNKNOWN_SECONDS = 60.0  # Prometheus' default interval, for one that was seen once
_LATELY = 3  # intervals since the last visit; after that nobody is waited for


class Scraper(Struct, frozen=True, kw_only=True):
    """One scraper's last visits, by a clock that never steps."""

    name: str
    timeout: float  # of its scrapes; Prometheus takes none that is longer than the interval
    visits: tuple[float, ...]  # when each began, oldest first
    active: tuple[frozenset[str], ...] = ()  # the runs that were active at each visit

    @property
    def saw(self) -> frozenset[str]:
        """The runs that were active when it came last; of several at one address, when any of them did."""
        rhythm = find_rhythm(self.visits, self.timeout)
        return frozenset().union(*self.active[-(rhythm.visits if rhythm else 1) :])


class Rhythm(Struct, frozen=True):
    """How often a scraper comes: so many visits in each interval."""

    seconds: float
    visits: int = 1


class Expected(Struct, frozen=True):
    """When a scraper will have come back: so many visits, the first in so many seconds, all by then."""

    visits: int
    first: float
    last: float


def find_rhythm(visits: Sequence[float], timeout: float) -> Rhythm | None:
    """The interval of a scraper; None for one that came once. Several at one address count together."""
    if len(visits) < 2:
        return None
    for number in range(1, _MOST_AT_ONE_ADDRESS + 1):
        gaps = [later - earlier for earlier, later in zip(visits, visits[number:], strict=False)]
        if len(gaps) < number + (number > 1):  # several take two rounds to be told apart
            break
        usual = sorted(gaps)[len(gaps) // 2]
        alike = sum(abs(gap - usual) <= _slack(usual) for gap in gaps)
        if alike >= _REGULAR_SHARE * len(gaps) and usual + _slack(usual) >= timeout:
            return Rhythm(usual, number)
    longest = max(later - earlier for earlier, later in pairwise(visits))
    return Rhythm(max(longest, timeout))


def expect(scraper: Scraper, now: float) -> Expected | None:
    """When a scraper that is still there comes next; None for one that has gone."""
    last = scraper.visits[-1]
    rhythm = find_rhythm(scraper.visits, scraper.timeout)
    if rhythm is None:
        latest = last + max(_UNKNOWN_SECONDS, scraper.timeout) + _slack(_UNKNOWN_SECONDS)
        return Expected(1, 0.0, latest - now) if now < latest else None
    seconds, slack = rhythm.seconds, _slack(rhythm.seconds)
    if now - last > _LATELY * seconds + slack:
        return None
    missed = max(0, math.floor((now - slack - last) / seconds)) if seconds else 0
    shift = (missed + 1) * seconds - now
    first = scraper.visits[-rhythm.visits] + shift
    return Expected(rhythm.visits, max(0.0, first), last + shift + slack)


def _slack(seconds: float) -> float:
    """How much later than usual it may come."""
    return min(2.0, 0.3 + 0.1 * seconds)


class ScraperLog:
    """Every scraper that was answered lately."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._scrapers: dict[tuple[str, str], Scraper] = {}
        self._last_visit = 0.0  # of anybody: when the last scrape that was answered whole began

    def note(self, environ: Mapping[str, Any], began: float, active: frozenset[str]) -> None:
        """A scrape was answered whole; `active` are the runs that were active when it began."""
        timeout = _read_timeout(environ)
        with self._changed:
            self._last_visit = max(self._last_visit, began)
            if timeout is not None:
                self._add(environ, began, timeout, active)
            self._changed.notify_all()

    def _add(
        self, environ: Mapping[str, Any], began: float, timeout: float, active: frozenset[str]
    ) -> None:
        address, agent = (str(environ.get(key, "")) for key in ("REMOTE_ADDR", "HTTP_USER_AGENT"))
        key = (address[:200], agent[:200])
        known = self._scrapers.pop(key, None)
        before = zip(known.visits, known.active, strict=True) if known else ()
        # In order of their begin: an older one may have taken longer.
        kept = sorted((*before, (began, active)), key=lambda visit: visit[0])[-_VISITS_KEPT:]
        visits, runs = zip(*kept, strict=True)
        name = clean(f"{address} {agent}".strip())
        self._scrapers[key] = Scraper(name=name, timeout=timeout, visits=visits, active=runs)
        for old in list(self._scrapers)[:-_MOST_SCRAPERS]:
            del self._scrapers[old]

    def find(self, ended: frozenset[str]) -> dict[tuple[str, str], Scraper]:
        """The scrapers whose last visit found one of these runs active, by what tells them apart."""
        with self._changed:
            return {key: one for key, one in self._scrapers.items() if one.saw & ended}

    def await_any(self, seconds: float) -> bool:
        """Wait until a scrape by anybody that begins after now was answered; whether it was."""
        now = time.monotonic()
        with self._changed:
            return self._changed.wait_for(lambda: self._last_visit > now, seconds)

    def await_each(self, expected: Mapping[tuple[str, str], Expected], limit: float) -> set[str]:
        """Wait until each has come as often as is expected after now; the names of those that have not.

        Nobody is waited for past the time at which it is expected, or the limit.
        """
        now = time.monotonic()
        with self._changed:
            while waited := self._missing(expected, now):
                spent = time.monotonic() - now
                left = min(limit, max(expected[key].last for key in waited)) - spent
                if left <= 0 or not self._changed.wait(left):
                    break
            return {self._scrapers[key].name for key in self._missing(expected, now)}

    def _missing(
        self, expected: Mapping[tuple[str, str], Expected], since: float
    ) -> list[tuple[str, str]]:
        return [
            key
            for key, due in expected.items()
            if key in self._scrapers
            and sum(began > since for began in self._scrapers[key].visits) < due.visits
        ]


def _read_timeout(environ: Mapping[str, Any]) -> float | None:
    try:
        seconds = float(environ[_TIMEOUT_HEADER])
    except (KeyError, ValueError):
        return None
    return seconds if 0 < seconds < 1e6 else None
