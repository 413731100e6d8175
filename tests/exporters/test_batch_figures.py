"""Observed metrics, figures of operators, rates: what a batch says, and for how long it holds."""

import json

import pytest
from exposition import NOW, exporter_alone, look_at, samples_of, tell, wait_until
from stage import EVENTS, Life, value

from streamgauge.exporters.metrics.operators import OPERATOR_METRICS
from streamgauge.model.decoder import decode


def _empty(life, **changes):
    """A batch that reads nothing, as Spark runs it to move the watermark."""
    text = json.loads(life.progress(numInputRows=0, **changes))
    (source,) = text["progress"]["sources"]
    source["endOffset"] = source["latestOffset"] = source["startOffset"]
    return json.dumps(text)


def _observed(samples, field, name="quality"):
    return value(samples, "observed", name=name, field=field)


def _total(samples, field, name="quality"):
    return value(samples, "observed_counted_total", name=name, field=field)


# ---- observed metrics --------------------------------------------------------------------------


def test_observed_keeps_the_last_batch_with_data():
    """The batch that moves the watermark counts 0 rows and has no maximum: that is not news."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    seen = {"quality": {"rows": 7, "largest": 3.5}}
    tell(exporter, fleet, life.started(), life.progress(observedMetrics=seen))
    nothing = {"quality": {"rows": 0, "largest": None}}
    tell(exporter, fleet, _empty(life, observedMetrics=nothing))
    samples = samples_of(registry)
    assert (_observed(samples, "rows"), _observed(samples, "largest")) == (7, 3.5)
    tell(exporter, fleet, life.progress(observedMetrics={"quality": {"rows": 0, "largest": None}}))
    samples = samples_of(registry)
    assert (_observed(samples, "rows"), _observed(samples, "largest")) == (0, None)


def test_observed_behind_an_aggregation_counts_what_an_empty_batch_emits():
    """Windows close in the batch without input: there the observation says something."""
    exporter, fleet, registry = exporter_alone(
        queries={"orders": {"observed_counts": ["windows.rows"]}}
    )
    life = Life()
    both = {"quality": {"rows": 7}, "windows": {"rows": 0}}
    tell(exporter, fleet, life.started(), life.progress(observedMetrics=both))
    both = {"quality": {"rows": 0}, "windows": {"rows": 4}}
    tell(exporter, fleet, _empty(life, observedMetrics=both))
    samples = samples_of(registry)
    assert (_observed(samples, "rows"), _observed(samples, "rows", "windows")) == (7, 4)
    assert _total(samples, "rows", "windows") == 4


def test_fields_that_are_counts_are_counters_too():
    """Only those that the settings name, over batches, replays and runs; what no scrape saw is in it."""
    exporter, fleet, registry = exporter_alone(
        queries={"orders": {"observed_counts": ["quality.rows", "*.bad_*"]}}
    )
    life = Life()
    seen = {"quality": {"rows": 7, "bad_rows": 2, "largest": 9}}
    tell(exporter, fleet, life.started())
    for _ in range(3):
        tell(exporter, fleet, life.progress(observedMetrics=seen))
    tell(exporter, fleet, _empty(life, observedMetrics={"quality": {"rows": 0}}))
    tell(exporter, fleet, life.terminated(), life.started())
    again = {"addBatch": 400, "triggerExecution": 500}
    tell(exporter, fleet, life.progress(observedMetrics=seen, durationMs=again))
    samples = samples_of(registry)
    assert value(samples, "batches_replayed_total") == 1
    assert (_total(samples, "rows"), _total(samples, "bad_rows")) == (28, 8)
    assert _total(samples, "largest") is None
    assert _observed(samples, "rows") == 7


@pytest.mark.parametrize("value_", [-5, float("nan"), float("inf"), "many", True])
def test_what_is_no_count_is_never_added(value_):
    """A counter only grows; a number below 0 is shown, and not added."""
    exporter, fleet, registry = exporter_alone(queries={"orders": {"observed_counts": ["*"]}})
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(observedMetrics={"quality": {"rows": 3}}))
    tell(exporter, fleet, life.progress(observedMetrics={"quality": {"rows": value_}}))
    assert _total(samples_of(registry), "rows") == 3


def test_observed_is_not_counted_unless_asked_for():
    """A mean that is added up says nothing."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(observedMetrics={"quality": {"rows": 3}}))
    samples = samples_of(registry)
    assert (_observed(samples, "rows"), _total(samples, "rows")) == (3, None)


