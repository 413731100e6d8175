"""`streamgauge metrics`: every series of the agent, its type, labels and meaning."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.exporters.metrics.table import METRICS

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Add `metrics` to the command line."""
    parser = commands.add_parser("metrics", help="list every series, its type, labels and meaning")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table of series."""
    if args.json:
        rows = [
            {**msgspec.to_builtins(metric), "name": metric.full_name} for metric in METRICS.values()
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    for metric in METRICS.values():
        labels = ", ".join(metric.labels)
        sys.stdout.write(f"{metric.full_name}{{{labels}}}  {metric.kind}\n    {metric.help}\n")
    return 0
