"""Events of a real Kafka query: offsets by partition, in whatever order Spark wrote them."""

import pytest
from stage import recorded

from streamgauge.model.decoder import decode


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_a_batch_that_was_cut_short(version):
    """Thirty rows a batch of two topics with three partitions: ten of twenty read of each."""
    (source,) = decode(recorded(version, "progress-kafka-limited")).sources
    assert (source.label, source.rows, source.backlog) == ("0-kafka", 30, 60.0)
    read = source.reached.by_key()
    assert read == {(topic, p): 10 for topic in ("orders", "clicks") for p in "012"}
    assert set(source.available.by_key().values()) == {20}


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_kafka_as_a_sink(version):
    """Its kind is known by its class, the address behind it is not told."""
    event = decode(recorded(version, "progress-kafka-sink"))
    assert event.sink.kind == "kafka"
