"""`streamgauge run`: runs a PySpark job unchanged, with the agent attached to the sessions it makes.

The job runs in this process as `python job.py` would run it: its exit status, output and signals are
its own. What goes wrong on our side is one line on standard error, and the job goes on.
"""

from __future__ import annotations

import argparse
import builtins
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

_HOOK = "_streamgauge_hook"


def add_parser(commands: Any) -> None:
    """Add `run` to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a PySpark job unchanged, with the agent attached",
        description="Runs a job as `python job.py` would; settings are STREAMGAUGE_<FIELD> variables.",
        epilog='With spark-submit: spark-submit [options] "$(streamgauge run --script)" job.py',
    )
    parser.add_argument("--script", action="store_true", help="print what to give to spark-submit")
    parser.add_argument("job", nargs="?", help="the job's file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the job's own arguments")
    parser.set_defaults(run=run_command)


def run_command(args: argparse.Namespace) -> int:
    """Run the job, or print the script for spark-submit; raises what the job raises."""
    if args.script:
        sys.stdout.write(f"{Path(__file__).with_name('submit.py')}\n")
        return 0
    wrong = _find_wrong(args.job)
    if wrong:
        sys.stderr.write(f"streamgauge run: {wrong}\n")
        return 2
    run(args.job, args.arguments)
    return 0


def _find_wrong(job: str | None) -> str | None:
    """Why the job can't be run; None when it can be tried."""
    if job is None:
        return "no job given; usage: streamgauge run job.py [arguments of the job]"
    if Path(job).is_dir():
        return f"{job} is a folder; name the job's Python file in it"
    return None if Path(job).is_file() else f"there is no job {job}; name a Python file to run"


def run(path: str, arguments: Sequence[str]) -> None:
    """Run a job to its end; raises what it raises, and `OSError` when it can't be read."""
    source = Path(path).read_bytes()
    hook_sessions()
    _hide_frames_before(path)
    started_from = Path(sys.argv[0]).resolve().parent
    if sys.path and Path(sys.path[0]).resolve() == started_from:
        sys.path.pop(0)  # a script's folder is the job's, not ours
    sys.path.insert(0, str(Path(path).resolve().parent))
    sys.argv = [path, *arguments]
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __spec__=None)
    sys.modules["__main__"] = main  # for good: threads and pickles of the job look there
    exec(compile(source, path, "exec"), main.__dict__)  # noqa: S102 - that is the purpose


def hook_sessions() -> None:
    """Have the agent attached to each Spark application that this process begins."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - pyspark is an extra

    SparkSession.__init__ = _then(SparkSession.__init__, lambda self, _: self)
    for name in ("getOrCreate", "create"):
        method = getattr(SparkSession.Builder, name, None)  # 3.5 has no `create` for classic
        if method is not None:
            setattr(SparkSession.Builder, name, _then(method, lambda _, made: made))


def _then(method: Any, session_of: Callable[[Any, Any], Any]) -> Any:
    """The method, and the agent attached to what it made."""
    if hasattr(method, _HOOK):
        return method

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = method(self, *args, **kwargs)
        try:
            from .attachment import attach  # noqa: PLC0415 - needs PySpark

            attach(session_of(self, made))
        except Exception as error:  # noqa: BLE001 - the job must not notice
            sys.stderr.write(f"streamgauge: not attached: {error}\n")
        return made

    setattr(call, _HOOK, True)
    return call


def _hide_frames_before(path: str) -> None:
    """Have an uncaught exception of the job shown as if nothing had stood before it."""
    show = sys.excepthook

    def show_own(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        own = trace
        while own is not None and own.tb_frame.f_code.co_filename != path:
            own = own.tb_next
        unread = isinstance(error, SyntaxError) and error.filename == path  # nothing of it ran
        seen = own if own is not None or unread else trace
        show(kind, error.with_traceback(seen), seen)

    sys.excepthook = show_own