# ---- figures of operators ----------------------------------------------------------------------


@pytest.mark.parametrize("metric", OPERATOR_METRICS.values(), ids=lambda metric: metric.spark)
def test_each_figure_of_an_operator_has_its_series(metric):
    """What a batch counts is added up; numbers of variables are shown as they are; -1 is not known."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started())
    for number in (2000, 3000, -1):
        operator = {"operatorName": "op", "customMetrics": {metric.spark: number}}
        tell(exporter, fleet, life.progress(stateOperators=[operator]))
    samples = samples_of(registry)
    expected = 5000 * metric.scale if metric.counter else None
    assert value(samples, metric.name, operator="0-op") == expected
    assert value(samples, "state_custom", operator="0-op", metric=metric.spark) is None
    assert metric.counter == metric.name.endswith("_total")


@pytest.mark.parametrize("version", sorted(path.name for path in EVENTS.iterdir()))
def test_no_figure_of_a_real_operator_is_left_over(version):
    """Deduplication, joins, transformWithState and the others: Spark reports no metric that has no series."""
    exporter, fleet, registry = exporter_alone()
    seen = set()
    for path in sorted((EVENTS / version).glob("progress-*.json")):
        seen |= {name for op in decode(path.read_text()).operators for name in op.custom}
        tell(exporter, fleet, path.read_text())
    assert "numDroppedDuplicateRows" in seen
    assert not [key for key in samples_of(registry) if key[0] == "streamgauge_state_custom"]


# ---- rates -------------------------------------------------------------------------------------


def _rates(registry):
    samples = samples_of(registry)
    return (
        value(samples, "input_rows_per_second"),
        value(samples, "processed_rows_per_second"),
    )


def _running():
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress(), now=NOW)
    assert _rates(registry) == (10.0, 20.0)
    return exporter, fleet, registry, life


def test_rate_of_an_idle_query_is_zero():
    """Nothing was there to read, which Spark said; at what pace it would process is not known."""
    exporter, fleet, registry, life = _running()
    tell(exporter, fleet, life.idle(), now=NOW + 10)
    wait_until(exporter, NOW + 11)
    assert _rates(registry) == (0.0, None)
    tell(exporter, fleet, life.progress(), now=NOW + 20)
    wait_until(exporter, NOW + 20)
    assert _rates(registry) == (10.0, 20.0)


def test_first_batch_after_idling_has_no_rate_yet():
    """It was idle and is no longer: until the batch ends nothing is known."""
    exporter, fleet, registry, life = _running()
    tell(exporter, fleet, life.idle(), now=NOW + 10)
    look_at(exporter, fleet, life, NOW + 15, batch_id=1)
    wait_until(exporter, NOW + 16)
    assert _rates(registry) == (None, None)


def test_rate_of_a_hung_query_is_absent():
    """At first the last figures stand; once the batch takes longer than all before it, they are history."""
    exporter, fleet, registry, life = _running()
    look_at(exporter, fleet, life, NOW + 5, trigger_started_at=NOW + 1, batch_id=1)
    wait_until(exporter, NOW + 10)
    assert _rates(registry) == (10.0, 20.0)
    for seconds in (40, 400):
        look_at(exporter, fleet, life, NOW + seconds, trigger_started_at=NOW + 1, batch_id=1)
        wait_until(exporter, NOW + seconds + 1)
        assert _rates(registry) == (None, None)
    assert value(samples_of(registry), "query_state", state="stalled") == 1


def test_rate_of_a_query_that_cant_be_seen_is_absent():
    """Without events and without polls nothing is known, long before it counts as stalled."""
    exporter, _, registry, _ = _running()
    wait_until(exporter, NOW + 60)
    assert value(samples_of(registry), "query_state", state="stalled") == 0
    assert _rates(registry) == (None, None)


def test_rate_of_an_ended_query_is_absent():
    """It processes nothing."""
    exporter, fleet, registry, life = _running()
    tell(exporter, fleet, life.terminated(), now=NOW)
    assert _rates(registry) == (None, None)
