"""`streamgauge lag` on a real broker, with checkpoints as a dead driver leaves them."""

import json
import time

import pytest
from broker import Clock
from stage import free_port, wait_for

from streamgauge.cli import main

QUERY = '{"id":"5f1f2c7e-9f0a-4c11-8f0e-6f6a6d1f9a01"}'


@pytest.fixture
def checkpoint(tmp_path):
    """Writes a checkpoint whose last committed batch ended at these offsets."""

    def write(offsets, *, committed=True):
        for folder in ("offsets", "commits"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "metadata").write_text(QUERY)
        meta = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'
        (tmp_path / "offsets" / "0").write_text(f"v1\n{meta}\n{json.dumps(offsets)}")
        if committed:
            (tmp_path / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
        return str(tmp_path)

    return write


@pytest.fixture
def lag(capsys):
    """Runs the command; its exit status, what it printed (read as JSON if it is that), its errors."""

    def run(*arguments):
        status = main(["lag", *arguments])
        out, err = capsys.readouterr()
        return status, json.loads(out) if "--json" in arguments and out else out, err

    return run


def test_each_partition_by_itself(broker, checkpoint, lag):
    """Committed, both ends, rows behind and the age of the oldest unread row, exactly."""
    broker.create("orders", partitions=2)
    clock = Clock(broker, ("orders",), 2, 10)
    clock.beat(7)
    place = checkpoint({"orders": {"0": 3, "1": 7}})
    status, found, _ = lag(place, "--bootstrap", broker.address, "--json")
    first, second = found["partitions"]
    assert status == 0
    assert (first["committed"], first["earliest"], first["latest"]) == (3, 0, 7)
    assert (first["behind"], second["behind"], found["behind"]) == (4, 0, 4)
    assert (first["lost"], second["lost"], found["batch"]) == (0, 0, 0)
    assert first["lag"] == pytest.approx(found["at"] - clock.times[3], abs=0.5)
    assert first["headroom"] == pytest.approx(7 * 86400 - first["lag"])
    assert second["lag"] is second["headroom"] is None
    status, text, _ = lag(place, "--bootstrap", broker.address)
    assert status == 0
    assert text.startswith("4 rows behind, as of committed batch 0; the oldest was written ")


def test_what_is_not_comparable_is_said(broker, checkpoint, lag):
    """A partition that is new, one that is gone, a topic that was recreated: no sum, status 1."""
    broker.create("anew", "wider", partitions=2)
    Clock(broker, ("anew", "wider"), 2, 10).beat(2)
    place = checkpoint({"anew": {"0": 90, "1": 1, "2": 5}, "wider": {"0": 2}, "gone": {"0": 1}})
    status, found, _ = lag(place, "--bootstrap", broker.address, "--json")
    by_place = {(each["topic"], each["partition"]): each for each in found["partitions"]}
    assert status == 1
    assert found["behind"] is None
    assert "recreated" in by_place["anew", "0"]["finding"]
    assert by_place["anew", "0"]["behind"] is None
    assert by_place["anew", "1"]["behind"] == 1
    assert "not on the broker" in by_place["anew", "2"]["finding"]
    assert "not on the broker" in by_place["gone", "0"]["finding"]
    assert by_place["wider", "1"]["committed"] is None
    assert by_place["wider", "1"]["behind"] == 2


def test_retention_that_comes_near_and_then_eats(broker, checkpoint, lag):
    """Status 1 before unread rows are deleted; afterwards it counts them."""
    broker.create("short", partitions=1, retention_ms=8000, segment_ms=1000)
    clock = Clock(broker, ("short",), 1, 10)
    clock.beat(5)
    place = checkpoint({"short": {"0": 2}})
    assert lag(place, "--bootstrap", broker.address)[0] == 0
    wait_for(lambda: time.time() - clock.times[2] > 4.5, 20)
    status, found, _ = lag(place, "--bootstrap", broker.address, "--json")
    assert status == 1
    assert (found["lost"], found["behind"]) == (0, 3)
    assert 0 < found["headroom"] < 4
    assert "may be deleted in " in found["findings"][0]
    clock.beat(1)  # rolls the segment, which is then old enough to go
    found = wait_for(lambda: _lost(lag, place, broker), 40, "the deletion")
    lost = found["lost"]  # on a slow machine the last row is gone too before anybody looks
    assert (lost in {3, 4}, found["behind"]) == (True, 4)
    assert found["findings"][0] == f"short 0: {lost} rows were deleted before they were read"


def _lost(lag, place, broker):
    found = lag(place, "--bootstrap", broker.address, "--json")[1]
    return found if found["lost"] else None


def test_what_can_not_be_looked_at(checkpoint, lag, tmp_path, monkeypatch):
    """Status 2, one sentence, no address and no secret in it."""
    place = checkpoint({"orders": {"0": 3}})
    nobody = f"127.0.0.1:{free_port()}"
    status, _, err = lag(place, "--bootstrap", nobody)
    assert (status, err) == (2, "streamgauge lag: no broker can be reached\n")
    secret = tmp_path / "client.properties"
    secret.write_text("security.protocol=hunter2\nbootstrap.servers=kafka.example:9092\n")
    status, _, err = lag(place, "--properties", str(secret))
    assert status == 2
    assert "security.protocol" in err
    assert "hunter2" not in err
    assert "kafka.example" not in err
    assert lag(place)[2] == "streamgauge lag: there are no bootstrap servers: name HOST:PORT\n"
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"logOffset":0}')
    assert "has no Kafka source; it has file" in lag(place, "--bootstrap", nobody)[2]
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    assert "pip install 'streamgauge[kafka]'" in lag(place, "--bootstrap", nobody)[2]


def test_a_batch_that_was_planned_and_not_committed_is_not_read(broker, checkpoint, lag, tmp_path):
    """Before the first commit a query stands where its sources began."""
    broker.create("fresh", partitions=1)
    Clock(broker, ("fresh",), 1, 10).beat(6)
    place = checkpoint({"fresh": {"0": 6}}, committed=False)
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_bytes(b'\0v1\n{"fresh":{"0":2}}')
    found = lag(place, "--bootstrap", broker.address, "--json")[1]
    assert (found["behind"], found["batch"]) == (4, None)


def test_a_broker_that_wants_a_password(broker, checkpoint, lag, tmp_path):
    """The file that Kafka's own tools take serves; a wrong password is named as such, and not told."""
    broker.create("guarded", partitions=1)
    Clock(broker, ("guarded",), 1, 10).beat(3)
    place = checkpoint({"guarded": {"0": 1}})
    file = tmp_path / "client.properties"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    words = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
    arguments = (place, "--bootstrap", broker.sasl_address, "--properties", str(file))
    file.write_text(f'{words}{login} username="gauge" password="s3cret";\n')
    status, found, _ = lag(*arguments, "--json")
    assert (status, found["behind"]) == (0, 2)
    file.write_text(f'{words}{login} username="gauge" password="wr0ng";\n')
    status, _, err = lag(*arguments)
    assert (status, err) == (2, "streamgauge lag: the broker refused the credentials\n")
