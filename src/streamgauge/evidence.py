"""`streamgauge evidence`: all that is known of one query, running or dead, in one file.

From the metrics endpoint, the flight recorder and the checkpoint; whatever is at hand. Secrets are
masked; nothing is written but the bundle.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from streamgauge.checkpoint.errors import CannotLookError, CheckpointError
from streamgauge.checkpoint.evidence.bundle import Evidence, build_evidence
from streamgauge.checkpoint.evidence.running_query import fetch
from streamgauge.checkpoint.reader.checkpoint import read_checkpoint
from streamgauge.checkpoint.reader.report import make_report
from streamgauge.checkpoint.render.evidence_text import dump_evidence, render_evidence
from streamgauge.checkpoint.restart.forecast import forecast
from streamgauge.exporters.recorder import open_private

from .masking import mask

_LARGEST_RECORDING_CHARACTERS = 64 * 1024 * 1024


def add_parser(commands: Any) -> None:
    """Add `evidence` to the command line."""
    parser = commands.add_parser("evidence", help="all that is known of one query, in one file")
    parser.add_argument("--url", help="metrics endpoint, such as http://127.0.0.1:9465/metrics")
    parser.add_argument("--checkpoint", metavar="PATH", help="the query's checkpoint")
    parser.add_argument("--events", metavar="FILE", help="what the flight recorder wrote (.jsonl)")
    parser.add_argument("--query", metavar="NAME", help="name or id, where there are many")
    parser.add_argument("--out", metavar="DIR", help="write evidence.json and evidence.md there")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Gather, then print or write; 2 when a part that was asked for can't be had."""
    if not (args.url or args.checkpoint or args.events):
        sys.stderr.write("streamgauge evidence: give --url, --checkpoint or --events\n")
        return 2
    try:
        found = gather(args)
        if args.out:
            _write(Path(args.out), found)
            return 0
    except CheckpointError as error:
        sys.stderr.write(f"streamgauge evidence: {mask(str(error))}\n")
        return 2
    sys.stdout.write((dump_evidence(found) if args.json else render_evidence(found)) + "\n")
    return 0


def gather(args: argparse.Namespace) -> Evidence:
    """Read the parts that were named; raises `CheckpointError`."""
    seen = read_checkpoint(args.checkpoint) if args.checkpoint else None
    return build_evidence(
        metrics=fetch(args.url) if args.url else None,
        checkpoint=make_report(seen) if seen else None,
        forecast=forecast(seen) if seen else None,
        events=_read(Path(args.events)) if args.events else (),
        query=args.query,
    )


def _read(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST_RECORDING_CHARACTERS).splitlines()
    except OSError as error:
        raise CannotLookError(f"{path} can't be read: {error.strerror}") from None


def _write(folder: Path, found: Evidence) -> None:
    for name, text in (
        ("evidence.json", dump_evidence(found)),
        ("evidence.md", render_evidence(found)),
    ):
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open_private(path, os.O_TRUNC) as file:
                file.write(text + "\n")
        except OSError as error:
            raise CannotLookError(f"{path} can't be written: {error.strerror}") from None
        sys.stdout.write(f"{path}\n")
