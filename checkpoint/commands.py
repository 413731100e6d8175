"""`streamgauge checkpoint …`: show, restart, plan, preflight, lint, diff.

Each command prints for people, or JSON with `--json`, and ends with 0 (fine), 1 (found something
wrong) or 2 (could not look). A command imports what it needs when it runs: `show` must not wait for
what only `plan` takes.
"""
# ruff: noqa: PLC0415 - see above: each command pays for its own imports alone

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from streamgauge.masking import mask
from streamgauge.model.sinks import FILE_FORMATS, SINKS, find_sink

from .errors import CannotLookError, CheckpointError
from .reader.spark_lines import LINES, NEWEST, parse_line
from .remedies.goal_names import GOALS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .restart.circumstances import Restart
    from .restart.verdict import Verdict

FINE, WRONG, BLIND = 0, 1, 2
_TYPO = 0.74  # how alike two names are, of 1, when one is taken for a typo of the other


def add_parser(subparsers: Any) -> None:
    """Add the command `checkpoint` and its own commands; each sets `run(args) -> int`."""
    parser = subparsers.add_parser("checkpoint", help="read a checkpoint and foresee the restart")
    add_commands(parser.add_subparsers(dest="checkpoint_command", required=True))


def add_commands(commands: Any) -> None:
    """Add show, restart, plan, preflight, lint and diff."""
    show = _command(commands, "show", "what the checkpoint holds", run_show)
    show.add_argument("path", metavar="PATH")
    show.add_argument(
        "--batches",
        type=_count,
        default=0,
        metavar="N",
        help="tell the last N batches one by one: times, watermark, offsets",
    )
    restart = _command(commands, "restart", "what a restart will do", run_restart)
    _add_circumstances(restart)
    plan = _command(commands, "plan", "the steps of a remedy; it only prints", run_plan)
    _add_circumstances(plan)
    plan.add_argument("--goal", choices=GOALS)
    plan.add_argument("--first-batch", type=int, help="first batch to replay or backfill")
    plan.add_argument("--last-batch", type=int, help="last batch to replay or backfill")
    check = _command(commands, "preflight", "compare new code with the checkpoint", run_preflight)
    _add_circumstances(check)
    check.add_argument("--plan", required=True, metavar="FILE", help="JSON that describe() wrote")
    faults = _command(commands, "lint", "faults of one or many checkpoints", run_lint)
    faults.add_argument("paths", metavar="PATH", nargs="+")
    changes = _command(commands, "diff", "what moved between two checkpoints", run_diff)
    changes.add_argument("before", metavar="A")
    changes.add_argument("after", metavar="B")


def _command(
    commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=_guarded(run))
    return parser


