"""What must never page, played through all shipped rules at once."""

from __future__ import annotations

import pytest
from rule_checks import check_series_silent, check_silent
from rule_scenarios import BEGIN, KAFKA, SAVE, hang_with_data
from rule_worlds import (
    DAY,
    HOUR,
    MINUTE,
    Values,
    after_restart,
    between,
    gone,
    healthy,
    idle_from,
    info,
    input_series,
    restarted,
    verdict,
)

# Promtool is quick, but not on a machine that does something else.
pytestmark = pytest.mark.timeout(600)


def long_trigger(t: int) -> Values:
    """A trigger once an hour: nothing is heard for most of it."""
    values = healthy(t)
    last = t // HOUR * HOUR
    for name in ("last_event", "last_commit"):
        values[f"{name}_timestamp_seconds"] = last
    values["freshness_lag_seconds"] = t - last
    values["trigger_interval_seconds"] = HOUR
    values["silence_budget_seconds"] = 3 * HOUR + 10
    for key in values:
        if "_total" in key or "batch_duration_seconds_" in key:
            values[key] = healthy(last)[key]
    return values


def large_batch(t: int) -> Values:
    """A batch of two hours, whose tasks finish one after the other; its query may be three hours old."""

    def change(t: int, values: Values) -> None:
        hang_with_data(t, values)
        values["inflight_last_task_timestamp_seconds"] = t - t % 120
        values["freshness_lag_seconds"] = t - BEGIN + 20
        verdict(values, "running")

    values = between(BEGIN, BEGIN + 2 * HOUR, change)(t)
    return {**values, 'alert_threshold{name="freshness_seconds"}': 3 * HOUR}


def straggler(t: int) -> Values:
    """In the middle of an idle night one row comes, and it is late."""
    values = idle_from(BEGIN)(t)
    return {**values, f"state_rows_dropped_by_watermark_total{SAVE}": float(t >= HOUR)}


def ended_well(t: int) -> Values:
    """Stopped for good; its driver goes some scrapes later, and its address stays in the list of targets."""
    values = healthy(t)
    values["query_expected"] = None
    if t >= BEGIN:
        values["query_active"] = 0
        verdict(values, "stopped")
    if t >= BEGIN + 2 * MINUTE:
        gone(values)
    return values


def without_location(t: int) -> Values:
    """A query with a temporary checkpoint, started anew every half hour."""
    began = t // (30 * MINUTE) * 30 * MINUTE
    folder = f"file:/tmp/temporary-{began}"
    values = after_restart(t, began) if began else healthy(t)
    values[info()] = values[info("q1", f"r{began}")] = None
    values[info(f"q{began}", f"r{began}", checkpoint=folder)] = 1
    values["checkpoint_resets_total"] = began / (30 * MINUTE)
    return values


def available_now(t: int) -> Values:
    """A job of five minutes every ten: its driver comes, ends well and goes without a word."""
    began = t // (10 * MINUTE) * 10 * MINUTE
    values = after_restart(t, began)
    run_info = info("q1", f"r{began}", "available_now")
    values = {run_info if key.startswith("query_info{") else key: v for key, v in values.items()}
    values["query_expected"] = values["trigger_interval_seconds"] = None
    values["freshness_lag_seconds"] = 2 * HOUR  # as old as its schedule
    if t - began >= 5 * MINUTE:
        gone(values)
    return values


def catching_up(t: int) -> Values:
    """After an outage a large backlog shrinks, in longer batches."""

    def change(t: int, values: Values) -> None:
        left = 1 - (t - BEGIN) / (2 * HOUR)
        values[f"source_backlog_rows{KAFKA}"] = 5_000_000 * left
        values[f"source_lag_seconds{KAFKA}"] = HOUR * left
        verdict(values, "catching_up")

    return between(BEGIN, BEGIN + 2 * HOUR, change)(t)


def planned_stop(t: int) -> Values:
    """Stopped well for eight minutes, then started again."""
    if t < BEGIN:
        return healthy(t)
    if t >= BEGIN + 8 * MINUTE:
        return {info(): None, **after_restart(t, BEGIN + 8 * MINUTE)}
    values = {**healthy(BEGIN), "agent_heartbeat_timestamp_seconds": t, "query_active": 0}
    verdict(values, "stopped")
    return values


def new_query(t: int) -> Values:
    """A query that starts late, is stale while it reads its first large batch, and settles."""
    if t < HOUR:
        return dict.fromkeys(healthy(t)) | {"up": 1}
    values = {info(): None, **after_restart(t, HOUR)}
    if t < HOUR + 8 * MINUTE:
        values["freshness_lag_seconds"] = 1000
        values["silence_budget_seconds"] = 900
    return values


def opted_out(t: int) -> Values:
    """A failed query whose owner turned its alerts off."""

    def change(_: int, values: Values) -> None:
        values["query_active"] = 0
        verdict(values, "failed")

    return {**between(BEGIN, 4 * HOUR, change)(t), "alerting_enabled": 0}


WORLDS = {
    "healthy": healthy,
    "idle": idle_from(BEGIN),
    "back at the same address": restarted(BEGIN, BEGIN + 2 * MINUTE),
    "back at a new address": restarted(BEGIN, BEGIN + 2 * MINUTE, "new-pod:9465"),
    "long trigger": long_trigger,
    "large batch": large_batch,
    "availableNow": available_now,
    "catching up": catching_up,
    "planned stop": planned_stop,
    "new query": new_query,
    "opted out": opted_out,
    "straggler": straggler,
    "ended well": ended_well,
    "without a checkpoint location": without_location,
}


def test_nothing_pages_for_what_is_no_fault(tmp_path):
    """Idle, slow, large, late to start, stopped, restarted, finished: none of it sets off anything."""
    check_silent(tmp_path, WORLDS, 4 * HOUR, 60)


def test_day_without_data_is_silent(tmp_path):
    """A stream without new data for longer than any window of the state rules is silent."""
    check_silent(tmp_path, {"idle": idle_from(3 * HOUR)}, 36 * HOUR, 300)


def test_scrapes_that_did_not_come_are_nobodys_silence(tmp_path):
    """Prometheus is back and has not scraped yet: what it knew last is old, and that is no stall."""
    before, after = BEGIN, BEGIN + 4 * MINUTE

    def away(t: int) -> Values:
        values = {**healthy(t), "silence_budget_seconds": 20}
        return dict.fromkeys(values) if before < t < after else values

    # Nobody was there to write that the series had ended.
    series = input_series(away, HOUR, 30)
    series = [{**one, "values": one["values"].replace("stale", "_")} for one in series]
    check_series_silent(tmp_path, series, HOUR, 30)


@pytest.mark.integration
def test_week_of_history_changes_nothing(tmp_path):
    """The same with more than a week of history, so that every baseline is there."""
    worlds = {"healthy": healthy, "idle": idle_from(7 * DAY + HOUR)}
    check_silent(tmp_path, worlds, 8 * DAY, 300)


def test_silence_check_can_fail(tmp_path):
    """The check above sees an alert that fired and resolved again long before the end."""
    world = between(BEGIN, HOUR, hang_with_data)
    with pytest.raises(AssertionError, match="SparkStreamCommitsStalled"):
        check_silent(tmp_path, {"hung": world}, 2 * HOUR, 60)
