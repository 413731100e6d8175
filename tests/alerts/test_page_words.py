"""What a page says: why, where, since when, and in numbers for people."""

from __future__ import annotations

import pytest
from promtool import time_of
from rule_checks import page_of, said
from rule_scenarios import BEGIN, FILES, KAFKA, SCENARIOS, blind, fail, hang
from rule_worlds import DAY, HOUR, MINUTE, Values, between, gone, healthy, info, verdict

from streamgauge.grafana.alerts.catalogue import alerts

pytestmark = pytest.mark.timeout(600)


def failed_and_gone(t: int) -> Values:
    """Failed 55 seconds before anybody looked; its driver exits two minutes later. It failed before, too."""
    values = between(BEGIN, DAY, fail)(t)
    earlier = 'query_failure_info{error_class="OLD",cause_class="",message="another error"}'
    if BEGIN - 10 * MINUTE <= t < BEGIN - 8 * MINUTE:
        values |= {"query_active": 0, earlier: 1, "query_ended_timestamp_seconds": t}
        verdict(values, "failed")
    if t >= BEGIN:
        values["query_ended_timestamp_seconds"] = BEGIN - 55
        values["last_committed_batch_id"] = 12345
    if t >= BEGIN + 2 * MINUTE:
        gone(values)
    return values


@pytest.mark.parametrize("after", [MINUTE, 3 * HOUR])
def test_page_of_a_failed_query_says_why(after, tmp_path):
    """Both classes, the first line, the batch, the checkpoint, when, and what to paste; also much later."""
    page = page_of(tmp_path, failed_and_gone, "QueryFailed", BEGIN + after)
    why = (
        "FOREACH_BATCH_USER_FUNCTION_ERROR, caused by java.io.IOException: No space left on device"
    )
    assert said(page, "reason") == why
    words = said(page, "description")
    assert why in words
    assert "batch that it committed is 12345" in words
    assert "/data/shop" in words
    assert time_of(said(page, "since")) == BEGIN - 55
    assert "`streamgauge checkpoint restart '/data/shop'`" in said(page, "action")


def test_command_is_quoted_for_a_shell(tmp_path):
    """A location is text of somebody else: it must not end the quotes."""

    def world(t: int) -> Values:
        values = between(BEGIN, DAY, fail)(t)
        values[info()] = None
        return {**values, info(checkpoint="/data/it's; here"): 1}

    page = page_of(tmp_path, world, "QueryFailed", BEGIN + 2 * MINUTE)
    assert r"restart '/data/it'\\''s; here'" in said(page, "action")


def test_unknown_checkpoint_is_a_place_to_fill_in(tmp_path):
    """Where the location is unknown the command says so, and is no command for another one."""

    def world(t: int) -> Values:
        values = between(BEGIN, DAY, fail)(t)
        values[info()] = None
        return {**values, info(checkpoint=""): 1}

    page = page_of(tmp_path, world, "QueryFailed", BEGIN + 2 * MINUTE)
    assert "restart 'CHECKPOINT'" in said(page, "action")
    assert "its checkpoint is unknown" in said(page, "description")


def test_checkpoint_is_the_newer_one_where_it_was_not_known_at_first(tmp_path):
    """The agent asks for it after the start: for one scrape the info has none."""

    def world(t: int) -> Values:
        values = between(BEGIN, DAY, fail)(t)
        if t < 2 * MINUTE:
            values[info()] = None
            values[info(checkpoint="")] = 1
        if t >= BEGIN + 2 * MINUTE:
            gone(values)
        return values

    page = page_of(tmp_path, world, "QueryFailed", BEGIN + HOUR)
    assert "restart '/data/shop'" in said(page, "action")


# Those that need a day of history have the same template as the others.
OF_QUERIES = {alert.key for alert in alerts() if alert.level == "query"}
WITHIN_A_DAY = {
    one.alert: one
    for one in SCENARIOS
    if f"SparkStream{one.alert}" in OF_QUERIES and one.fires <= DAY
}


@pytest.mark.parametrize("scenario", WITHIN_A_DAY.values(), ids=WITHIN_A_DAY)
def test_page_of_a_query_carries_a_reason(scenario, tmp_path):
    """In words, and never an empty one."""
    page = page_of(tmp_path, scenario.world, scenario.alert, scenario.fires, scenario.step)
    assert len(said(page, "reason")) > 10


def test_page_of_a_stall_says_where_it_hangs(tmp_path):
    """The verdict's own words, in the description too."""
    page = page_of(tmp_path, between(BEGIN, DAY, hang), "QueryStalled", BEGIN + 10 * MINUTE)
    assert said(page, "reason") == "batch 60 hangs: no task finished"
    assert "Where it hangs: batch 60 hangs: no task finished." in said(page, "description")


def test_page_of_a_blind_agent_says_what_it_can_not_reach(tmp_path):
    """And does not ask for a thread dump of what does not answer."""
    page = page_of(tmp_path, between(BEGIN, DAY, blind), "AgentBlind", BEGIN + 10 * MINUTE)
    assert "the JVM does not answer" in said(page, "description")
    assert "thread dump" not in said(page, "action")


def test_page_of_a_query_that_is_gone_tells_its_last_verdict(tmp_path):
    """Nobody serves its series; what it was before is remembered."""

    def world(t: int) -> Values:
        values = healthy(t)
        if t >= BEGIN:
            gone(values)
        return values

    page = page_of(tmp_path, world, "QueryVanished", HOUR)
    assert said(page, "reason").endswith("its verdict was running")


@pytest.mark.parametrize(
    ("rows", "named"), [(0.0, "1-files"), (1.0, "unknown")], ids=["silent source", "all give rows"]
)
def test_stuck_watermark_names_the_source_that_holds_it(rows, named, tmp_path):
    """The one that gave no row; where all gave some, it says that it is unknown."""

    def world(t: int) -> Values:
        values = healthy(t)
        values["watermark_timestamp_seconds"] = min(t, BEGIN) - 60
        values[f"source_input_rows_total{FILES}"] = 100 + rows * t
        return values

    page = page_of(tmp_path, world, "WatermarkStuck", 2 * HOUR)
    assert f"no row for 30m: {named}." in said(page, "description")


def test_lost_events_are_a_whole_number(tmp_path):
    """One event is one event, though `increase` makes 1.018 of it."""

    def world(t: int) -> Values:
        return {**healthy(t), "agent_missed_batches_total": float(t >= BEGIN)}

    page = page_of(tmp_path, world, "AgentEventsDropped", BEGIN + 5 * MINUTE)
    assert "lost 1 events" in said(page, "description")


def test_backlog_is_told_in_the_unit_that_is_known(tmp_path):
    """Files where rows are unknown."""

    def world(t: int) -> Values:
        values = {**healthy(t), f"source_backlog_rows{KAFKA}": None}
        return {**values, f"source_backlog_files{FILES}": t}

    page = page_of(tmp_path, world, "FallingBehind", HOUR)
    assert "backlog 3.6k files;" in said(page, "description")


def test_replay_into_an_unknown_sink_says_how_to_tell(tmp_path):
    """It is not claimed that the sink makes duplicates, and the setting is named."""
    scenario = next(one for one in SCENARIOS if one.alert == "DuplicateRisk/unknown")
    page = page_of(tmp_path, scenario.world, scenario.alert, scenario.fires)
    assert "is unknown" in said(page, "description")
    assert "`idempotent_sink`" in said(page, "action")
