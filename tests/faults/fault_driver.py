"""A Spark driver with the agent, whose streaming query can be exchanged and broken from outside.

    python fault_driver.py FOLDER PORT TIME_SCALE

FOLDER/plan.json says which query to run; when its number changes, the query is stopped and the new one
started. Files in FOLDER/switches break things while they exist:

    hang      foreachBatch does not return          fail      it raises in every Nth batch
    retry     it runs one job after the other       full      it writes to a full disk
    slow      every row takes so many times as long tasks     a batch of so many slow tasks
    stop      the query is stopped, and started again when the file is gone
    reset     the same, and the checkpoint is deleted in between
    stay      a failed query is not started again
    absent    no query is started
    session   all queries and the session are stopped; a new session is made when the file is gone
    exit      all queries and the session are stopped, and the process exits
    survive   the process lives on after its JVM is gone
    deaf      our listener is removed               block     the agent's worker is blocked
    flap      our listener is removed, and back for a moment every so many seconds

The folder's `log` gets a line for whatever the driver does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from fault_queries import TASK as TASK  # noqa: PLC0414 - the recording's driver takes it from here
from fault_queries import Job, Switches, make_session, warm_up
from pyspark.sql import SparkSession

from streamgauge import TelemetryListener
from streamgauge.exporters import Exporter
from streamgauge.listener import watchdog
from streamgauge.listener.classic import driver as agent_driver
from streamgauge.model import stall, transitions, verdict

MOMENT = 0.3  # seconds that a listener which flaps is back


class Blocker(Exporter):
    """An exporter that blocks the agent's worker while its switch is on."""

    name = "blocker"

    def __init__(self, switches: Switches) -> None:
        self._switches = switches

    def handle(self, event: Any, query: Any) -> None:
        """Hold the worker."""
        self._switches.wait("block")

    def observe(self, query: Any) -> None:
        """Hold the worker."""
        self._switches.wait("block")


class Stage(Job):
    """The query of the plan, and what the switches do to its driver."""

    def __init__(
        self, spark: SparkSession, folder: Path, settings: dict[str, Any], scale: float = 0.0
    ) -> None:
        super().__init__(spark, folder)
        self.scale = scale
        self.settings = settings
        self.listener: TelemetryListener | None = None

    # ---- the agent -------------------------------------------------------------------------

    def listen(self) -> None:
        """Add the agent's listener, or remove it while its switch is on."""
        period = self.switches.value("flap")
        away = bool(period) and time.monotonic() % period > MOMENT
        deaf = self.switches.on("deaf") or away
        if deaf and self.listener is not None:
            self.spark.streams.removeListener(self.listener)
            self.listener = None
            self.say("deaf")
        elif not deaf and self.listener is None:
            blocker = [Blocker(self.switches)] if self.settings.pop("first", True) else []
            self.listener = TelemetryListener(exporters=blocker, **self.settings)
            self.spark.streams.addListener(self.listener)

    # ---- the session and the process -------------------------------------------------------

    def stop_all(self) -> None:
        """Stop every query and the session, as a job that ends as planned does."""
        for query in self.spark.streams.active:
            query.stop()
        self.spark.stop()
        self.say("session stopped")

    def leave(self) -> NoReturn:
        """Stop everything and exit."""
        self.stop_all()
        sys.exit(0)

    def renew(self) -> None:
        """Stop everything, wait while the switch is on, and make a new session."""
        self.stop_all()
        self.switches.wait("session")
        self.spark = make_session(self.folder, self.scale)
        self.listener = None
        self.listen()

    # ---- the loop --------------------------------------------------------------------------

    def read(self) -> dict[str, Any]:
        """The plan as it is now."""
        try:
            plan: dict[str, Any] = json.loads((self.folder / "plan.json").read_text())
        except (OSError, ValueError):
            return self.plan
        return plan

    def changed(self) -> bool:
        """Whether another plan is there."""
        return self.read().get("number") != self.plan.get("number")

    def run(self) -> None:
        """Keep the plan's query going as the switches say, plan after plan."""
        while True:
            self.plan = self.read()
            more = [self.start(name) for name in self.plan.get("more", [])]
            if self.plan.get("shared"):
                first = self.start(self.plan["query"])
                more.append(self.share())
            while not self.changed():
                if self.switches.on("absent"):
                    time.sleep(0.05)
                    continue
                query = first if self.plan.get("shared") else self.start(self.plan["query"])
                self.watch(query)
                self.after(query)
            for query in more:
                query.stop()

    def watch(self, query: Any) -> None:
        """Wait for the query's end, or end it when a switch or another plan says so."""
        while query.isActive:
            if self.switches.on("exit"):
                self.leave()
            if self.switches.on("session"):
                self.renew()
            elif self.changed() or self.switches.on("stop") or self.switches.on("reset"):
                query.stop()
            self.listen()
            time.sleep(0.05)
        self.say("ended")

    def after(self, query: Any) -> None:
        """What is done before the next start."""
        failed = query.exception() is not None
        while not self.changed() and (
            self.switches.on("stop")
            or (failed and self.switches.on("stay"))
            or (not failed and "availableNow" in self.plan["trigger"])
        ):
            time.sleep(0.05)
        if self.switches.on("reset"):
            shutil.rmtree(self.folder / f"checkpoint-{self.plan['query']}")
            (self.folder / "switches" / "reset").unlink()
            self.say("reset")
        if failed:
            time.sleep(0.5)


def hurry(scale: float) -> None:
    """Scale the agent's own durations as the rules' are."""
    for module, names in (
        (verdict, ("BLIND_SECONDS", "RESTART_WINDOW_SECONDS", "TREND_SECONDS", "_QUIET_SECONDS")),
        (stall, ("RETRY_SECONDS", "REPEAT_SECONDS")),
        (agent_driver, ("_TASKS_AFTER_SECONDS",)),
        (transitions, ("_MOMENT_GAP_SECONDS", "RECOVERY_SECONDS")),
        (watchdog, ("_OVERDUE_SECONDS", "UNANSWERED_SECONDS")),
    ):
        for name in names:
            setattr(module, name, getattr(module, name) * scale)


def main(folder: Path, port: str, scale: float) -> None:
    """Run the plans."""
    settings = json.loads((folder / "settings.json").read_text())
    settings |= {"metrics_address": f"127.0.0.1:{port}", "app": "shop"}
    hurry(scale)
    spark = make_session(folder, scale)
    warm_up(spark, folder / f"warm-{os.getpid()}")
    stage = Stage(spark, folder, settings, scale)
    stage.listen()
    stage.say("ready")
    while not (folder / "plan.json").exists():
        time.sleep(0.05)
    try:
        stage.run()
    except Exception:
        stage.switches.wait("survive")
        raise


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
