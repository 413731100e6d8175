"""The command line: `streamgauge <command>`; output for people, `--json` for programs.

Exit status: 0 = fine, 1 = found something wrong, 2 = could not look.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from streamgauge.checkpoint import commands as checkpoint_commands
from streamgauge.exporters.metrics.table import METRICS
from streamgauge.grafana import kubernetes
from streamgauge.grafana.alerts import commands as rules_commands
from streamgauge.grafana.dashboards import commands as dashboards_commands

from . import demo, evidence, lag
from .masking import mask
from .version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    args = _parser().parse_args(arguments)
    if args.command == "run":
        return _run(args)  # whatever the job raises is its own
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough
        return 0
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        told = mask(f"{type(error).__name__}: {error}")
        sys.stderr.write(f"streamgauge: {told} (a bug; PYTHONDEVMODE=1 shows the traceback)\n")
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamgauge",
        description="The telemetry agent for Apache Spark Structured Streaming.",
        epilog="Exit status: 0 = fine, 1 = found something wrong, 2 = could not look.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    demo.add_parser(commands)
    checkpoint_commands.add_parser(commands)
    evidence.add_parser(commands)
    lag.add_parser(commands)
    rules_commands.add_parser(commands)
    dashboards_commands.add_parser(commands)
    kubernetes.add_parser(commands)
    _add_metrics(commands)
    _add_run(commands)
    _add_version(commands)
    return parser


def _add_metrics(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    metrics = commands.add_parser("metrics", help="list every series, its type, labels and meaning")
    metrics.add_argument("--json", action="store_true", help="for programs")
    metrics.set_defaults(run=_metrics)


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run",
        help="run a PySpark job unchanged, with the agent attached",
        description="Runs a job as `python job.py` would; settings are STREAMGAUGE_<FIELD> variables.",
        epilog='With spark-submit: spark-submit [options] "$(streamgauge run --script)" job.py',
    )
    run.add_argument("--script", action="store_true", help="print what to give to spark-submit")
    run.add_argument("job", nargs="?", help="the job's file")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="the job's own arguments")


def _run(args: argparse.Namespace) -> int:
    if args.script:
        _print(str(Path(__file__).with_name("submit.py")))
        return 0
    if args.job is None or not Path(args.job).is_file():
        sys.stderr.write(f"streamgauge: there is no job {args.job or ''}; name a file to run\n")
        return 2
    from .job import run  # noqa: PLC0415 - needs PySpark

    run(args.job, args.arguments)
    return 0


def _add_version(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    version = commands.add_parser("version", help="print the version")
    version.add_argument("--json", action="store_true", help="for programs")
    version.set_defaults(run=_version)


def _metrics(args: argparse.Namespace) -> int:
    if args.json:
        rows = [
            {**msgspec.to_builtins(metric), "name": metric.full_name} for metric in METRICS.values()
        ]
        _print(json.dumps(rows, indent=2))
        return 0
    for metric in METRICS.values():
        labels = ", ".join(metric.labels)
        _print(f"{metric.full_name}{{{labels}}}  {metric.kind}\n    {metric.help}")
    return 0


def _version(args: argparse.Namespace) -> int:
    _print(json.dumps({"version": __version__}) if args.json else f"streamgauge {__version__}")
    return 0


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
