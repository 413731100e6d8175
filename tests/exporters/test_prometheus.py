"""The page: right numbers, absent when unknown, bounded, and never broken."""

import json

import pytest
from exposition import (
    NOW,
    exporter_alone,
    look_at,
    observe,
    samples_of,
    tell,
    update_of,
    wait_until,
)
from prometheus_client import generate_latest
from stage import Life, apply_to, feed, page, value, wait_for

from streamgauge.config import QueryConfig
from streamgauge.model.application import Application, CurrentApplication
from streamgauge.model.decoder import decode
from streamgauge.model.observations import CheckpointNames, RunDetails
from streamgauge.model.update import TraceIds


def test_batches_become_series():
    """Counters add up, gauges show the last batch."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), life.progress())
    samples = samples_of(registry)
    assert value(samples, "query_starts_total") == 1
    assert value(samples, "batches_total", data="true") == 2
    assert value(samples, "batches_total", data="false") == 0
    assert value(samples, "input_rows_total") == 20
    assert value(samples, "source_input_rows_total", source="0-kafka") == 20
    assert value(samples, "input_rows_per_second") == 10.0
    assert value(samples, "batch_duration_seconds_count") == 2
    assert value(samples, "batch_duration_seconds_sum") == 1.0
    assert value(samples, "phase_duration_seconds_total", phase="add_batch") == 0.8
    assert value(samples, "last_committed_batch_id") == 1
    assert value(samples, "source_backlog_rows", source="0-kafka") == 0
    assert value(samples, "query_state", state="running") == 1
    assert value(samples, "query_active") == 1
    assert value(samples, "silence_budget_seconds") == 300


def test_last_commit_is_the_end_of_the_trigger():
    """Spark's timestamp is the start of the trigger; the commit is at its end."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress("2026-11-16T00:00:01.000Z"))
    assert value(samples_of(registry), "last_commit_timestamp_seconds") == 1794787201.5


def test_unknown_is_absent():
    """-1 output rows, no watermark, no backlog: no series, and certainly no 0."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    source = {"description": "FileStreamSource[x]", "numInputRows": 5, "endOffset": 1}
    text = json.loads(life.progress(sources=[source]))
    del text["progress"]["inputRowsPerSecond"]
    tell(exporter, fleet, life.started(), json.dumps(text))
    samples = samples_of(registry)
    for name in (
        "output_rows_total",
        "watermark_timestamp_seconds",
        "event_time_max_timestamp_seconds",
        "source_backlog_rows",
        "input_rows_per_second",
        "trigger_interval_seconds",
        "last_idle_timestamp_seconds",
        "sink_idempotent",
        "inflight_batch_started_timestamp_seconds",
    ):
        assert value(samples, name) is None, name


def test_state_operators_per_batch_figures_add_up():
    """Rows dropped by the watermark are per batch; the counter is their sum."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    operator = {
        "operatorName": "stateStoreSave",
        "numRowsTotal": 7,
        "numRowsUpdated": 3,
        "numRowsRemoved": 1,
        "numRowsDroppedByWatermark": 2,
        "commitTimeMs": 1500,
        "memoryUsedBytes": 100,
        "numStateStoreInstances": 2,
        "customMetrics": {
            "rocksdbGetCount": 10,
            "rocksdbGetLatency": 500,
            "rocksdbSstFileSize": 4096,
            "loadedMapCacheHitCount": 40,
            "numDroppedDuplicateRows": 6,
            "someNewMetric": 6,
            "SnapshotLastUploaded.partition_0_default": 1,
        },
    }
    tell(exporter, fleet, life.started())
    for _ in range(3):
        tell(exporter, fleet, life.progress(stateOperators=[operator]))
    samples = samples_of(registry)
    label = {"operator": "0-stateStoreSave"}
    assert value(samples, "state_rows", **label) == 7
    assert value(samples, "state_rows_updated_total", **label) == 9
    assert value(samples, "state_rows_dropped_by_watermark_total", **label) == 6
    assert value(samples, "state_commit_seconds_total", **label) == 4.5
    assert value(samples, "state_rocksdb_gets_total", **label) == 30
    assert value(samples, "state_rocksdb_get_seconds_total", **label) == 1.5
    assert value(samples, "state_rocksdb_sst_file_bytes", **label) == 4096
    assert value(samples, "state_hdfs_map_cache_hits_total", **label) == 40
    assert value(samples, "state_duplicate_rows_dropped_total", **label) == 18
    assert value(samples, "state_custom", metric="someNewMetric", **label) == 6
    assert value(samples, "state_custom", metric="numDroppedDuplicateRows", **label) is None
    assert value(samples, "state_snapshot_lag_versions", **label) == 2


