"""Scrapes a driver's page again and again, as a Prometheus would, and keeps every page."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from ground_truth import Truth
from stage import page, value, wait_for

STATES = frozenset(
    {
        *("starting", "running", "idle", "catching_up", "falling_behind"),
        *("stalled", "restarting", "failed", "stopped", "blind"),
    }
)


class Page(NamedTuple):
    """A page, when it was asked for, and how many batches were in the commit log just after it."""

    at: float
    samples: dict
    committed: int

    def value(self, name: str, **labels: str) -> float | None:
        """One sample of the query, or None."""
        return value(self.samples, name, **labels)

    def agent(self, name: str, **labels: str) -> float | None:
        """One sample of the agent itself."""
        return value(self.samples, name, query=None, **labels)

    @property
    def states(self) -> set[str]:
        """The verdict; one, once the query is there."""
        return {state for state in STATES if self.value("query_state", state=state)}

    @property
    def info(self) -> dict[str, str]:
        """The labels of `query_info`."""
        (found,) = [dict(pairs) for name, pairs in self.samples if name.endswith("_query_info")]
        return found


class PageWatch:
    """Looks until it is stopped, at the address that the driver has written to its file."""

    def __init__(self, sd_file: Path, truth: Truth, last: str = "") -> None:
        """`last` is the address of the driver before, which left its file when it was killed."""
        self.pages: list[Page] = []
        self._truth = truth
        self._ended = threading.Event()
        self.target = wait_for(lambda: _target(sd_file, last), 90, "the driver's address")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def until(self, condition, what: str, seconds: float = 120) -> Page:
        """The first page from now on of which a condition holds."""
        now = time.time()

        def holds() -> Page | None:
            newest = self.pages[-1] if self.pages else None
            return newest if newest and newest.at > now and condition(newest) else None

        return wait_for(holds, seconds, what)

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            with contextlib.suppress(OSError, HTTPException):  # the driver was killed
                at = time.time()
                with urllib.request.urlopen(f"http://{self.target}/metrics", timeout=20) as answer:
                    samples = page(answer.read().decode())
                self.pages.append(Page(at, samples, len(self._truth.committed())))


def _target(file: Path, last: str) -> str | None:
    with contextlib.suppress(OSError):
        ((target,),) = [group["targets"] for group in json.loads(file.read_text())]
        return target if target != last else None
    return None
