"""States that fill for as long as their watermark says, and sources that have work now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rule_checks import check_silent, fired
from rule_scenarios import FILES, KAFKA, SAVE, replayed
from rule_worlds import DAY, HOUR, MINUTE, Values, healthy, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.timeout(600)

PACE = 100.0  # new keys per second


def deduplicates(delay: float | None, keeps: float) -> Callable[[int], Values]:
    """A new query that remembers each key for `keeps` seconds; its plan says `delay`, or nothing."""

    def world(t: int) -> Values:
        values = healthy(t)
        values[f"state_rows{SAVE}"] = PACE * min(t, keeps)
        values[f"state_rows_updated_total{SAVE}"] = PACE * t
        values[f"state_rows_removed_total{SAVE}"] = PACE * max(0, t - keeps)
        values["watermark_delay_seconds"] = delay
        return values

    return world


def test_state_that_fills_for_its_delay_is_silent(tmp_path):
    """Twelve hours of keys are no bloat at hour seven, nor at hour twelve, nor a day later."""
    worlds = {
        "twelve hours": deduplicates(12 * HOUR, 12 * HOUR),
        "and what is left of a window": deduplicates(12 * HOUR, 15 * HOUR),
    }
    check_silent(tmp_path, worlds, 40 * HOUR, 300)


def test_state_that_is_never_evicted_warns_when_its_delay_is_over(tmp_path):
    """The delay and the window that growth is measured in, and an hour: then it is no plateau."""
    world = deduplicates(12 * HOUR, 9 * DAY)
    fired(tmp_path, world, "StateBloat", {18 * HOUR: 0, 20 * HOUR: 1}, step=300)


def test_state_without_a_known_delay_warns_as_before(tmp_path):
    """Nothing says that it will stop: it is told early."""
    fired(tmp_path, deduplicates(None, 12 * HOUR), "StateBloat", {8 * HOUR: 1}, step=300)


def now_and_then(t: int) -> Values:
    """A file every three minutes, whose batch takes twice the trigger interval of ten seconds."""
    batches = t // (3 * MINUTE)
    values = healthy(t)
    values["batch_duration_seconds_sum"] = 20.0 * batches
    values["batch_duration_seconds_count"] = batches
    values['batches_total{data="true"}'] = batches
    values["input_rows_total"] = 10 * batches
    values[f"source_input_rows_total{FILES}"] = 10 * batches
    values[f"source_backlog_rows{KAFKA}"] = None
    values[f"source_backlog_files{FILES}"] = float(t % (3 * MINUTE) < 20)
    values["last_idle_timestamp_seconds"] = t
    values["freshness_lag_seconds"] = 0
    verdict(values, "idle")
    return values


def hourly(unit: str, pace: float) -> Callable[[int], Values]:
    """A trigger every hour: what is unread grows until it comes, and is all read then."""

    def world(t: int) -> Values:
        values = healthy(t)
        last = t // HOUR * HOUR
        values["trigger_interval_seconds"] = HOUR
        values["silence_budget_seconds"] = 3 * HOUR + 10
        for name in ("last_event", "last_commit"):
            values[f"{name}_timestamp_seconds"] = last
        values["freshness_lag_seconds"] = t - last
        for key in values:
            if "_total" in key or "batch_duration_seconds_" in key:
                values[key] = healthy(last)[key]
        values[f"source_backlog_rows{KAFKA}"] = None
        source = KAFKA if unit == "rows" else FILES
        values[f"source_backlog_{unit}{source}"] = pace * (t - last)
        return values

    return world


def wobbles(t: int) -> Values:
    """Many files that arrive in bursts and are read within ten minutes, all day long."""
    values = {**healthy(t), f"source_backlog_rows{KAFKA}": None}
    return {**values, f"source_backlog_files{FILES}": 2000.0 * (t % (10 * MINUTE)) / (10 * MINUTE)}


def test_work_now_and_then_is_silent(tmp_path):
    """No overrun of a query that is idle most of the time, no backlog between two triggers."""
    worlds = {
        "a file now and then": now_and_then,
        "files, hourly": hourly("files", 10.0),
        "bytes, hourly": hourly("bytes", 10_000_000.0),
        "rows, hourly": hourly("rows", 1000.0),
        "bursts of files": wobbles,
        "a replay that leaves no trace": replayed(1),
    }
    check_silent(tmp_path, worlds, 4 * HOUR, 60)


def test_large_files_that_fall_behind_are_seen_by_the_verdict(tmp_path):
    """A source that counts files and whose few files never make a backlog of a hundred."""

    def world(t: int) -> Values:
        values = {**healthy(t), f"source_backlog_rows{KAFKA}": None}
        values[f"source_backlog_files{FILES}"] = 5 + t / HOUR
        verdict(values, "falling_behind")
        return values

    fired(tmp_path, world, "FallingBehind", {40 * MINUTE: 1})


def test_source_that_counts_rows_is_judged_by_rows(tmp_path):
    """Its files and bytes may grow: its rows drain."""

    def world(t: int) -> Values:
        values = healthy(t)
        values[f"source_backlog_files{KAFKA}"] = float(t)
        values[f"source_backlog_bytes{KAFKA}"] = 1e8 * t
        return values

    fired(tmp_path, world, "FallingBehind", {2 * HOUR: 0})


def test_source_that_counts_everything_warns_once(tmp_path):
    """Files, bytes and versions grow: one warning."""

    def world(t: int) -> Values:
        values = {**healthy(t), f"source_backlog_rows{KAFKA}": None}
        for unit, pace in (("files", 1.0), ("bytes", 1e7), ("versions", 1.0)):
            values[f"source_backlog_{unit}{FILES}"] = pace * t
        return values

    fired(tmp_path, world, "FallingBehind", {2 * HOUR: 1})


def test_each_replay_into_an_unknown_sink_warns_once(tmp_path):
    """One warning, which ends an hour after the replay; the next replay is the next one."""

    def world(t: int) -> Values:
        replays = (t >= HOUR) + (t >= 4 * HOUR)
        return {**healthy(t), "sink_idempotent": None, "batches_replayed_total": float(replays)}

    times = {HOUR - 60: 0, HOUR + 120: 1, 2 * HOUR + 60: 0, 3 * HOUR: 0, 4 * HOUR + 120: 1}
    fired(tmp_path, world, "DuplicateRisk", {**times, 5 * HOUR + 60: 0}, step=60)


def test_sink_that_is_known_a_moment_later_is_not_unknown(tmp_path):
    """The agent learns of the sink after the start; that gap is no warning."""

    def world(t: int) -> Values:
        values = replayed(1)(t)
        return {**values, "sink_idempotent": 1 if t % HOUR > 60 else None}

    fired(tmp_path, world, "DuplicateRisk", {t * MINUTE: 0 for t in range(1, 90)})
