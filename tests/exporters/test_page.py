"""The page as a whole: well formed, bounded, declared, and no names break it."""

import json
import math
import subprocess

from exposition import NOW, exporter_alone, samples_of, tell, update_of
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from stage import EVENTS, Life, QuietDriver, apply_to, page, program, recorded, value

from streamgauge.agent import Agent
from streamgauge.config import Config, make_config
from streamgauge.exporters.http.live import LiveExporter
from streamgauge.exporters.metrics.table import METRICS
from streamgauge.listener.inbox import Item
from streamgauge.model.application import Application
from streamgauge.model.decoder import UndecodableEvent, decode


def test_budget_refuses_counts_and_breaks_nothing():
    """Past the limit new label sets are refused; what is there stays right."""
    exporter, fleet, registry = exporter_alone(series_limit=130)
    refused = []
    exporter._refused = lambda: refused.append(1)
    life = Life()
    observed = {"o": {f"field{n}": n for n in range(500)}}
    tell(exporter, fleet, life.started())
    for _ in range(3):
        tell(exporter, fleet, life.progress(observedMetrics=observed))
    samples = samples_of(registry)
    assert value(samples, "batches_total", data="true") == 3
    assert value(samples, "agent_series", query=None) <= 130
    assert value(samples, "agent_series_limit", query=None) == 130
    assert len([k for k in samples if k[0] == "streamgauge_observed"]) < 130
    assert value(samples, "agent_errors_total", query=None, part="series") > 0
    assert refused


def test_queries_past_the_budget_are_refused_whole():
    """A thousand random names can't fill the page; what was there first stays."""
    exporter, fleet, registry = exporter_alone(series_limit=1000)
    for n in range(200):
        tell(exporter, fleet, Life(f"q{n}").started())
    samples = samples_of(registry)
    assert value(samples, "query_active", query="q0") == 1
    assert value(samples, "query_active", query="q199") is None
    assert value(samples, "agent_series", query=None) <= 1000
    assert len(samples) <= 1100


def test_failed_query_gives_back_what_does_not_stay():
    """What the budget counts of it is what a scrape shows, and a restart takes its place back."""
    exporter, fleet, registry = exporter_alone(grace_seconds=0)
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    full = exporter._budget.used
    tell(exporter, fleet, life.terminated("E: x"))
    for _ in range(2):
        exporter.export(update_of(fleet.queries[life.query_id], at=NOW + 1))
        shown = [labels for _, labels in samples_of(registry) if ("query", "orders") in labels]
        assert exporter._budget.used == len(shown)
    tell(exporter, fleet, life.started(), life.progress())
    assert len(shown) < exporter._budget.used <= full + 1  # the count of its failure stays
    exporter.export(update_of(fleet.queries[life.query_id], forgotten=True))
    assert exporter._budget.used == 0


def test_throwaway_queries_that_fail_hide_no_healthy_one():
    """A new id and a failure each minute, a thousand times: the next query still gets its page."""
    now = [NOW]
    agent = Agent(
        make_config({"app": "shop", "log_level": "off", "metrics_address": ""}),
        driver=QuietDriver(),
        clock=lambda: now[0],
    )
    for _ in range(1000):
        life = Life(None)
        agent.step(
            Item("started", life.started(), now[0]),
            Item("terminated", life.terminated("E: x"), now[0]),
        )
        now[0] += 60
    agent.step(Item("started", Life("healthy").started(), now[0]))
    agent.registry.register(agent.prometheus)
    samples = page(agent)
    assert value(samples, "query_active", query="healthy") == 1
    assert value(samples, "agent_series", query=None) < 10_500
    assert len(agent.queries) == 501
    assert len(json.loads(agent.live.render())["queries"]) == 501


def test_every_recorded_event_passes_promtool():
    """Names, types and help of everything that Spark can feed are as Prometheus wants them."""
    exporter, fleet, registry = exporter_alone()
    for path in sorted(EVENTS.glob("*/*.json")):
        if path.name != "sinks.json":
            tell(exporter, fleet, path.read_text(encoding="utf-8"))
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=generate_latest(registry),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_page_holds_only_what_the_table_declares():
    """Every family has its entry, its type and exactly its labels."""
    exporter, fleet, registry = exporter_alone()
    for name in ("progress-agg-rocksdb", "progress-stream-stream-join-hdfs", "query-idle"):
        tell(exporter, fleet, recorded("4.3.0", name))
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        name = family.name.removeprefix("streamgauge_")
        metric = METRICS.get(name) or METRICS[f"{name}_total"]
        assert family.type == metric.kind
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), sample