def _guarded(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """A place that can't be looked at is one line and status 2."""

    def guarded(args: argparse.Namespace) -> int:
        try:
            return run(args)
        except CheckpointError as error:
            sys.stderr.write(f"streamgauge: {mask(str(error))}\n")
            return BLIND

    return guarded


def _add_circumstances(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--spark", type=_line, metavar="LINE", help=f"one of {', '.join(LINES)}")
    parser.add_argument(
        *("--sink",),
        type=_sink,
        metavar="SINK",
        help=f"one of {', '.join(SINKS)}, or a file format; of any other, a replay is unknown",
    )
    parser.add_argument(
        "--running", metavar="URL", help="take sink and output mode from this metrics page"
    )
    parser.add_argument("--output", metavar="PATH", help="the file sink's directory")
    parser.add_argument("--output-mode", choices=("append", "update", "complete"))
    parser.add_argument(
        "--trigger", choices=("processingTime", "availableNow", "once", "continuous")
    )
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", type=_pair)
    parser.add_argument(
        "--active", choices=("same", "other"), help="a run is active: in which application"
    )
    parser.add_argument("--async-progress", action=argparse.BooleanOptionalAction, default=None)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of batches")
    return int(text)


def _line(text: str) -> str:
    try:
        return parse_line(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _sink(text: str) -> str:
    """A sink's name; one that is nearly a known name is a typo, any other may be a sink of the user's own."""
    if find_sink(text) is not None:
        return text
    from difflib import get_close_matches

    known = {name.lower(): name for name in (*SINKS, *FILE_FORMATS)}
    near = get_close_matches(text.lower(), known, n=1, cutoff=_TYPO)
    if near:
        meant = f"did you mean {known[near[0]]!r}?"
        raise argparse.ArgumentTypeError(
            f"there is no sink {text!r}; {meant} known: {', '.join(SINKS)}"
        )
    return text


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _circumstances(args: argparse.Namespace) -> Restart:
    from .restart.circumstances import Restart

    sink, mode = _ask_running(args) if args.running else (None, None)
    return Restart(
        spark=args.spark or NEWEST,
        sink=args.sink or ("file" if args.output else None) or sink,
        output_mode=args.output_mode or mode,
        trigger=args.trigger,
        conf=dict(args.conf),
        async_progress=args.async_progress,
        sink_batches=_read_sink_batches(args),
        active=args.active,
    )


def _ask_running(args: argparse.Namespace) -> tuple[str | None, str | None]:
    """Sink and output mode, from the agent of the running query."""
    from .evidence.running_query import fetch, sink_of
    from .reader.checkpoint import read_checkpoint

    return sink_of(fetch(args.running), read_checkpoint(args.path).query_id)


def _read_sink_batches(args: argparse.Namespace) -> int | None:
    from .reader.sink_log import read_sink_batches

    return read_sink_batches(args.output) if args.output else None


def _print(args: argparse.Namespace, *, record: Callable[[], Any], text: Callable[[], str]) -> None:
    from .render.wording import mask_lines, to_json

    sys.stdout.write(f"{to_json(record()) if args.json else mask_lines(text())}\n")


def _status(verdict: Verdict) -> int:
    from .restart.verdict import Verdict

    return {Verdict.SAFE: FINE, Verdict.UNKNOWN: BLIND}.get(verdict, WRONG)


def run_show(args: argparse.Namespace) -> int:
    """Print the report; 1 when a file in it is wrong."""
    from .reader.checkpoint import read_checkpoint
    from .reader.report import make_report
    from .render.report_text import render_report

    report = make_report(read_checkpoint(args.path), batches=args.batches)
    _print(args, record=lambda: report, text=lambda: render_report(report))
    return WRONG if report.problems else FINE


def run_restart(args: argparse.Namespace) -> int:
    """Print the forecast; 0 safe, 2 unknown, 1 everything else."""
    from .reader.checkpoint import read_checkpoint
    from .render.forecast_text import render_forecast
    from .render.records import forecast_record
    from .restart.forecast import forecast

    seen = forecast(read_checkpoint(args.path), _circumstances(args))
    _print(args, record=lambda: forecast_record(seen), text=lambda: render_forecast(seen))
    return _status(seen.verdict)


def run_plan(args: argparse.Namespace) -> int:
    """Print the steps; 1 when the goal asked for is not possible."""
    from .reader.checkpoint import read_checkpoint
    from .remedies.plan import make_plan
    from .render.records import plan_record
    from .render.remedies_text import render_plan

    plan = make_plan(
        read_checkpoint(args.path),
        args.goal,
        _circumstances(args),
        first=args.first_batch,
        last=args.last_batch,
    )
    _print(args, record=lambda: plan_record(plan), text=lambda: render_plan(plan))
    return WRONG if any(each.possible is False for each in plan.goals) and args.goal else FINE


def run_preflight(args: argparse.Namespace) -> int:
    """Print the comparison; 0 allowed, 1 duplicates, loss or failure, 2 could not tell."""
    from .preflight_check.compare import preflight
    from .preflight_check.description import load_description
    from .reader.checkpoint import read_checkpoint
    from .render.records import preflight_record
    from .render.remedies_text import render_preflight

    plan = load_description(_read_file(args.plan))
    batches = _read_sink_batches(args)
    found = preflight(
        read_checkpoint(args.path), plan, spark=args.spark, sink_batches=batches, active=args.active
    )
    _print(args, record=lambda: preflight_record(found), text=lambda: render_preflight(found))
    return found.status


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not worth its import here
            return file.read()
    except OSError as error:
        raise CannotLookError(str(error.strerror), place=path) from error


def run_lint(args: argparse.Namespace) -> int:
    """Print the findings of all checkpoints; 1 when one of them does harm."""
    from .audit.lint import lint
    from .reader.checkpoint import read_checkpoint
    from .render.audit_text import render_findings

    findings = lint(read_checkpoint(path) for path in args.paths)
    _print(args, record=lambda: findings, text=lambda: render_findings(findings))
    return WRONG if any(not each.harmless for each in findings) else FINE


def run_diff(args: argparse.Namespace) -> int:
    """Print what moved; 1 when the two are not of one query."""
    from .audit.diff import diff
    from .reader.checkpoint import read_checkpoint
    from .reader.report import make_report
    from .render.audit_text import render_difference

    before, after = read_checkpoint(args.before), read_checkpoint(args.after)
    found = diff(before, after, (make_report(before), make_report(after)))
    _print(args, record=lambda: found, text=lambda: render_difference(found))
    return FINE if found.same_query else WRONG
