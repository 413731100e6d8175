"""Histories of one query, second by second, as Prometheus would have scraped them.

A world is a function of time that gives every series of the contract which the rules use. Faults
and recoveries are written as changes to the healthy world, so each test says only what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE, HOUR, DAY = 60, 3600, 86400
Values = dict[str, float | None]
World = "Callable[[int], Values]"

STATES = (
    "running",
    "idle",
    "failed",
    "stopped",
    "stalled",
    "blind",
    "falling_behind",
    "catching_up",
)
STOPPED = 'query_terminations_total{outcome="stopped",error_class=""}'
INFO = 'query_info{query_id="%s",run_id="%s",trigger="%s",checkpoint="%s",team="%s",env="prod",tier="1"}'
ROWS_A_BATCH, BATCH_EVERY, BATCH_SECONDS = 3000, 30, 2


def info(
    query_id: str = "q1",
    run_id: str = "r1",
    trigger: str = "processing_time",
    checkpoint: str = "/data/APP",
    team: str = "payments",
) -> str:
    """The key of the info series."""
    return INFO % (query_id, run_id, trigger, checkpoint, team)


def verdict(values: Values, state: str) -> None:
    """Say that the agent's verdict is `state`."""
    for name in STATES:
        values[f'query_state{{state="{name}"}}'] = float(name == state)


def healthy(t: int) -> Values:
    """A stateful query with a watermark and a Kafka-like source: a batch of two seconds every 30."""
    batches = t / BATCH_EVERY
    values: Values = {
        "up": 1,
        'build_info{version="1"}': 1,
        info(): 1,
        "query_active": 1,
        "query_data_available": 1,
        "query_expected": 1,
        "alerting_enabled": 1,
        "query_started_timestamp_seconds": 0,
        "query_starts_total": 1,
        STOPPED: 0,
        "last_event_timestamp_seconds": t,
        "last_commit_timestamp_seconds": t,
        "inflight_batch_seconds": 0,
        "trigger_interval_seconds": 10,
        "silence_budget_seconds": 300,
        "freshness_lag_seconds": 20,
        'batches_total{data="true"}': batches,
        'batches_total{data="false"}': 0,
        "batches_replayed_total": 0,
        "batch_duration_seconds_sum": batches * BATCH_SECONDS,
        "batch_duration_seconds_count": batches,
        "batch_duration_max_seconds": 3,
        "input_rows_total": batches * ROWS_A_BATCH,
        'source_input_rows_total{source="0-kafka"}': batches * ROWS_A_BATCH,
        'source_backlog_rows{source="0-kafka"}': 0,
        'source_lag_seconds{source="0-kafka"}': 0,
        'source_retention_headroom_seconds{source="0-kafka"}': 3 * DAY,
        "sink_idempotent": 1,
        "watermark_timestamp_seconds": t - 60,
        "event_time_max_timestamp_seconds": t,
        'state_rows{operator="0-stateStoreSave"}': 2_000_000,
        'state_memory_bytes{operator="0-stateStoreSave"}': 2**30,
        'state_store_instances{operator="0-stateStoreSave"}': 4,
        'state_snapshot_lag_versions{operator="0-stateStoreSave"}': 5,
        'state_rows_updated_total{operator="0-stateStoreSave"}': batches * 100,
        'state_rows_removed_total{operator="0-stateStoreSave"}': batches * 100,
        'state_rows_dropped_by_watermark_total{operator="0-stateStoreSave"}': 0,
        'state_commit_seconds_total{operator="0-stateStoreSave"}': batches * 0.4,
        "checkpoint_resets_total": 0,
        "checkpoint_shared": 0,
        'agent_events_dropped_total{kind="progress"}': 0,
        "agent_missed_batches_total": 0,
        "agent_bus_dropped_events_total": 0,
        "agent_heartbeat_timestamp_seconds": t,
    }
    verdict(values, "running")
    return values


AGES = {
    "query_silence_seconds": ("last_event", "query_started"),
    "query_uncommitted_seconds": ("last_commit", "last_idle", "query_started"),
    "query_commit_age_seconds": ("last_commit", "query_started"),
}


def with_ages(t: int, values: Values) -> Values:
    """The world with the ages that the agent derives from its times, unless the world gives its own.

    The world's clocks agree, so they are differences; a clock that steps is a world of its own.
    """
    found: Values = {}
    for key, active in values.items():
        if key.partition("{")[0] != "query_active":
            continue
        place = key.removeprefix("query_active")

        def at(name: str, place: str = place) -> float | None:
            return values.get(f"{name}_timestamp_seconds{place}")

        if active is not None:
            found[f"agent_clock_timestamp_seconds{place}"] = t
        if (beat := at("agent_heartbeat")) is not None:
            found[f"agent_heartbeat_age_seconds{place}"] = t - beat
        if (task := at("inflight_last_task")) is not None:
            found[f"inflight_task_age_seconds{place}"] = t - task
        for age, names in AGES.items():
            times = [time for time in map(at, names) if time is not None]
            if active == 1 and times:
                found[f"{age}{place}"] = t - max(times)
    return {**found, **values}


