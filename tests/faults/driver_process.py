"""The process of the fault lab's driver: how it starts, ends, is signalled, and what time it has."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from alert_stack import free_port, wait_until
from promtool import ROOT


class DriverProcess:
    """A Spark driver in a folder. With `clock` its wall clock can be stepped."""

    def __init__(self, folder: Path, scale: float, *, clock: bool = False) -> None:
        self.folder = folder
        self.scale = scale
        self.clock = folder / "clock" if clock else None
        self.port = free_port()
        self.driver: subprocess.Popen[bytes] | None = None
        self.broken_at = 0.0
        self.ahead = 0  # seconds that its clock is ahead of everybody else's

    def start_driver(self) -> None:
        """Start the Spark driver; a second call starts another one after the first is gone."""
        arguments = (str(self.folder), str(self.port), repr(self.scale))
        with (self.folder / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent / "fault_driver.py"), *arguments],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                env={**os.environ, **self._faked_clock()},
            )

    def _faked_clock(self) -> dict[str, str]:
        if self.clock is None:
            return {}
        if not self.clock.exists():
            self.step_clock(0)
        return {
            "LD_PRELOAD": faketime(),
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # with it, waits of a JVM end at once or late
            "FAKETIME_CACHE_DURATION": "1",
        }

    def step_clock(self, seconds: int) -> None:
        """Put the wall clock of the driver and its JVM so far ahead of everybody else's."""
        if self.clock is None:
            raise ValueError("this lab's driver was started without a clock of its own")
        hidden = self.folder / "clock.tmp"
        hidden.write_text(f"{seconds:+d}\n")
        hidden.rename(self.clock)
        self.ahead = seconds
        self.broken_at = time.time()

    def _process(self) -> subprocess.Popen[bytes]:
        if self.driver is None:
            raise ValueError("there is no driver")
        return self.driver

    # ---- ends of the driver ----------------------------------------------------------------

    def kill(self) -> None:
        """Kill the driver and its JVM at once, as the kernel does when memory runs out."""
        if self.driver is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.driver = None

    def terminate(self) -> None:
        """Ask the driver to end, as a cluster does, and wait until it has."""
        self._process().terminate()
        self.wait_exit()

    def wait_exit(self, deadline: float = 60) -> int:
        """Wait until the driver's process is gone by itself; its status."""
        status = self._process().wait(deadline)
        self.kill()
        return status

    def signal_jvm(self, number: signal.Signals) -> None:
        """Send a signal to the driver's JVM alone; the fault begins now."""
        pid = self._process().pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        (jvm,) = (int(c) for c in children if "java" in Path(f"/proc/{c}/comm").read_text())
        os.kill(jvm, number)
        self.broken_at = time.time()

    # ---- what it says -----------------------------------------------------------------------

    def wait_said(self, what: str, since: float, deadline: float = 90) -> float:
        """Wait until the driver has said something in its log since then; when it did."""
        found: list[float] = wait_until(
            lambda: [at for at in self.said(what) if at >= since],
            lambda: f"{what!r} in the log; {self.tail()}",
            deadline,
        )
        return found[0]

    def said(self, what: str) -> list[float]:
        """The times at which the driver said something in its log."""
        lines = (self.folder / "log").read_text().splitlines()
        found = [line.split(" ", 1) for line in lines]
        return [float(at) for at, words in found if words == what]

    def tail(self) -> str:
        """The driver's last words."""
        log = self.folder / "driver.log"
        return log.read_text()[-1500:] if log.exists() else "no driver"


def faketime() -> str:
    """The library that steps a process's clock, for LD_PRELOAD; fails with how to get it."""
    for found in (ROOT / ".programs" / "root").glob("usr/lib/*/faketime/libfaketime.so.1"):
        return str(found)
    raise AssertionError("libfaketime is not here; `python3 scripts/setup.py clock` brings it")
