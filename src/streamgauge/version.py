"""The version, and the command that prints it. Imports nothing, so that everything may import it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

__version__ = "0.1.0"


def add_parser(commands: Any) -> None:
    """Add `version` to the command line."""
    parser = commands.add_parser("version", help="print the version")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the version."""
    import json  # noqa: PLC0415 - this module is imported everywhere
    import sys  # noqa: PLC0415

    text = json.dumps({"version": __version__}) if args.json else f"streamgauge {__version__}"
    sys.stdout.write(text + "\n")
    return 0
