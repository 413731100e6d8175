"""The command line: `streamgauge <command>`; output for people, `--json` for programs.

Exit status: 0 = fine, 1 = found something wrong, 2 = could not look.

The module of a command is imported only when that command is used: `--help` needs the table alone.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from .version import __version__

TYPE_CHECKING = False  # typing's own costs as much as argparse
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

COMMANDS = {  # name → help line, module whose `add_parser` adds the command
    "demo": ("watch the agent at work on a local Spark", "streamgauge.demo"),
    "checkpoint": (
        "read a checkpoint and foresee the restart",
        "streamgauge.checkpoint.commands",
    ),
    "evidence": ("all that is known of one query, in one file", "streamgauge.evidence"),
    "lag": (
        "how far behind a Kafka query is, from its checkpoint and the broker",
        "streamgauge.lag",
    ),
    "rules": ("the alert rules: list, export, check", "streamgauge.grafana.alerts.commands"),
    "dashboards": ("the Grafana dashboards: export", "streamgauge.grafana.dashboards.commands"),
    "export": ("everything for one platform: kubernetes", "streamgauge.grafana.kubernetes"),
    "metrics": ("list every series, its type, labels and meaning", "streamgauge.metric_list"),
    "run": ("run a PySpark job unchanged, with the agent attached", "streamgauge.job"),
    "version": ("print the version", "streamgauge.version"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    # No option before the command takes a value: the first command name is the command, or none is.
    asked = next((word for word in words if word in COMMANDS), None)
    args = build_parser(() if asked is None else (asked,)).parse_args(words)
    if args.command == "run":
        return _run(args)  # whatever the job raises is its own
    try:
        return _run(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough
        return 0
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        from .masking import mask  # noqa: PLC0415 - most commands end well

        told = mask(f"{type(error).__name__}: {error}")
        sys.stderr.write(f"streamgauge: {told} (a bug; PYTHONDEVMODE=1 shows the traceback)\n")
        return 2


def _run(args: argparse.Namespace) -> int:
    status: int = args.run(args)
    return status


def build_parser(complete: Collection[str] = COMMANDS.keys()) -> argparse.ArgumentParser:
    """The parser; it knows the arguments of the `complete` commands, and of the others the help line."""
    parser = argparse.ArgumentParser(
        prog="streamgauge",
        description="The telemetry agent for Apache Spark Structured Streaming.",
        epilog="Exit status: 0 = fine, 1 = found something wrong, 2 = could not look.",
    )
    parser.add_argument("--version", action="version", version=f"streamgauge {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, (text, module) in COMMANDS.items():
        if name in complete:
            import_module(module).add_parser(commands)
        else:
            commands.add_parser(name, help=text)
    return parser


if __name__ == "__main__":
    sys.exit(main())