def test_gauges_of_a_vanished_operator_go():
    """What the last batch does not speak of any more is not shown as if it did."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    operator = {"operatorName": "dedupe", "numRowsTotal": 7, "customMetrics": {}}
    tell(exporter, fleet, life.started(), life.progress(stateOperators=[operator]))
    assert value(samples_of(registry), "state_rows", operator="0-dedupe") == 7
    tell(exporter, fleet, life.progress())
    assert value(samples_of(registry), "state_rows", operator="0-dedupe") is None


def test_empty_batches_dont_dilute_the_durations():
    """A batch that moved no offset is counted, not timed."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    source = {"description": "KafkaV2[x]", "startOffset": 5, "endOffset": 5, "numInputRows": 0}
    tell(exporter, fleet, life.started(), life.progress(sources=[source]))
    samples = samples_of(registry)
    assert value(samples, "batches_total", data="false") == 1
    assert value(samples, "batch_duration_seconds_count") == 0


def test_clean_stop_is_not_a_failure():
    """Outcome and error class tell them apart."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.terminated())
    tell(exporter, fleet, life.started(), life.terminated("a.b.CError: x", "SOME_CLASS"))
    samples = samples_of(registry)
    assert value(samples, "query_terminations_total", outcome="stopped") == 1
    assert value(samples, "query_terminations_total", error_class="SOME_CLASS") == 1
    assert value(samples, "query_state", state="failed") == 1
    assert value(samples, "query_active") == 0


def test_run_that_was_overtaken_ends_once():
    """Its Terminated event may come after the next run's start, or never; both are one end."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    late = life.terminated()
    tell(exporter, fleet, life.started())
    look_at(exporter, fleet, life, NOW + 30)
    assert value(samples_of(registry), "query_terminations_total", outcome="unknown") == 0
    tell(exporter, fleet, late)
    look_at(exporter, fleet, life, NOW + 90)
    assert value(samples_of(registry), "query_terminations_total", outcome="stopped") == 1
    for n in range(3):
        tell(exporter, fleet, life.started(), now=NOW + 100 + n)
    for n in range(5):
        look_at(exporter, fleet, life, NOW + 163 + n)
    assert value(samples_of(registry), "query_terminations_total", outcome="unknown") == 3
    assert value(samples_of(registry), "query_active") == 1


def test_error_classes_are_bounded():
    """Twenty, then `other`."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    for n in range(30):
        tell(exporter, fleet, life.started(), life.terminated("E: x", f"CLASS_{n}"))
    samples = samples_of(registry)
    failed = {
        dict(labels)["error_class"]: number
        for (name, labels), number in samples.items()
        if name.endswith("terminations_total") and ("outcome", "failed") in labels
    }
    assert len(failed) == 21
    assert failed["other"] == 10


def test_thousand_restarts_leave_no_more_series_than_one():
    """Run ids, batch ids and offsets are no labels, and query_info is one a query."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), life.terminated("E: x"))
    before = len(samples_of(registry))
    for _ in range(1000):
        tell(exporter, fleet, life.started(), life.progress(), life.terminated("E: x"))
    samples = samples_of(registry)
    assert len(samples) == before
    assert value(samples, "query_starts_total") == 1001


