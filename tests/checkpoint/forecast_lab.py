"""The laboratory: bases built once a run, a copy for each case, the restart, the rows written."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from forecast_bases import Base, Place, bases
from forecast_case import Case
from forecast_spark import Outcome, run, start_waiting, write_input

if TYPE_CHECKING:
    from pathlib import Path

BATCHES = 4


class Laboratory:
    """Builds each base when it is first asked for; every case gets a copy of it."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark = spark
        self.root = root
        self.line = ".".join(spark.version.split(".")[:2])
        self.bases = bases()
        self.count = 0
        self.built: dict[str, Place] = {}
        self.batches: dict[str, set[int]] = {}

    def base(self, name: str) -> Place:
        """The base of this name; a fifth input file waits for the restart."""
        if name not in self.built:
            self.built[name] = self.build(self.bases[name])
        return self.built[name]

    def build(self, base: Base) -> Place:
        """Run the base's query to its end."""
        home = self.root / base.name
        place = Place(home / "checkpoint", home / "in", home / "out")
        second = place.folder.with_name("in-2")
        for folder in (place.folder, second):
            for number in range(BATCHES):
                write_input(folder, number)
        self.batches[base.name] = set()
        for _ in range(base.runs):
            outcome = run(
                self.spark,
                base.query,
                place.folder,
                place.checkpoint,
                conf=base.conf,
                output=place.output,
                **base.run,
            )
            assert not outcome.failed, f"base {base.name}: {outcome.error()}"
            self.batches[base.name] |= set(outcome.batches)
        for folder in (place.folder, second):
            write_input(folder, BATCHES, rows=2)
        return place

    def done(self, name: str) -> set[int]:
        """Batches that a base handed to its sink."""
        return self.batches[name]

    def fits(self, case: Case) -> bool:
        """Whether this Spark line has the case."""
        return self.line in case.lines and self.line in self.bases[case.base].lines

    def prepare(self, case: Case) -> Place:
        """A changed copy of the case's base."""
        base = self.base(case.base)
        self.count += 1
        home = self.root / f"case-{self.count}"
        home.mkdir()
        place = Place(home / "checkpoint", base.folder, home / "out")
        shutil.copytree(base.checkpoint, place.checkpoint)
        if base.output.is_dir():
            shutil.copytree(base.output, place.output)
        case.change(place)
        return place

    def restart(self, case: Case, place: Place) -> Outcome:
        """Really start the case's query on its checkpoint."""
        base = self.bases[case.base]
        conf = base.conf if case.conf is None else base.conf | case.conf
        settings = base.run | case.run
        if "until" in base.run and "until" not in case.run:
            settings.pop("until")
        if "trigger" in base.run and "trigger" not in case.run:
            settings.pop("trigger")
        if case.active == "other":
            settings["meanwhile"] = lambda batch: place.write(f"commits/{batch}", "v1\n{}")
        return run(
            self.spark,
            case.query or base.query,
            place.folder,
            place.checkpoint,
            conf=conf,
            output=place.output,
            **settings,
        )

    def activate(self, case: Case, place: Place) -> Any:
        """The other run of a case: on its checkpoint, or on the one it was copied from."""
        if case.active not in ("same", "copy"):
            return None
        other = place.checkpoint
        if case.active == "copy":
            other = place.checkpoint.with_name("original")
            shutil.copytree(place.checkpoint, other)
        return start_waiting(self.spark, self.bases[case.base].query, place.folder, other)
