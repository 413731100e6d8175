"""An exporter without an agent, given updates one by one."""

from prometheus_client import CollectorRegistry, generate_latest
from stage import apply_to, page

from streamgauge.config import make_config
from streamgauge.exporters.metrics.collector import PrometheusExporter
from streamgauge.model.application import Application
from streamgauge.model.decoder import decode
from streamgauge.model.fleet import Fleet
from streamgauge.model.observations import QueryStatus
from streamgauge.model.stats import Stats
from streamgauge.model.update import Update
from streamgauge.model.verdict import judge

NOW = 1_794_787_300.0  # 2026-11-16T00:01:40Z


def update_of(query, cause=None, at=NOW, **more):
    """An update as the worker makes it; its verdict is new unless `previous` says otherwise."""
    return Update(at=at, cause=cause, query=query, verdict=judge(query, at), **more)


def exporter_alone(application=lambda: Application(name="shop"), **settings):
    """An exporter with its registry, and a fleet to go with it."""
    exporter = PrometheusExporter(
        make_config(settings),
        Stats(),
        application=application,
        clock=lambda: NOW,
        worker_seen_at=lambda: NOW,
    )
    registry = CollectorRegistry()
    registry.register(exporter)
    return exporter, Fleet(), registry


def tell(exporter, fleet, *texts, now=NOW):
    """Have both told of these events."""
    for text in texts:
        event = decode(text)
        query = apply_to(fleet, event, now)
        if query is not None:
            exporter.export(update_of(query, event, now))


def observe(exporter, fleet, seen, at=NOW):
    """Have both told of an observation."""
    exporter.export(update_of(apply_to(fleet, seen, at), seen, at))


def look_at(exporter, fleet, life, at, **seen):
    """Have both told of a poll of the driver."""
    values = {"trigger_active": True, "data_available": True, "phase": "processing", **seen}
    status = QueryStatus(query_id=life.query_id, run_id=life.run_id, at=at, **values)
    observe(exporter, fleet, status, at)


def wait_until(exporter, now):
    """Let time pass; the worker stays well."""
    exporter._clock = exporter._worker_seen_at = lambda: now


def samples_of(registry):
    """What a scrape would see."""
    return page(generate_latest(registry).decode())