def test_forgotten_query_leaves_nothing():
    """After its grace a query that ended well is not on the page, and its budget is free again."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), life.terminated())
    for query in fleet.sweep(1_794_799_999.0):
        exporter.export(update_of(query, forgotten=True))
    assert "orders" not in generate_latest(registry).decode()
    assert exporter._budget.used == 0


def test_failed_query_keeps_the_series_that_page_and_its_settings():
    """What its page says stays until it starts again, and so does an opt-out."""
    own = {"alerting": False, "thresholds": {"late_ratio": 0.1}}
    exporter, fleet, registry = exporter_alone(grace_seconds=0, queries={"orders": own})
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), life.terminated("E: x"))
    exporter.export(update_of(fleet.queries[life.query_id], at=NOW + 1))
    names = {
        name.removeprefix("streamgauge_")
        for (name, labels) in samples_of(registry)
        if ("query", "orders") in labels
    }
    assert names == {
        "query_state",
        "query_active",
        "query_info",
        "query_failure_info",
        "query_reason_info",
        "query_terminations_total",
        "query_started_timestamp_seconds",
        "query_ended_timestamp_seconds",
        "last_commit_timestamp_seconds",
        "last_committed_batch_id",
        "alerting_enabled",
        "query_expected",
    }
    samples = samples_of(registry)
    assert value(samples, "alerting_enabled") == 0
    assert value(samples, "last_committed_batch_id") == 0
    assert value(samples, "query_terminations_total", outcome="failed", error_class="E") == 1
    assert value(samples, "query_failure_info", error_class="E", cause_class="", message="x") == 1
    tell(exporter, fleet, life.started(), life.progress())
    assert value(samples_of(registry), "batches_total", data="true") == 1


@pytest.mark.parametrize("first", ["started", "progress"])
def test_counters_are_there_again_when_a_failed_query_starts(first):
    """From 0 on, as at the very first start, also where the Started event was lost."""
    exporter, fleet, registry = exporter_alone(grace_seconds=0)
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), life.terminated("E: x"))
    wait_until(exporter, NOW + 1)
    exporter.export(update_of(fleet.queries[life.query_id], at=NOW + 1))
    started = life.started()
    tell(exporter, fleet, started if first == "started" else life.progress())
    samples = samples_of(registry)
    assert value(samples, "batches_replayed_total") == 0
    assert value(samples, "batches_total", data="false") == 0
    for outcome, error_class in (("stopped", ""), ("failed", "other"), ("unknown", "")):
        ends = {"outcome": outcome, "error_class": error_class}
        assert value(samples, "query_terminations_total", **ends) == 0
    assert value(samples, "query_terminations_total", outcome="failed", error_class="E") == 1


def test_gauges_of_other_code_go_with_its_run():
    """A run without watermark or observe() must not show those of the run before."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    times = {"watermark": "2026-11-16T00:00:00.000Z", "max": "2026-11-16T00:00:01.000Z"}
    tell(exporter, fleet, life.started())
    tell(exporter, fleet, life.progress(eventTime=times, observedMetrics={"o": {"field": 7}}))
    tell(exporter, fleet, life.progress())
    names = ("watermark_timestamp_seconds", "event_time_max_timestamp_seconds", "observed")
    assert all(value(samples_of(registry), name) for name in names)
    tell(exporter, fleet, life.terminated(), life.started(), life.progress())
    assert not any(value(samples_of(registry), name) for name in names)


def test_owner_and_version_are_on_the_info_series():
    """The application's settings hold unless the query has its own."""
    exporter, fleet, registry = exporter_alone(
        team="data",
        code_version="1.2.3",
        queries={"orders": QueryConfig(team="shop", alerting=False)},
    )
    life, other = Life("orders"), Life("other")
    tell(exporter, fleet, life.started(), other.started())
    samples = samples_of(registry)
    assert value(samples, "query_info", team="shop", code_version="1.2.3") == 1
    assert value(samples, "query_info", query="other", team="data") == 1
    assert value(samples, "alerting_enabled") == 0
    assert value(samples, "alerting_enabled", query="other") == 1


def test_thresholds_of_one_query_are_series_of_it_alone():
    """The alert rules take them where they are, and their own defaults elsewhere."""
    own = QueryConfig(thresholds={"late_ratio": 0.1, "state_rows": 5e6})
    exporter, fleet, registry = exporter_alone(queries={"orders": own})
    tell(exporter, fleet, Life("orders").started(), Life("other").started())
    samples = samples_of(registry)
    assert value(samples, "alert_threshold", name="late_ratio") == 0.1
    assert value(samples, "alert_threshold", name="state_rows") == 5e6
    assert value(samples, "alert_threshold", query="other") is None


def test_expected_query_that_never_came_is_expected_all_the_same():
    """Absence can be seen without guessing."""
    _, _, registry = exporter_alone(queries={"orders": {"expected": True}})
    assert value(samples_of(registry), "query_expected") == 1


def test_new_checkpoint_under_an_old_name_is_counted():
    """Where this process saw both ids; a restart of the same query is none."""
    exporter, fleet, registry = exporter_alone()
    old, new = Life("orders"), Life("orders")
    tell(exporter, fleet, old.started(), old.terminated(), old.started(), old.terminated())
    assert value(samples_of(registry), "checkpoint_resets_total") == 0
    tell(exporter, fleet, new.started(), new.terminated(), new.started())
    assert value(samples_of(registry), "checkpoint_resets_total") == 1


