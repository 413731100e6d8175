"""What to do about a query that is not well: its runbook, and the command to begin with. Pure."""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

from streamgauge.model.query import Query
from streamgauge.model.sinks import find_sink
from streamgauge.model.verdict import Verdict

ADDRESS = "{address}"  # for the page to fill in: it knows where it was asked for
_RUNBOOKS = {
    "stalled": "SparkStreamQueryStalled",
    "failed": "SparkStreamQueryFailed",
    "restarting": "SparkStreamRestartLoop",
    "falling_behind": "SparkStreamFallingBehind",
    "blind": "SparkStreamAgentBlind",
}
_ENDED_UNKNOWN = "SparkStreamQueryVanished"
_NAME = re.compile(r"/runbooks/([A-Za-z]+)")


class NextStep(Struct, frozen=True):
    """Name of a runbook, and a command for a shell."""

    runbook: str
    command: str


def next_step_of(query: Query, verdict: Verdict, sink: str | None) -> NextStep | None:
    """What to do now; None for a query that is well."""
    lost = query.end is not None and query.end.outcome == "unknown"
    runbook = _ENDED_UNKNOWN if lost else _RUNBOOKS.get(verdict.state)
    if runbook is None:
        return None
    return NextStep(runbook, _command(query, verdict, sink))


def _command(query: Query, verdict: Verdict, sink: str | None) -> str:
    place = query.details.checkpoint if query.details else query.location
    if place is None or verdict.state == "blind":
        name = shlex.quote(query.label)
        return f"streamgauge evidence --url {ADDRESS}/metrics --query {name}"
    place = shlex.quote(place)
    reads_kafka = any(lag.kind == "kafka" for lag in query.lags.values())
    if verdict.state == "falling_behind" and reads_kafka:
        return f"streamgauge lag {place} --bootstrap HOST:PORT"
    known = find_sink(sink)
    return f"streamgauge checkpoint restart {place}" + (f" --sink {known.name}" if known else "")


def read_runbook(path: str) -> bytes | None:
    """The runbook at a path such as `/runbooks/SparkStreamQueryStalled`; None when there is none."""
    name = _NAME.fullmatch(path)
    if name is None:
        return None
    from importlib.resources import files  # noqa: PLC0415 - a driver nobody looks at need not

    file = files("streamgauge").joinpath(f"runbooks/{name[1]}.md")
    return file.read_bytes() if file.is_file() else None
