"""The page: every series of the contract, as one collector for prometheus-client.

The worker writes; a scrape reads only what the worker has published whole. What depends on the
time (ages, the verdict) is computed during the scrape, so that a blocked worker shows as `blind`
instead of freezing the page. No global of prometheus-client is touched.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar, Sample

from streamgauge.config import Config
from streamgauge.exporters import Exporter
from streamgauge.exporters.traces.ids import Ids
from streamgauge.masking import clean
from streamgauge.model.events import Event, Progress, Started, Terminated
from streamgauge.model.query import Query
from streamgauge.model.stats import Stats

from .budget import Budget
from .histogram import AGENT_BOUNDS, Histogram
from .page import Page
from .table import EVENT_KINDS, METRICS, PARTS, PREFIX, SPAN_OUTCOMES


class PrometheusExporter(Exporter, Collector):
    """Keeps the pages, and is the collector that a registry asks for them."""

    name = "prometheus"

    def __init__(
        self,
        config: Config,
        stats: Stats,
        *,
        clock: Callable[[], float] = time.time,
        worker_seen_at: Callable[[], float] = time.time,
        inbox_events: Callable[[], int] = lambda: 0,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        self.app = config.app or "unknown"
        self.spark_version = ""
        self.version = ""
        self.callback_seconds = Histogram(AGENT_BOUNDS)
        self.handling_seconds = Histogram(AGENT_BOUNDS)
        self.trace_of: Callable[[Progress], Ids | None] = lambda _: None
        self.dropped: Callable[[], Mapping[str, int]] = dict
        self._config = config
        self._stats = stats
        self._clock = clock
        self._worker_seen_at = worker_seen_at
        self._inbox_events = inbox_events
        self._refused = refused
        self._budget = Budget(config.series_limit, self._refuse)
        self._pages: dict[str, Page] = {}

    # ---- worker ----------------------------------------------------------------------------

    def handle(self, event: Event, query: Query) -> None:
        """Write an event to its query's page."""
        page = self._page(query)
        if page is None:
            return
        if page.query.run_id != query.run_id:
            page.renew()
        if isinstance(event, Started):
            page.start(reset=bool(query.replaced_query_id) and query.last_end is None)
        elif isinstance(event, Progress):
            page.progress(event, self.exemplar_of(event))
        elif isinstance(event, Terminated):
            outcome = "failed" if event.exception else "stopped"
            page.terminate(outcome, event.error_class)
        page.publish(query)

    def observe(self, query: Query) -> None:
        """Write what was learned between events; a run that was lost ends here."""
        page = self._page(query)
        if page is None:
            return
        for end, known in ((query.end, page.query.end), (query.last_end, page.query.last_end)):
            if end is not None and end is not known and page.query.run_id == query.run_id:
                page.terminate(end.outcome, end.error_class)
        failed = query.end is not None and query.end.outcome == "failed"
        grace = self._config.grace_seconds
        if failed and query.end and self._clock() - query.end.at > grace:
            page.shrink(query)
            return
        page.publish(query)

    def forget(self, query: Query) -> None:
        """Take a query off the page."""
        page = self._pages.pop(query.label, None)
        if page is not None:
            page.leave()

    def exemplar_of(self, event: Progress) -> Exemplar | None:
        """The trace that a batch belongs to, where there is one that was sampled."""
        ids = self.trace_of(event)
        if ids is None or event.seconds is None:
            return None
        return Exemplar(ids._asdict(), event.seconds, event.ended_at)

    def _page(self, query: Query) -> Page | None:
        page = self._pages.get(query.label)
        if page is None and self._budget.has_room(Page.least()):
            settings = self._config.of_query(query.name or query.label)
            page = Page(self.app, query, settings, self._budget)
            self._pages = {**self._pages, query.label: page}
        return page

    def _refuse(self) -> None:
        self._stats.count("errors", "series")
        self._refused()

    # ---- scrape ----------------------------------------------------------------------------

    def describe(self) -> list[Family]:
        """The families, empty: lets a registry find clashes of names without a scrape."""
        return [_family(name) for name in METRICS]

    def collect(self) -> Iterator[Family]:
        """Everything there is to say now. Any thread."""
        now, worker_seen_at = self._clock(), self._worker_seen_at()
        families: dict[str, Family] = {}
        pages = list(self._pages.values())
        shared = _shared(page.query for page in pages)
        for page in pages:
            for name, samples in page.samples.items():
                _samples_of(families, name).extend(samples)
            for name, sample in page.live_samples(now, worker_seen_at, shared):
                _samples_of(families, name).append(sample)
        for name in self._missing():
            labels = {"app": self.app, "query": name}
            sample = Sample(f"{PREFIX}query_expected", labels, 1.0)
            _samples_of(families, "query_expected").append(sample)
        self._collect_agent(families, worker_seen_at)
        yield from (families[name] for name in METRICS if name in families)

    def _missing(self) -> list[str]:
        """Queries that the settings expect and that are not here."""
        expected = (
            clean(name) for name, settings in self._config.queries.items() if settings.expected
        )
        return [name for name in expected if name not in self._pages]

    def _collect_agent(self, families: dict[str, Family], worker_seen_at: float) -> None:
        def put(name: str, value: float, **labels: str) -> None:
            _samples_of(families, name).append(Sample(PREFIX + name, labels, value))

        events, errors = self._stats.of("events"), self._stats.of("errors")
        for kind in dict.fromkeys((*EVENT_KINDS, "duplicate", *events)):
            put("agent_events_total", events.get(kind, 0), kind=kind)
        dropped = self.dropped()
        for kind in dict.fromkeys((*EVENT_KINDS, *dropped)):
            put("agent_events_dropped_total", dropped.get(kind, 0), kind=kind)
        for part in dict.fromkeys((*PARTS, *errors)):
            put("agent_errors_total", errors.get(part, 0), part=part)
        for what in ("fallback_events", "missed_batches", "bus_dropped_events"):
            put(f"agent_{what}_total", sum(self._stats.of(what).values()))
        for name in ("agent_callback_seconds", "agent_handling_seconds"):
            histogram: Histogram = getattr(self, name.removeprefix("agent_"))
            _samples_of(families, name).extend(histogram.samples(PREFIX + name, {}))
        spans = self._stats.of("spans")
        for outcome in SPAN_OUTCOMES:
            put("agent_spans_total", spans.get(outcome, 0), outcome=outcome)
        put("agent_heartbeat_timestamp_seconds", worker_seen_at)
        put("agent_inbox_events", self._inbox_events())
        put("agent_series", self._budget.used)
        put("agent_series_limit", self._budget.limit)
        put("build_info", 1, app=self.app, version=self.version, spark_version=self.spark_version)


def _family(name: str) -> Family:
    metric = METRICS[name]
    return Family(metric.full_name.removesuffix("_total"), metric.help, metric.kind)


def _samples_of(families: dict[str, Family], name: str) -> list[Sample]:
    family = families.get(name)
    if family is None:
        family = families[name] = _family(name)
    return family.samples


def _shared(queries: Iterable[Query]) -> frozenset[str]:
    """The checkpoints that more than one live query has."""
    places = Counter(q.details.checkpoint for q in queries if q.live and q.details)
    return frozenset(place for place, number in places.items() if place and number > 1)
