"""The evidence bundle: one JSON and one readable page with all that is known of a query.

Pure: from the text of a metrics endpoint, the report of a checkpoint and recorded events, any of
which may be missing. Every string is masked on its way out.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.masking import mask, mask_all

from .render import render_report
from .wording import mask_lines, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .forecast import Forecast
    from .report import Report

PREFIX = "streamgauge_"
MOST_EVENTS = 1000
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}
# What people ask first, from the one info series.
_IDENTITY = (
    "query_id", "run_id", "app_id", "spark_version", "sink", "output_mode", "trigger",
    "state_provider", "checkpoint", "code_version", "team", "env", "tier",
)  # fmt: skip


class Sample(msgspec.Struct, frozen=True):
    """One line of a metrics page."""

    name: str
    labels: dict[str, str]
    value: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All of D2 for one query; None or empty where a part was not given."""

    query: str | None
    app: str | None
    identity: dict[str, str]
    state: str | None
    restarts: dict[str, str]
    metrics: list[Sample]
    sources: list[dict[str, Any]]
    operators: list[dict[str, Any]]
    starts: list[dict[str, Any]]
    events: list[dict[str, Any]]
    checkpoint: Report | None
    forecast: Forecast | None
    missing: list[str]


def parse_metrics(text: str) -> list[Sample]:
    """The samples of a Prometheus page; lines that are none are left out."""
    samples = []
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found and found[1].startswith(PREFIX):
            labels = {key: _unescape(value) for key, value in _LABEL.findall(found[2] or "")}
            samples.append(Sample(found[1], labels, found[3]))
    return samples


def _unescape(value: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), value)


def build_evidence(
    *,
    metrics: str | None = None,
    checkpoint: Report | None = None,
    forecast: Forecast | None = None,
    events: Iterable[str] = (),
    query: str | None = None,
) -> Evidence:
    """Put the parts together. `query` chooses one where the endpoint has many."""
    samples = parse_metrics(metrics or "")
    info = _find_info(samples, query, checkpoint)
    name = info.labels.get("query") if info else query
    app = info.labels.get("app") if info else None
    own = [each for each in samples if each.labels.get("query") == name and _same_app(each, app)]
    recorded = _decode(events, info.labels.get("query_id") if info else None)
    last = _last_progress(recorded)
    return Evidence(
        query=name,
        app=app,
        identity={key: info.labels[key] for key in _IDENTITY if info and info.labels.get(key)},
        state=_state(own),
        restarts={
            each.name.removeprefix(PREFIX) + _kind(each): each.value
            for each in own
            if _about_runs(each)
        },
        metrics=own,
        sources=list(last.get("sources") or []),
        operators=list(last.get("stateOperators") or []),
        starts=[each for each in recorded if _is_end_of_run(each)],
        events=recorded[-MOST_EVENTS:],
        checkpoint=checkpoint,
        forecast=forecast,
        missing=_missing(samples, info, checkpoint, recorded),
    )


def _find_info(
    samples: list[Sample], query: str | None, checkpoint: Report | None
) -> Sample | None:
    """The info series of the query: by name, else by the checkpoint's query id, else the only one."""
    infos = [each for each in samples if each.name == f"{PREFIX}query_info"]
    if query is not None:
        return next(
            (
                each
                for each in infos
                if query in (each.labels.get("query"), each.labels.get("query_id"))
            ),
            None,
        )
    if checkpoint is not None:
        return next(
            (each for each in infos if each.labels.get("query_id") == checkpoint.query_id), None
        )
    return infos[0] if len(infos) == 1 else None


def _same_app(sample: Sample, app: str | None) -> bool:
    return app is None or sample.labels.get("app") == app


def _state(samples: list[Sample]) -> str | None:
    return next(
        (
            each.labels.get("state")
            for each in samples
            if each.name == f"{PREFIX}query_state" and each.value in ("1", "1.0")
        ),
        None,
    )


