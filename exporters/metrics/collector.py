"""The page: every series of the contract, as one collector for prometheus-client.

The worker writes; a scrape reads only what the worker has published whole. What depends on the
time (ages, the verdict) is computed during the scrape, so that a blocked worker shows as `blind`
instead of freezing the page. No global of prometheus-client is touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar, Sample

from streamgauge.config import Config
from streamgauge.exporters import Exporter
from streamgauge.masking import clean
from streamgauge.model.application import Application
from streamgauge.model.events import Event, Idle, Progress, Started, Terminated
from streamgauge.model.query import Query
from streamgauge.model.stats import Stats
from streamgauge.model.update import TraceIds, Update
from streamgauge.model.verdict import judge
from streamgauge.steady import no_offset, steady_time

from .agent_series import AgentSeries
from .budget import Budget
from .live_series import Times
from .page import Page
from .table import METRICS, PREFIX


class PrometheusExporter(Exporter, Collector):
    """Keeps the pages, and is the collector that a registry asks for them."""

    name = "prometheus"
    steady_times = True

    def __init__(
        self,
        config: Config,
        stats: Stats,
        *,
        application: Callable[[], Application],
        clock: Callable[[], float] = steady_time,
        wall_offset: Callable[[], float] = no_offset,
        worker_seen_at: Callable[[], float] = steady_time,
        inbox_events: Callable[[], int] = lambda: 0,
        dropped: Callable[[], Mapping[str, int]] = dict,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        """`dropped` counts the inbox's lost events by kind; `refused` is called at the series limit."""
        self._config = config
        self._stats = stats
        self._application = application
        self._clock = clock
        self._wall_offset = wall_offset
        self._worker_seen_at = worker_seen_at
        self._refused = refused
        self._budget = Budget(config.series_limit, self._refuse)
        self._agent = AgentSeries(stats, self._budget, dropped=dropped, inbox_events=inbox_events)
        self.callback_seconds = self._agent.callback_seconds
        self.handling_seconds = self._agent.handling_seconds
        self._pages: dict[str, Page] = {}

    # ---- worker ----------------------------------------------------------------------------

    def export(self, update: Update) -> None:
        """Write an update to its query's page."""
        if update.forgotten:
            self._remove(update.query.label)
            return
        page = self._page(update.query)
        if page is None:
            return
        if isinstance(update.cause, Started | Progress | Idle | Terminated):
            self._write_event(page, update.cause, update)
        else:
            self._write_observation(page, update)

    def time(self, callback_seconds: float | None, handling_seconds: float) -> None:
        """Note what one event cost: Spark's thread (None where it did not wait), and the worker."""
        if callback_seconds is not None:
            self.callback_seconds.observe(callback_seconds)
        self.handling_seconds.observe(handling_seconds)

    def _write_observation(self, page: Page, update: Update) -> None:
        """Write what was learned between events; a run that was lost ends here."""
        query, known = update.query, page.query
        if known.run_id == query.run_id:
            for end, old in ((query.end, known.end), (query.last_end, known.last_end)):
                if end is not None and end is not old:
                    page.terminate(end.outcome, end.error_class)
        end = query.end
        faded = end is not None and update.at - end.at > self._config.grace_seconds
        if end is not None and end.outcome == "failed" and faded:
            page.shrink(query, self._wall_offset())
        else:
            page.publish(query, self._wall_offset())

    def _write_event(self, page: Page, event: Event, update: Update) -> None:
        query, offset = update.query, self._wall_offset()
        if page.query.run_id != query.run_id:
            page.renew()
        if isinstance(event, Started):
            page.start(reset=bool(query.replaced_query_id) and query.last_end is None)
        elif isinstance(event, Progress):
            page.progress(event, exemplar_of(event, update.trace, offset))
        elif isinstance(event, Terminated):
            page.terminate("failed" if event.exception else "stopped", event.error_class)
        page.publish(query, offset)

    def _page(self, query: Query) -> Page | None:
        """The page of a query; None when there is no room for one.

        That of a query that runs on in another application begins anew: its label `app` is another.
        """
        app = self._application().name
        page = self._pages.get(query.label)
        if page is not None and query.live and page.labels["app"] != app:
            self._remove(query.label)
            page = None
        if page is None and self._budget.has_room(Page.least()):
            settings = self._config.of_query(query.name or query.label)
            page = Page(app, query, settings, self._budget)
            self._pages = {**self._pages, query.label: page}
        return page

    def _remove(self, label: str) -> None:
        page = self._pages.get(label)
        if page is not None:
            self._pages = {key: each for key, each in self._pages.items() if key != label}
            page.leave()

    def _refuse(self) -> None:
        self._stats.count("errors", "series")
        self._refused()

    # ---- scrape ----------------------------------------------------------------------------

    def active_runs(self) -> frozenset[str]:
        """The runs that the page shows as active. Any thread."""
        queries = [page.query for page in self._pages.values()]
        return frozenset(query.run_id for query in queries if query.live)

    def describe(self) -> list[Family]:
        """The families, empty: lets a registry find clashes of names without a scrape."""
        return [_family(name) for name in METRICS]

    def collect(self) -> Iterator[Family]:
        """Everything there is to say now. Any thread."""
        now, worker_seen_at = self._clock(), self._worker_seen_at()
        offset = self._wall_offset()
        application, pages = self._application(), self._pages
        families: dict[str, Family] = {}
        queries = {label: page.query for label, page in pages.items()}
        shared = _shared(queries.values())
        for label, page in pages.items():
            for name, samples in page.samples(offset).items():
                _samples_of(families, name).extend(samples)
            query = queries[label]
            verdict = judge(query, now, worker_seen_at=worker_seen_at)
            for name, sample in page.live_samples(query, verdict, Times(now, offset), shared):
                _samples_of(families, name).append(sample)
        for label in self._missing(pages):
            labels = {"app": application.name, "query": label}
            sample = Sample(f"{PREFIX}query_expected", labels, 1.0)
            _samples_of(families, "query_expected").append(sample)
        for name, sample in self._agent.samples(application, worker_seen_at, now, offset):
            _samples_of(families, name).append(sample)
        yield from (families[name] for name in METRICS if name in families)

    def _missing(self, pages: Mapping[str, Page]) -> list[str]:
        """Queries that the settings expect and that are not here."""
        expected = (
            clean(name) for name, settings in self._config.queries.items() if settings.expected
        )
        return [name for name in expected if name not in pages]


def exemplar_of(batch: Progress, trace: TraceIds | None, offset: float) -> Exemplar | None:
    """The trace that a batch belongs to, where there is one that was sampled."""
    if trace is None or not trace.sampled or batch.seconds is None:
        return None
    labels = {"trace_id": trace.trace_id, "span_id": trace.span_id}
    return Exemplar(labels, batch.seconds, batch.ended_at + offset)


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
