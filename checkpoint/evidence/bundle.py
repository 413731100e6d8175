"""The evidence bundle: one record with all that is known of a query.

Pure: from the text of a metrics endpoint, the report of a checkpoint and recorded events, any of
which may be missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from streamgauge.checkpoint.reader.text_enum import TextEnum

from .metrics_page import PREFIX, Sample, parse_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamgauge.checkpoint.reader.report import Report
    from streamgauge.checkpoint.restart.forecast import Forecast

MOST_EVENTS = 1000
# What people ask first, from the one info series.
_IDENTITY = (
    "query_id", "run_id", "app_id", "spark_version", "sink", "output_mode", "trigger",
    "state_provider", "checkpoint", "code_version", "team", "env", "tier",
)  # fmt: skip


# The series of a query's runs: starts, ends, replays, and when each began.
_RUN_SERIES = frozenset(
    PREFIX + name
    for name in (
        "query_starts_total",
        "query_started_timestamp_seconds",
        "query_terminations_total",
        "inflight_batch_started_timestamp_seconds",
        "batches_replayed_total",
        "source_offset_resets_total",
        "checkpoint_resets_total",
    )
)


class MissingPart(TextEnum):
    """A part of the evidence that was not given, or does not know the query."""

    METRICS = "no metrics were given"
    QUERY = "the endpoint does not know this query"
    CHECKPOINT = "no checkpoint was given"
    EVENTS = "no recorded events were given"


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
    missing: list[MissingPart]


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
            if each.name in _RUN_SERIES
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
) -> list[MissingPart]:
    parts = (
        (bool(samples), MissingPart.METRICS),
        (info is not None or not samples, MissingPart.QUERY),
        (checkpoint is not None, MissingPart.CHECKPOINT),
        (bool(events), MissingPart.EVENTS),
    )
    return [part for there, part in parts if not there]