def _about_runs(sample: Sample) -> bool:
    return any(
        word in sample.name
        for word in (
            "starts_total",
            "terminations_total",
            "started_",
            "resets_total",
            "replayed_total",
        )
    )


def _kind(sample: Sample) -> str:
    words = [sample.labels[key] for key in ("outcome", "error_class") if sample.labels.get(key)]
    return f" ({', '.join(words)})" if words else ""


def _decode(events: Iterable[str], query_id: str | None) -> list[dict[str, Any]]:
    """Recorded events as objects; broken lines and other queries' events are left out."""
    found = []
    for text in events:
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(event, dict):
            continue
        progress = event.get("progress")
        body = progress if isinstance(progress, dict) else event
        if query_id is None or body.get("id") in (None, query_id):
            found.append(event)
    return found


def _last_progress(events: list[dict[str, Any]]) -> dict[str, Any]:
    for event in reversed(events):
        body = event.get("progress", event)
        if isinstance(body, dict) and "sources" in body:
            return body
    return {}


def _is_end_of_run(event: dict[str, Any]) -> bool:
    """Started and terminated events: the restart history."""
    return "progress" not in event and (
        "exception" in event or "jobTags" in event or "name" in event
    )


def _missing(
    samples: list[Sample],
    info: Sample | None,
    checkpoint: Report | None,
    events: list[dict[str, Any]],
) -> list[str]:
    parts = (
        (bool(samples), "no metrics were given"),
        (info is not None or not samples, "the endpoint does not know this query"),
        (checkpoint is not None, "no checkpoint was given"),
        (bool(events), "no recorded events were given"),
    )
    return [text for there, text in parts if not there]


def dump_evidence(evidence: Evidence) -> str:
    """The bundle as JSON, masked."""
    return to_json(evidence)


def render_evidence(evidence: Evidence) -> str:
    """The bundle as Markdown, masked."""
    lines = [f"# Evidence: {evidence.query or 'a query'}", ""]
    lines += [
        f"- **state**: {evidence.state or 'unknown'}",
        f"- **app**: {evidence.app or 'unknown'}",
    ]
    lines += [f"- **{key.replace('_', ' ')}**: {value}" for key, value in evidence.identity.items()]
    lines += [f"- missing: {text}" for text in evidence.missing]
    if evidence.forecast:
        seen = evidence.forecast
        lines += [
            "",
            "## If it is restarted",
            "",
            f"{seen.verdict}{': ' if seen.reason else ''}{seen.reason}",
        ]
    lines += _table("Runs", ("series", "value"), list(evidence.restarts.items()))
    lines += _table("Sources", ("source", "from", "to"), [
        (each.get("description"), each.get("startOffset"), each.get("endOffset")) for each in evidence.sources
    ])  # fmt: skip
    lines += _table("Stateful operators", ("operator", "rows", "bytes"), [
        (each.get("operatorName"), each.get("numRowsTotal"), each.get("memoryUsedBytes"))
        for each in evidence.operators
    ])  # fmt: skip
    if evidence.checkpoint:
        lines += ["", "## Checkpoint", "", "```", render_report(evidence.checkpoint), "```"]
    lines += _table("Metrics", ("series", "labels", "value"), [
        (each.name, _say_labels(each.labels), each.value) for each in evidence.metrics
    ])  # fmt: skip
    if evidence.events:
        lines += [
            "",
            "## Last event",
            "",
            "```json",
            json.dumps(mask_all(evidence.events[-1]), indent=2)[:8000],
            "```",
        ]
    return mask_lines("\n".join(lines)) + "\n"


def _say_labels(labels: dict[str, str]) -> str:
    return ", ".join(
        f"{key}={value}" for key, value in labels.items() if key not in ("app", "query")
    )


def _table(title: str, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    if not rows:
        return []
    cells = [
        " | ".join(mask(str(cell)).replace("|", "\\|").replace("\n", " ")[:300] for cell in row)
        for row in rows
    ]
    return [
        "",
        f"## {title}",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *(f"| {row} |" for row in cells),
    ]
