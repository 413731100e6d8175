"""The user's own work in `foreachBatch` joins the batch's trace."""

import io
import json

import pytest
import structlog
from opentelemetry import trace
from stage import Life, QuietDriver, feed
from theatre import ids_of_batch, users_provider

from streamgauge import batch_span
from streamgauge.agent import Agent
from streamgauge.exporters.traces import ids as span_ids
from streamgauge.listener.driver import ApplicationInfo


class FakeFrame:
    """The little that is asked of a DataFrame inside foreachBatch."""

    def __init__(self, run_id, query_id):
        self._properties = {"spark.jobGroup.id": run_id, "sql.streaming.queryId": query_id}
        self.sparkSession = self.sparkContext = self

    def getLocalProperty(self, name):  # noqa: N802 - Spark's name
        """A property of the thread that runs the batch."""
        return self._properties[name]


@pytest.fixture
def users():
    """A tracer of the user's own, and its spans."""
    return users_provider()


def _join(tmp_path, **parts):
    settings = {"metrics_address": "", "log_level": "off"}
    if tmp_path is not None:
        settings["traces"] = str(tmp_path / "t.jsonl")
    agent = Agent.join(settings, driver=QuietDriver(), **parts)
    agent.start(ApplicationInfo("shop"))
    life = Life()
    feed(agent, life.started())
    return agent, life


def test_users_spans_are_children_of_the_batch(users, tmp_path):
    """Their parent is the root that is written when Spark reports the batch."""
    provider, memory = users
    agent, life = _join(tmp_path)
    with batch_span(FakeFrame(life.run_id, life.query_id), 0):
        provider.get_tracer("mine").start_span("write to the warehouse").end()
    feed(agent, life.progress())
    agent.close()
    (span,) = memory.get_finished_spans()
    ids = ids_of_batch(life.run_id, 0)
    assert span_ids.to_hex(span.parent.trace_id, span.parent.span_id) == ids
    assert ids.span_id in (tmp_path / "t.jsonl").read_text()


def test_users_log_lines_name_the_batch(tmp_path):
    """Those of structlog's context variables do; outside the block nothing is left."""
    _, life = _join(tmp_path)
    out = io.StringIO()
    log = structlog.wrap_logger(
        structlog.WriteLogger(out),
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.JSONRenderer()],
    )
    with batch_span(FakeFrame(life.run_id, life.query_id), 0):
        log.info("inside")
    log.info("outside")
    inside, outside = (json.loads(line) for line in out.getvalue().splitlines())
    assert (inside["trace_id"], inside["span_id"]) == ids_of_batch(life.run_id, 0)
    assert "trace_id" not in outside
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_with_the_users_provider_the_batch_is_one_trace(users):
    """There the batch's root is begun inside the batch, and written with its true start."""
    provider, memory = users
    agent, life = _join(None, tracer_provider=provider)
    with batch_span(FakeFrame(life.run_id, life.query_id), 0):
        provider.get_tracer("mine").start_span("write").end()
    feed(agent, life.progress())
    agent.close()
    spans = {span.name: span for span in memory.get_finished_spans()}
    assert spans["write"].parent.span_id == spans["batch orders"].context.span_id
    assert spans["add_batch"].parent.span_id == spans["batch orders"].context.span_id
    assert spans["batch orders"].end_time - spans["batch orders"].start_time == 500_000_000


def test_unsampled_batch_has_unsampled_children(users, tmp_path, monkeypatch):
    """A ratio decides by the trace id, here as later: no child without its root."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    provider, memory = users
    agent, life = _join(tmp_path)
    for number in range(20):
        with batch_span(FakeFrame(life.run_id, life.query_id), number):
            provider.get_tracer("mine").start_span("write").end()
        feed(agent, life.progress())
    agent.close()
    written = (tmp_path / "t.jsonl").read_text()
    below = {f"{span.parent.span_id:016x}" for span in memory.get_finished_spans()}
    roots = {ids_of_batch(life.run_id, number).span_id for number in range(20)}
    assert 0 < len(below) < 20
    assert below == {root for root in roots if f'"spanId":"{root}"' in written}


def test_without_traces_it_does_nothing():
    """No agent, or traces off: the block runs, and that is all."""
    ran = []
    with batch_span(FakeFrame("run", "query"), 0) as span:
        ran.append(span)
    _, life = _join(None)
    with batch_span(FakeFrame(life.run_id, life.query_id), 0) as span:
        ran.append(span)
    assert ran == [trace.INVALID_SPAN] * 2


def test_where_the_run_can_not_be_told_it_does_nothing(tmp_path):
    """Spark Connect's frames have no context; a thread of the user's own has no run."""
    agent, _ = _join(tmp_path)
    with batch_span(FakeFrame(None, None), 0) as span:
        assert span is trace.INVALID_SPAN
    with batch_span(object(), 0) as span:
        assert span is trace.INVALID_SPAN
    assert agent.stats.of("errors") == {}


def test_users_exception_passes_untouched(tmp_path):
    """It is the user's, and Spark must see it."""
    _, life = _join(tmp_path)
    with pytest.raises(ZeroDivisionError), batch_span(FakeFrame(life.run_id, life.query_id), 0):
        _ = 1 / 0
    assert trace.get_current_span() is trace.INVALID_SPAN