def test_idle_query_is_fresh_although_it_was_restarted_often():
    """Three failures make its verdict `restarting`; that nothing came since ages no output."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    for _ in range(3):
        tell(exporter, fleet, life.started(), life.progress(), life.terminated("E: x"))
    tell(exporter, fleet, life.started(), life.idle())
    wait_until(exporter, NOW + 290)
    samples = samples_of(registry)
    assert value(samples, "query_state", state="restarting") == 1
    assert value(samples, "freshness_lag_seconds") == 0
    wait_until(exporter, NOW + 310)
    samples = samples_of(registry)
    assert value(samples, "query_state", state="stalled") == 1
    assert value(samples, "freshness_lag_seconds") > 300


def test_batch_after_a_quiet_night_is_as_old_as_its_data():
    """Until the last idle event all was read; what the batch works at came after it."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    morning = NOW + 9 * 3600
    tell(exporter, fleet, life.idle(), now=morning)
    for seconds in (5, 60):
        look_at(exporter, fleet, life, morning + seconds)
    wait_until(exporter, morning + 60)
    samples = samples_of(registry)
    assert value(samples, "query_state", state="running") == 1
    assert value(samples, "freshness_lag_seconds") == 60


def test_restarted_query_that_waits_for_data_is_fresh():
    """Its status says so before any idle event does."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), life.terminated(), life.started())
    assert value(samples_of(registry), "freshness_lag_seconds") > 0
    waits = {"trigger_active": False, "data_available": False, "phase": "waiting_for_data"}
    look_at(exporter, fleet, life, NOW, **waits)
    assert value(samples_of(registry), "query_state", state="starting") == 1
    assert value(samples_of(registry), "freshness_lag_seconds") == 0


def test_old_look_is_not_shown_as_the_present():
    """A JVM too sick to be looked at does not rest between batches: what it does is unknown."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), now=NOW - 40)
    look_at(exporter, fleet, life, NOW - 30)
    look_at(exporter, fleet, life, NOW)
    assert value(samples_of(registry), "inflight_batch_seconds") == 30
    wait_until(exporter, NOW + 61)
    samples = samples_of(registry)
    for name in ("inflight_batch_seconds", "query_trigger_active", "query_data_available"):
        assert value(samples, name) is None, name


def test_longest_batch_is_one_of_the_last_hour():
    """Absent before the first batch, and again an hour after the last: 0 would be a length."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started())
    assert value(samples_of(registry), "batch_duration_max_seconds") is None
    tell(exporter, fleet, life.progress(durationMs={"triggerExecution": 1_800_000}))
    wait_until(exporter, NOW + 3500)
    assert value(samples_of(registry), "batch_duration_max_seconds") == 1800
    wait_until(exporter, NOW + 3700)
    assert value(samples_of(registry), "batch_duration_max_seconds") is None


def test_names_in_the_checkpoint_become_series():
    """Planned, committed, and what is wrong between them."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started())
    look = CheckpointNames(
        query_id=life.query_id,
        run_id=life.run_id,
        at=NOW,
        offsets=(5, 6, 7, 8),
        commits=(5, 6),
        last_commit_at=NOW - 9,
    )
    observe(exporter, fleet, look)
    samples = samples_of(registry)
    assert value(samples, "checkpoint_last_offset_batch_id") == 8
    assert value(samples, "checkpoint_last_commit_batch_id") == 6
    assert value(samples, "checkpoint_uncommitted_batches") == 2
    assert value(samples, "checkpoint_last_commit_timestamp_seconds") == NOW - 9
    assert value(samples, "checkpoint_findings", rule="uncommitted") == 1


def test_two_live_queries_on_one_checkpoint_are_told():
    """Both of them say so."""
    exporter, fleet, registry = exporter_alone()
    for name, place in (("a", "file:/ck"), ("b", "file:/ck"), ("c", "file:/other")):
        life = Life(name)
        tell(exporter, fleet, life.started())
        details = RunDetails(query_id=life.query_id, run_id=life.run_id, checkpoint=place)
        observe(exporter, fleet, details)
    samples = samples_of(registry)
    shared = [value(samples, "checkpoint_shared", query=name) for name in "abc"]
    assert shared == [1, 1, 0]


def test_long_checkpoints_that_differ_at_their_end_are_two():
    """Only the label is cut, and it still tells them apart."""
    exporter, fleet, registry = exporter_alone()
    for name in "ab":
        life = Life(name)
        tell(exporter, fleet, life.started())
        place = f"s3://lake/{'deep/' * 50}{name}"
        details = RunDetails(query_id=life.query_id, run_id=life.run_id, checkpoint=place)
        observe(exporter, fleet, details)
    samples = samples_of(registry)
    assert [value(samples, "checkpoint_shared", query=name) for name in "ab"] == [0, 0]
    infos = [dict(labels) for name, labels in samples if name == "streamgauge_query_info"]
    shown = {info["checkpoint"] for info in infos}
    assert len(shown) == 2
    assert all(len(place) <= 200 for place in shown)


