"""A TracerProvider of the user's own: its ids, its sampler, its exporters; and ours is no global."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode
from stage import Life, feed
from theatre import Stage, users_provider

from streamgauge.agent import Agent
from streamgauge.config import make_config
from streamgauge.exporters.traces import ids as span_ids
from streamgauge.listener.driver import ApplicationInfo

P = "spark.streaming."


@pytest.fixture
def own():
    """A user's provider and what reaches its exporter."""
    return users_provider()


def test_spans_go_through_the_users_provider(own):
    """The same tree and attributes; the ids are the provider's, and log and exemplar have them."""
    provider, memory = own
    stage = Stage(provider=provider)
    stage.start()
    start_ids = stage.ids
    stage.batch()
    spans = memory.get_finished_spans()
    root = next(span for span in spans if span.name == "batch orders")
    start = next(span for span in spans if span.name == "start orders")
    assert root.context.trace_id != span_ids.trace_id(stage.life.run_id, 0)
    ids = span_ids.to_hex(root.context.trace_id, root.context.span_id)
    assert stage.ids == stage.sampled == ids
    assert start_ids == span_ids.to_hex(start.context.trace_id, start.context.span_id)
    assert len([span for span in spans if span.parent is not None]) == 6
    assert root.links[0].context.span_id == start.context.span_id
    assert stage.counts == {"handed_over": 8}


def test_hung_batch_is_below_the_span_that_comes_later(own):
    """The root is begun early, and ends with the batch; its start is the trigger's."""
    provider, memory = own
    stage = Stage(provider=provider)
    stage.start()
    stage.batch()
    began = stage.now + 1.0
    stage.look(after=400.0, batch_id=1, trigger_started_at=began)
    (running,) = [span for span in memory.get_finished_spans() if span.name == "running"]
    stage.batch(after=began - stage.now, seconds=500.0)
    root = [span for span in memory.get_finished_spans() if span.name == "batch orders"][-1]
    assert running.parent.span_id == root.context.span_id
    assert root.start_time == round(began * 1000) * 1_000_000
    assert root.attributes["spark.streaming.batch.id"] == 1


def test_root_that_was_begun_early_ends_with_the_run(own):
    """A run that stops in a batch leaves no span open."""
    provider, memory = own
    stage = Stage(provider=provider)
    stage.start()
    stage.batch()
    stage.tracer.context_of(stage.life.run_id, 1, stage.query)
    stage.end()
    names = [span.name for span in memory.get_finished_spans()]
    assert names.count("batch orders") == 2
    assert all(s.status.status_code is StatusCode.UNSET for s in memory.get_finished_spans())


def test_roots_begin_with_what_is_known_of_them(own):
    """A sampler or a processor of the user's sees query, run and batch from the beginning."""
    provider, _ = own
    begun = []

    class Watch(SpanProcessor):
        def on_start(self, span, parent_context=None):
            begun.append((span.name, dict(span.attributes)))

    provider.add_span_processor(Watch())
    stage = Stage(provider=provider)
    stage.start()
    stage.batch()
    stage.tracer.context_of(stage.life.run_id, 1, stage.query)
    stage.look(after=400.0, batch_id=2, trigger_started_at=stage.now + 1.0)
    roots = [said for name, said in begun if name.endswith(" orders")]
    told = [(said.get(f"{P}query.label"), said.get(f"{P}run.id")) for said in roots]
    assert told == [("orders", stage.life.run_id)] * 4
    assert [said.get(f"{P}batch.id") for said in roots] == [None, 0, 1, 2]


def test_agent_uses_a_given_provider_and_never_closes_it(own):
    """It is given as `tracer_provider`; the user's spans go on after us."""
    provider, memory = own
    agent = Agent(
        make_config({"metrics_address": "", "log_level": "off"}), tracer_provider=provider
    )
    agent.start(ApplicationInfo("shop"))
    life = Life()
    feed(agent, life.started(), life.progress())
    agent.close()
    assert len(memory.get_finished_spans()) == 8
    provider.get_tracer("mine").start_span("after").end()
    assert len(memory.get_finished_spans()) == 9


def test_global_provider_is_never_set(agent, tmp_path):
    """What `get_tracer_provider` gives is what it gave before."""
    before = trace.get_tracer_provider()
    made = agent(traces=str(tmp_path / "t.jsonl"))
    life = Life()
    feed(made, life.started(), life.progress())
    assert trace.get_tracer_provider() is before
    assert not isinstance(before, TracerProvider)
