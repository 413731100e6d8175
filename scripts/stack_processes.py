"""The processes of `make stack`: started in sessions of their own, remembered, ended, and no others.

A process is known by its id and by when it started, so that an id that was given away since is left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stack_services import LOGS, STACK, Service, base_environment

RECORD = STACK / "processes.json"
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PROC = Path("/proc")
_SECONDS_FIRST = 60


@dataclass(frozen=True)
class Running:
    """A service that was started: the first process of its session."""

    name: str
    pid: int
    started: int  # in ticks since the machine's start


@dataclass(frozen=True)
class _Seen:
    """What the kernel says of a process."""

    alive: bool
    session: int
    started: int


def _look(pid: int) -> _Seen | None:
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return _Seen(fields[0] not in "ZX", int(fields[3]), int(fields[19]))


def _names_our_folder(pid: int) -> bool:
    """Whether it got our environment; children of a service have it too."""
    try:
        return os.fsencode(STACK) in (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False


def start(service: Service) -> Running:
    """Start a service, with its log, and remember it; it outlives this process.

    Raises OSError where there is no such program, and SubprocessError when what is run first fails.
    """
    folder = STACK / service.name
    folder.mkdir(parents=True, exist_ok=True)
    given = {**base_environment(), **service.settings}
    with (LOGS / f"{service.name}.log").open("ab") as log:
        told = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        if service.first:
            subprocess.run(
                service.first, **told, cwd=folder, env=given, timeout=_SECONDS_FIRST, check=True
            )
        with _undisturbed():
            process = subprocess.Popen(
                service.command, **told, cwd=folder, env=given, start_new_session=True
            )
            seen = _look(process.pid)
            made = Running(service.name, process.pid, seen.started if seen else -1)
            _write([*remembered(), made])
    return made


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold interrupts back, so that no process is started and not remembered; they come after it.

    By handlers, which end with exec; a blocked signal would stay blocked in the service.
    """
    came: list[int] = []
    kept = {number: signal.getsignal(number) for number in _INTERRUPTS}
    for number, handler in kept.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def remembered() -> list[Running]:
    """What was started and not ended, in that order."""
    if not RECORD.exists():
        return []
    return [Running(*row) for row in json.loads(RECORD.read_text())]


def _write(running: list[Running]) -> None:
    RECORD.write_text(json.dumps([(one.name, one.pid, one.started) for one in running]))


def is_alive(running: Running) -> bool:
    """Whether the very process that was started still runs."""
    seen = _look(running.pid)
    return bool(seen and seen.alive and seen.started == running.started)


def members(running: Running) -> list[int]:
    """The living processes of a service, its children included."""
    first = _look(running.pid)
    if first and first.started != running.started:
        return []
    found = []
    for place in _PROC.iterdir():
        if place.name.isdigit() and (seen := _look(int(place.name))):
            ours = seen.alive and seen.session == running.pid
            if ours and _names_our_folder(int(place.name)):
                found.append(int(place.name))
    return found


def end(running: Running) -> bool:
    """End a service and its children, first kindly; whether all are gone."""
    for number, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 10)):
        for pid in members(running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if wait_until(lambda: not members(running), seconds):
            return True
    return False


def end_all() -> list[str]:
    """End everything, the last first; the names of what could not be ended."""
    left = [one for one in reversed(remembered()) if not end(one)]
    if left:
        _write(left[::-1])
    return [one.name for one in left]


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition with a deadline; whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
