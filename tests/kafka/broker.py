"""A real Kafka on loopback: one node, KRaft, its data in a folder of the test's."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from stage import ROOT, free_port, program, wait_for

JARS = ROOT / ".programs" / "jars"
# One id for every storage: each lies in a folder of its own.
_STORAGE = "c3RyZWFtZ2F1Z2UtdGVzdA"
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_gauge="s3cret";
log.dirs={folder}/data
num.partitions=1
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=500
log.initial.task.delay.ms=500
file.delete.delay.ms=0
log.cleaner.enable=false
"""


def jars(name: str) -> list[Path]:
    """The jars of a set that `make setup-integration` brings; a test without it fails and says so."""
    found = sorted((JARS / name).glob("*.jar"))
    assert found, f"the jars of {name} are not here; `make setup-integration` brings them"
    return found


class Broker:
    """Starts, stops and starts again on the same port and data; ended by its process id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        sasl = free_port()
        self.sasl_address = f"127.0.0.1:{sasl}"  # wants the user gauge and its password
        self._config = folder / "server.properties"
        self._config.write_text(
            _PROPERTIES.format(port=self.port, sasl=sasl, controller=free_port(), folder=folder)
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "kafka.tools.StorageTool", "format", "-t", _STORAGE, "-c", str(self._config)
        ).wait(60)
        self.start()
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def start(self) -> None:
        """Start, and wait until it takes connections and answers."""
        self._process = self._run("kafka.Kafka", str(self._config))
        wait_for(self._answers, 60, f"the broker; {self.folder}/broker.log tells")

    def stop(self) -> None:
        """Stop it as an operator would; kill it when it does not listen."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def freeze(self, frozen: bool) -> None:
        """Have it hold its connections and answer nothing; or go on."""
        os.kill(self._process.pid, signal.SIGSTOP if frozen else signal.SIGCONT)

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        log = (self.folder / "broker.log").open("ab")
        classes = f"{JARS / 'broker'}/*"
        jars("broker")
        with log:
            return subprocess.Popen(
                [program("java"), *_JVM, "-cp", classes, *command],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-3000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            asked = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
            with contextlib.suppress(Exception):
                return bool(asked.list_topics(timeout=2).brokers)
        return False

    # ---- topics ----------------------------------------------------------------------------

    def create(self, *topics: str, partitions: int = 8, **settings: object) -> None:
        """Make topics; settings as `retention_ms=…`."""
        config = {name.replace("_", "."): str(value) for name, value in settings.items()}
        new = [NewTopic(name, partitions, 1, config=config) for name in topics]
        for done in self.admin.create_topics(new).values():
            done.result(20)

    def delete(self, topic: str) -> None:
        """Delete a topic and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(20)
        wait_for(lambda: topic not in self.admin.list_topics(timeout=5).topics, 20, "the deletion")

    def widen(self, topic: str, partitions: int) -> None:
        """Add partitions."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(20)


class Clock(threading.Thread):
    """A producer with a known rate, and its own clock: when each offset was written.

    Each beat puts one row into every partition of every topic, so every partition grows alike.
    """

    def __init__(
        self, broker: Broker, topics: tuple[str, ...], partitions: int, beats: float
    ) -> None:
        super().__init__(daemon=True)
        self._producer = Producer(
            {"bootstrap.servers": broker.address, "linger.ms": 0, "log_level": 0, "acks": "all"}
        )
        self._topics = topics
        self._partitions = partitions
        self._every = 1 / beats
        self._going = threading.Event()
        self._idle = threading.Event()
        self._closed = False
        self.times: list[float] = []  # when the row of this offset was acknowledged

    def run(self) -> None:
        """Write until closed, at a pace that makes up for what a slow beat took."""
        while not self._closed:
            if not self._going.is_set():
                self._idle.set()
                self._going.wait(0.1)
                due = time.monotonic()
                continue
            self._idle.clear()
            self.beat()
            due += self._every
            time.sleep(max(0.0, due - time.monotonic()))

    def beat(self, times: int = 1) -> None:
        """Write now, and wait for the acknowledgements."""
        for _ in range(times):
            for topic in self._topics:
                for partition in range(self._partitions):
                    self._producer.produce(topic, b"x" * 20, partition=partition)
            assert self._producer.flush(20) == 0
            self.times.append(time.time())

    def go(self) -> None:
        """Begin, or go on."""
        if not self.is_alive():
            self.start()
        self._going.set()

    def pause(self) -> None:
        """Stop writing; what was written is acknowledged when this returns."""
        self._going.clear()
        self._idle.clear()
        assert self._idle.wait(30)

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._going.set()
