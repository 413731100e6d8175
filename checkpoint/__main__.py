"""`python -m streamgauge.checkpoint show PATH`: the commands without the rest of streamgauge."""

from __future__ import annotations

import argparse
import sys

from .commands import add_commands


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit status."""
    parser = argparse.ArgumentParser(prog="streamgauge checkpoint")
    add_commands(parser.add_subparsers(dest="checkpoint_command", required=True))
    args = parser.parse_args(arguments)
    status: int = args.run(args)
    return status


if __name__ == "__main__":
    sys.exit(main())
