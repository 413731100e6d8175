"""Which traces are kept, and that nothing points to one that was not."""

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from theatre import Stage, ids_of_batch

from streamgauge.exporters.traces.sampling import KeepSampler

REPLAY = {"addBatch": 400, "getBatch": 1, "queryPlanning": 3, "commitOffsets": 2}


@pytest.fixture
def off(monkeypatch):
    """A sampler that keeps nothing by itself."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")


@pytest.mark.usefixtures("off")
def test_ordinary_batches_go_as_the_sampler_says():
    """Not a span of them, and each is counted."""
    stage = Stage()
    stage.batch()
    assert stage.spans() == []
    assert stage.counts == {"unsampled": 7}


@pytest.mark.usefixtures("off")
def test_what_must_not_be_lost_is_kept_whole():
    """Starts, slow, replayed and failed batches, with all of their phases."""
    stage = Stage(keep_seconds=10.0)
    stage.start()
    stage.batch(phases=REPLAY)
    stage.batch()
    stage.batch(seconds=10.0)
    stage.end("x.Y: z")
    roots = [span for span in stage.spans() if span.parent is None]
    kept = [span.attributes.get("spark.streaming.batch.id", "start") for span in roots]
    assert kept == ["start", 0, 2, 3]
    assert stage.counts == {"exported": 1 + 5 + 7 + 1, "unsampled": 7}


@pytest.mark.usefixtures("off")
def test_sampler_alone_decides_when_told_so():
    """A negative setting: nothing is special."""
    stage = Stage(keep_seconds=-1.0)
    stage.start()
    stage.batch(phases=REPLAY)
    stage.batch(seconds=1000.0)
    stage.look(after=400.0, batch_id=2, trigger_started_at=stage.now)
    stage.end("x.Y: z")
    assert stage.spans() == []


@pytest.mark.usefixtures("off")
def test_links_point_only_to_what_was_sampled():
    """The batch before was not kept: no link to it."""
    stage = Stage(keep_seconds=10.0)
    stage.start()
    stage.batch()
    stage.batch(seconds=10.0)
    spans = stage.spans()
    known = {span.context.span_id for span in spans}
    links = [link.context.span_id for span in spans for link in span.links]
    assert links
    assert set(links) <= known


@pytest.mark.usefixtures("off")
def test_exemplars_point_only_to_what_was_sampled():
    """A log line names its trace in any case; an exemplar does only if it leads somewhere."""
    stage = Stage(keep_seconds=10.0)
    stage.start()
    stage.batch()
    assert stage.sampled is None
    assert stage.ids == ids_of_batch(stage.life.run_id, 0)
    stage.batch(seconds=10.0)
    assert stage.sampled == stage.ids == ids_of_batch(stage.life.run_id, 1)
    stage.idle()
    assert (stage.sampled, stage.ids) == (None, ids_of_batch(stage.life.run_id, 1))
    stage.tracer.close()


def test_ratio_sampler_works_on_hashed_ids(monkeypatch):
    """A quarter means about a quarter: hashes are evenly spread."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.25")
    stage = Stage(environ={"OTEL_BSP_MAX_QUEUE_SIZE": "100000"})
    for _ in range(800):
        stage.batch(phases={"addBatch": 1, "walCommit": 1})
    kept = len(stage.spans("batch orders"))
    assert 140 <= kept <= 260  # 200 ± 5 standard deviations


def test_sampler_sees_all_attributes():
    """It is asked when the batch is over, with everything that the span will say."""
    asked = []

    class Curious(KeepSampler):
        def should_sample(self, *args, **kwargs):
            asked.append((args[2], dict(args[4])))
            return super().should_sample(*args, **kwargs)

    from opentelemetry.sdk.trace import TracerProvider

    stage = Stage(provider=TracerProvider(sampler=Curious(ALWAYS_OFF, -1), shutdown_on_exit=False))
    stage.batch()
    ((name, attributes),) = asked
    assert name == "batch orders"
    assert attributes["spark.streaming.batch.duration"] == 0.5
    assert attributes["spark.streaming.rows.input"] == 10