def test_batch_id_that_goes_backwards_is_a_finding():
    """An old copy of the checkpoint was put in place; a replay of the last batch is none."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), *(life.progress() for _ in range(5)), life.terminated())
    life.batch_id -= 1
    tell(exporter, fleet, life.started(), life.progress(), life.terminated())
    assert value(samples_of(registry), "checkpoint_findings", rule="batch-backwards") is None
    life.batch_id = 1
    tell(exporter, fleet, life.started(), life.progress())
    assert value(samples_of(registry), "checkpoint_findings", rule="batch-backwards") == 1


@pytest.mark.parametrize("kinds", [("started", "progress"), ("progress",), ("terminated",)])
def test_any_first_event_is_enough(kinds):
    """A listener added late shows what it can."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    for kind in kinds:
        tell(exporter, fleet, getattr(life, kind)())
    assert generate_latest(registry)


def test_agent_counts_itself(agent):
    """Events by kind, and a duplicate is one."""
    mine = agent()
    life = Life()
    text = life.progress()
    feed(mine, life.started(), text, text, life.idle())
    samples = page(mine)
    for kind, number in (("started", 1), ("progress", 1), ("duplicate", 1), ("idle", 1)):
        assert value(samples, "agent_events_total", query=None, kind=kind) == number
    assert value(samples, "agent_handling_seconds_count", query=None) == 4
    assert value(samples, "build_info", query=None, app="shop") == 1


def test_settings_reach_a_query_whose_name_is_shown_otherwise_than_given():
    """A name that looks like a secret is masked in the label; its owner and its absence are found all the same."""
    settings = {"token:refresh": QueryConfig(team="x", expected=True, alerting=False)}
    exporter, fleet, registry = exporter_alone(queries=settings)
    assert value(samples_of(registry), "query_expected", query="token:***") == 1
    life = Life("token:refresh")
    tell(exporter, fleet, life.started(), life.progress())
    samples = samples_of(registry)
    assert value(samples, "query_info", query="token:***", team="x") == 1
    assert value(samples, "alerting_enabled", query="token:***") == 0
    assert value(samples, "query_expected", query="token:***") == 1


def test_another_name_leaves_nothing_of_the_old_one(agent):
    """The same checkpoint under a new name: its series go, no missed batch is counted again, none is told to have failed."""
    mine = agent()
    life = Life("old")
    feed(mine, life.started(), life.progress())
    life.batch_id += 2
    feed(mine, life.progress(), life.terminated("E: x"))
    life.name = "new"
    feed(mine, life.started(), life.progress())
    wait_for(lambda: value(page(mine), "query_info", query="old") is None)
    samples = page(mine)
    assert value(samples, "query_info", query="new") == 1
    assert value(samples, "batches_total", query="new", data="true") == 1
    assert value(samples, "agent_missed_batches_total", query=None) == 2


def test_query_that_goes_on_in_another_application_begins_anew():
    """Its series have the new `app`; those of a query that has ended keep the old one."""
    current = CurrentApplication(Application(name="first"))
    exporter, fleet, registry = exporter_alone(application=current)
    live, ended = Life("live"), Life("ended")
    tell(exporter, fleet, live.started(), live.progress(), ended.started(), ended.terminated())
    assert current.enter("second", "app-2", "4.0.0")
    look_at(exporter, fleet, live, NOW)
    exporter.export(update_of(fleet.queries[ended.query_id]))
    samples = samples_of(registry)
    assert value(samples, "batches_total", query="live", app="second", data="true") == 0
    assert value(samples, "batches_total", query="live", app="first", data="true") is None
    assert value(samples, "query_starts_total", query="ended", app="first") == 1
    assert value(samples, "build_info", query=None, app="second", spark_version="4.0.0") == 1
    tell(exporter, fleet, ended.started())
    assert value(samples_of(registry), "query_starts_total", query="ended", app="second") == 1
    used = exporter._budget.used
    tell(exporter, fleet, live.progress())
    assert exporter._budget.used >= used > 0


def test_exemplar_needs_a_trace_that_was_sampled():
    """The ids come with the update; those of a trace that nobody kept lead nowhere."""
    exporter, fleet, _ = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started())
    for sampled in (False, True):
        event = decode(life.progress())
        trace = TraceIds("a" * 32, "b" * 16, sampled)
        exporter.export(update_of(apply_to(fleet, event, NOW), event, trace=trace))
        families = {family.name: family for family in exporter.collect()}
        found = families["streamgauge_batch_duration_seconds"].samples
        shown = [sample.exemplar.labels for sample in found if sample.exemplar]
        assert shown == ([{"trace_id": "a" * 32, "span_id": "b" * 16}] if sampled else [])