def test_openmetrics_is_well_formed():
    """The strict parser reads it whole."""
    exporter, fleet, registry = exporter_alone()
    tell(exporter, fleet, recorded("4.3.0", "progress-agg-rocksdb"))
    text = generate_openmetrics(registry).decode()
    assert len(list(parse_openmetrics(text))) > 50


def test_users_own_metrics_look_as_before():
    """No global of prometheus-client is changed, `_created` series included."""
    own = CollectorRegistry()
    counter = Counter("mine", "Mine.", registry=own)
    counter.inc()
    before = generate_latest(own)
    default = sorted(REGISTRY._names_to_collectors)
    exporter, fleet, registry = exporter_alone()
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    generate_latest(registry)
    assert generate_latest(own) == before
    assert b"mine_created" in before
    assert sorted(REGISTRY._names_to_collectors) == default


def test_users_registry_can_be_used():
    """Metrics go where the user's own are, and leave with the agent."""
    own = CollectorRegistry()
    mine = Agent(Config(app="shop", log_level="off"), registry=own)
    assert not mine._serves
    own.register(mine.prometheus)
    assert b"streamgauge_build_info" in generate_latest(own)


_name = st.text(min_size=1, max_size=30)


@given(_name, _name, _name, _name)
def test_no_name_breaks_the_exposition(query, operator, metric, observed):
    """Quotes, newlines, surrogates, escape codes: the page parses, in both formats."""
    exporter, fleet, registry = exporter_alone()
    life = Life(query)
    text = life.progress(
        stateOperators=[
            {"operatorName": operator, "numRowsTotal": 1, "customMetrics": {metric: 2}}
        ],
        observedMetrics={observed: {metric: 3.5}},
        sources=[{"description": observed, "numInputRows": 1}],
        durationMs={metric: 5, "triggerExecution": 10},
    )
    try:
        tell(exporter, fleet, life.started(), text, life.terminated(f"{query}: x", operator))
    except UndecodableEvent:
        return
    list(text_string_to_metric_families(generate_latest(registry).decode("utf-8")))
    list(parse_openmetrics(generate_openmetrics(registry).decode("utf-8")))


_number = st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=5))


@given(st.lists(_number, min_size=2, max_size=4))
def test_no_number_breaks_the_exposition(numbers):
    """Huge, negative, not a number: batch after batch adds up to a page that parses, and to the live page."""
    exporter, fleet, registry = exporter_alone()
    life = Life()
    live = LiveExporter(application=Application, clock=lambda: NOW, worker_seen_at=lambda: NOW)
    for number in numbers:
        operator = {
            "operatorName": "dedupe", "numRowsTotal": number, "numRowsUpdated": number,
            "commitTimeMs": number, "customMetrics": {"rocksdbGetCount": number, "new": number},
        }  # fmt: skip
        event = decode(
            life.progress(
                numInputRows=number,
                inputRowsPerSecond=number,
                durationMs={"addBatch": number, "triggerExecution": number},
                stateOperators=[operator],
                observedMetrics={"o": {"field": number}},
                sink={"description": "MemorySink", "numOutputRows": number},
                sources=[{"description": "x", "numInputRows": number, "endOffset": number}],
            )
        )
        update = update_of(apply_to(fleet, event, NOW), event)
        exporter.export(update)
        live.export(update)
    for metric in text_string_to_metric_families(generate_latest(registry).decode("utf-8")):
        assert all(math.isfinite(sample.value) for sample in metric.samples)
    list(parse_openmetrics(generate_openmetrics(registry).decode("utf-8")))
    live.render()


def test_no_two_families_have_one_name():
    """OpenMetrics leaves `_total` out of a counter's name: a gauge of that name would be the same family."""
    names = [metric.full_name.removesuffix("_total") for metric in METRICS.values()]
    assert len(names) == len(set(names))


def test_step_of_the_clock_is_no_start(monkeypatch):
    """Rules count changes of the start as restarts; other times follow the clock."""
    exporter, fleet, registry = exporter_alone()
    offset = [0.0]
    monkeypatch.setattr(exporter, "_wall_offset", lambda: offset[0])
    life = Life()
    tell(exporter, fleet, life.started(), life.progress())
    names = ("query_started_timestamp_seconds", "last_event_timestamp_seconds")
    before = [value(samples_of(registry), name) for name in names]
    for step in (0.25, 0.0, -3600.0):
        offset[0] = step
        assert value(samples_of(registry), names[0]) == before[0]
        assert value(samples_of(registry), names[1]) == before[1] + step
        tell(exporter, fleet, life.progress())
        assert value(samples_of(registry), names[0]) == before[0]
    tell(exporter, fleet, life.terminated())
    ended = value(samples_of(registry), "query_ended_timestamp_seconds")
    offset[0] = 0.0
    assert value(samples_of(registry), "query_ended_timestamp_seconds") == ended