def gone(values: Values) -> None:
    """The driver does not answer: every series but `up` is stale."""
    for key in values:
        values[key] = None
    values["up"] = 0


def frozen(values: Values, at: int, *parts: str) -> None:
    """The series whose name contains one of `parts` stay as they were at `at`."""
    before = healthy(at)
    for key in values:
        if key in before and any(part in key for part in parts):
            values[key] = before[key]


COUNTERS = ("_total", "batch_duration_seconds_")


def idle_from(at: int) -> Callable[[int], Values]:
    """From `at` on there is nothing to read: idle events come, nothing else moves."""

    def world(t: int) -> Values:
        values = healthy(t)
        if t >= at:
            frozen(values, at, *COUNTERS, "last_commit", "watermark_t", "event_time_max")
            values["last_idle_timestamp_seconds"] = t
            values["query_data_available"] = 0
            values["freshness_lag_seconds"] = 0
            verdict(values, "idle")
        return values

    return world


def between(begin: int, end: int, change: Callable[[int, Values], None]) -> Callable[[int], Values]:
    """The healthy world with a change to it from `begin` until just before `end`."""

    def world(t: int) -> Values:
        values = healthy(t)
        if begin <= t < end:
            change(t, values)
        return values

    return world


def after_restart(t: int, at: int, *, query_id: str = "q1") -> Values:
    """The healthy world of a driver that started at `at`: counters from 0, a new run."""
    values = healthy(t)
    fresh = healthy(t - at)
    for key in values:
        if any(part in key for part in COUNTERS):
            values[key] = fresh[key]
    values["query_starts_total"] = 1
    values[STOPPED] = 0
    values["query_started_timestamp_seconds"] = at
    values["batches_replayed_total"] = 1
    values[info()] = None
    values[info(query_id, f"r{at}")] = 1
    return values


def restarted(down: int, up: int, instance: str = "") -> Callable[[int], Values]:
    """The driver goes at `down` and is back at `up`; with `instance`, somewhere else."""

    def world(t: int) -> Values:
        if t < down:
            return healthy(t)
        values = healthy(t)
        gone(values)
        if t < up:
            return values
        fresh = after_restart(t, up)
        if not instance:
            return {**values, **fresh}
        values["up"] = None
        return {**values, **{at_instance(key, instance): v for key, v in fresh.items()}}

    return world


def at_instance(key: str, instance: str) -> str:
    """The same series, scraped from another address."""
    name, brace, labels = key.partition("{")
    inner = labels if brace else "}"
    return f'{name}{{instance="{instance}"{"," if brace else ""}{inner}'


def input_series(
    world: Callable[[int], Values], length: int, step: int, extra: str = "", app: str = "shop"
) -> list[dict[str, Any]]:
    """The world as promtool's input series; `extra` is added to the labels of each."""
    times = range(0, length + 1, step)
    columns: dict[str, list[float | None]] = {}
    for number, t in enumerate(times):
        for key, value in with_ages(t, world(t)).items():
            columns.setdefault(key, [None] * number).append(value)
        for column in columns.values():
            column.extend([None] * (number + 1 - len(column)))
    return [
        {"series": _name(key, extra, app), "values": notation(column)}
        for key, column in columns.items()
    ]


def _name(key: str, extra: str, app: str) -> str:
    name, _, labels = key.partition("{")
    labels = labels.rstrip("}")
    if name not in ("up", "build_info") and not name.startswith("agent_"):
        labels = f'{labels},query="orders"'
    if name != "up":
        labels += "" if name.startswith("agent_") else f',app="{app}"'
        name = f"streamgauge_{name}"
    if "instance=" not in labels:
        labels += f',instance="{app}:9465"'
    labels = labels.strip(",").replace("APP", app)
    return f'{name}{{job="spark",{labels}{extra}}}'


def notation(values: list[float | None]) -> str:
    """Promtool's notation, with runs of one value shortened."""
    words: list[str] = []
    start = 0
    for end in range(1, len(values) + 1):
        if end == len(values) or values[end] != values[start]:
            words.append(_run(values[start], end - start, first=start == 0))
            start = end
    return " ".join(words)


def _run(value: float | None, count: int, *, first: bool) -> str:
    if value is None:
        gap = "_" if first else "stale"
        return gap if count == 1 else f"{gap} _x{count - 1}"
    return f"{value:.12g}" if count == 1 else f"{value:.12g}x{count - 1}"
