"""An exporter without an agent, told of events one by one."""

from prometheus_client import CollectorRegistry, generate_latest
from stage import apply_to, page

from streamgauge.config import make_config
from streamgauge.exporters.metrics.collector import PrometheusExporter
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import QueryStatus
from streamgauge.model.stats import Stats

NOW = 1_794_787_300.0  # 2026-11-16T00:01:40Z


def exporter_alone(**settings):
    """An exporter with its registry, and a fleet to go with it."""
    config = make_config({"app": "shop", **settings})
    exporter = PrometheusExporter(config, Stats(), clock=lambda: NOW, worker_seen_at=lambda: NOW)
    registry = CollectorRegistry()
    registry.register(exporter)
    return exporter, Fleet(), registry


def tell(exporter, fleet, *texts, now=NOW):
    """Have both told of these events."""
    for text in texts:
        event = decode(text)
        query = apply_to(fleet, event, now)
        if query is not None:
            exporter.handle(event, query)


def look_at(exporter, fleet, life, at, **seen):
    """Have both told of a look at the driver."""
    values = {"trigger_active": True, "data_available": True, "phase": "processing", **seen}
    exporter.observe(
        apply_to(fleet, QueryStatus(query_id=life.query_id, run_id=life.run_id, at=at, **values))
    )


def wait_until(exporter, now):
    """Let time pass; the worker stays well."""
    exporter._clock = exporter._worker_seen_at = lambda: now


def samples_of(registry):
    """What a scrape would see."""
    return page(generate_latest(registry).decode())
