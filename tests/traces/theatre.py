"""A fleet and a tracer without Spark, agent or collector: time is what the test says."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from stage import Life, apply_to

from streamgauge.exporters.traces import ids as span_ids
from streamgauge.exporters.traces.own_pipeline import make_own
from streamgauge.exporters.traces.tracer import Tracer
from streamgauge.exporters.traces.users_pipeline import UsersPipeline
from streamgauge.model.decoder import decode
from streamgauge.model.events import Terminated
from streamgauge.model.fleet import Fleet
from streamgauge.model.local_path import find_local
from streamgauge.model.observations import (
    CheckpointNames,
    Gone,
    PlannedBatch,
    QueryStatus,
    RunDetails,
    TableVersion,
)
from streamgauge.model.update import Update
from streamgauge.model.verdict import judge

T0 = 1_794_787_200.0  # 2026-11-16T00:00:00Z


def ids_of_batch(run_id, batch_id):
    """Ids of a batch's root span, as anybody can compute them."""
    return span_ids.to_hex(
        span_ids.trace_id(run_id, batch_id), span_ids.span_id(run_id, batch_id, span_ids.BATCH)
    )


def iso(seconds: float) -> str:
    """A time as Spark writes it."""
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def users_provider() -> tuple[TracerProvider, InMemorySpanExporter]:
    """A TracerProvider as a user would have one, and what reaches its exporter."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider, memory


class Stage:
    """Plays events and looks, and shows the spans that come of them."""

    def __init__(
        self, *, keep_seconds=60.0, provider=None, planned=None, environ=None, name="orders"
    ):
        self.memory = InMemorySpanExporter()
        self.counts = Counter()
        self.complaints = []
        self.fleet = Fleet()
        self.life = Life(name)
        self.now = T0

        def make():
            if provider is not None:
                return UsersPipeline(provider, self._count)
            return make_own(
                [lambda: self.memory],
                {"service.name": "shop"},
                self._count,
                self.complaints.append,
                keep_seconds=keep_seconds,
                environ={} if environ is None else environ,
            )

        self.planned = planned  # on disk: the number of a batch, or that and when it was planned
        self.tracer = Tracer(make, lambda: self.fleet.queries)
        self.ids = None  # of the newest update, as log lines have them
        self.sampled = None  # the same, if an exemplar may have them

    def _read_disk(self, cause):
        """What the disk reader would find for a run that fails."""
        query = self.fleet.queries.get(cause.query_id)
        if self.planned is None or query is None or find_local(query.location) is None:
            return
        batch_id, at = (self.planned, self.now) if isinstance(self.planned, int) else self.planned
        apply_to(
            self.fleet,
            PlannedBatch(query_id=cause.query_id, run_id=cause.run_id, batch_id=batch_id, at=at),
        )

    def tell(self, cause):
        """Have the fleet take in an event or observation, and the tracer the update."""
        if isinstance(cause, Terminated | Gone) and cause.exception:
            self._read_disk(cause)
        query = apply_to(self.fleet, cause, self.now)
        assert query is not None, "the fleet has seen this before"
        self.trace(query, cause)

    def tell_version(self, *, batch_id, run_id, version):
        """Have the fleet know the version of a Delta table, as the disk reader would."""
        made = TableVersion(
            query_id=self.life.query_id, run_id=run_id, batch_id=batch_id, version=version
        )
        self.fleet.apply(made, self.now)

    def trace(self, query, cause=None, **more):
        """Have the tracer take one update; keeps the ids that it returns."""
        update = Update(
            at=self.now, cause=cause, query=query, verdict=judge(query, self.now), **more
        )
        ids = self.tracer.trace(update)
        self.ids = ids and (ids.trace_id, ids.span_id)
        self.sampled = self.ids if ids and ids.sampled else None

    def _count(self, outcome, spans):
        self.counts[outcome] += spans

    def play(self, text):
        """Let the tracer take one event; returns it."""
        event = decode(text)
        self.tell(event)
        return event

    def start(self, after=1.0):
        """A run begins."""
        self.now += after
        return self.play(self.life.started(iso(self.now)))

    def batch(self, after=1.0, seconds=0.5, **changes):
        """A batch begins after so long, and ends well."""
        begins = self.now + after
        self.now = begins + seconds
        phases = changes.pop("phases", None)
        lengths = {"addBatch": 400, "commitOffsets": 20, "getBatch": 1, "latestOffset": 2}
        lengths |= {"queryPlanning": 30, "walCommit": 20} if phases is None else {}
        lengths = lengths if phases is None else phases
        lengths = {**lengths, "triggerExecution": round(seconds * 1000)}
        return self.play(self.life.progress(iso(begins), durationMs=lengths, **changes))

    def end(self, exception=None, error_class=None, after=1.0):
        """The run ends."""
        self.now += after
        return self.play(self.life.terminated(exception, error_class))

    def idle(self, after=10.0):
        """A trigger without work."""
        self.now += after
        return self.play(self.life.idle(iso(self.now)))

    def learn(self, **details):
        """The watchdog reads how the run is configured."""
        found = RunDetails(query_id=self.life.query_id, run_id=self.life.run_id, **details)
        self.tell(found)

    def look(self, after=5.0, **seen):
        """The watchdog looks."""
        self.now += after
        values = {"trigger_active": True, "data_available": True, "phase": "processing", **seen}
        status = QueryStatus(
            query_id=self.life.query_id, run_id=self.life.run_id, at=self.now, **values
        )
        self.tell(status)

    def inspect(self, **names):
        """The names in the checkpoint are read through Spark."""
        found = CheckpointNames(
            query_id=self.life.query_id, run_id=self.life.run_id, at=self.now, **names
        )
        self.tell(found)

    def lose(self, **gone):
        """The watchdog finds that the run is over."""
        found = Gone(
            query_id=self.life.query_id, run_id=self.life.run_id, at=self.now, why="gone", **gone
        )
        self.tell(found)

    @property
    def query(self):
        """What is known of the query."""
        return self.fleet.queries[self.life.query_id]

    def spans(self, name=None):
        """Every span that was written, in the order of writing; nothing can be written after."""
        self.tracer.close()
        found = self.memory.get_finished_spans()
        return [span for span in found if name is None or span.name == name]

    def only(self, name):
        """The one span of this name."""
        (span,) = self.spans(name)
        return span
