"""Reads from Kafka itself where topics begin and end, how long they keep rows, how old a row is.

Needs the extra `streamgauge[kafka]`. Every call is bounded in time, and an error carries neither an
address nor a setting's value. The client's own log is off: it would flood stderr for as long as a
broker is down.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from streamgauge.errors import StreamgaugeError
from streamgauge.masking import MASK
from streamgauge.model.sources.broker_offsets import BrokerOffsets, Positions

_TIMEOUT_SECONDS = 10.0
_RESULT_WAIT_SECONDS = 1.5 * _TIMEOUT_SECONDS  # should the client itself not keep its time
_QUIET_CLIENT = {
    "log_level": 0,
    "log.connection.close": False,
    "client.id": "streamgauge",
    "allow.auto.create.topics": False,
}
_GONE = "UNKNOWN_TOPIC_OR_PART"
_WORDS = {
    "_ALL_BROKERS_DOWN": "no broker can be reached",
    "_AUTHENTICATION": "the broker refused the credentials",
    "_RESOLVE": "the broker's name can't be resolved",
    "_SSL": "TLS failed: certificates, or a broker that speaks no TLS",
    "_TIMED_OUT": f"no broker answered in {_TIMEOUT_SECONDS:.0f} s",
    "_TRANSPORT": "no broker can be reached",
    "TOPIC_AUTHORIZATION_FAILED": "the broker does not let this user describe the topic",
}
_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;]+))""")


class BrokerError(StreamgaugeError):
    """The broker can't be asked; says why, without an address or a secret."""


def read_properties(path: str) -> dict[str, str]:
    """A client's properties file, one `key=value` per line; raises `BrokerError`.

    Keys are librdkafka's; of Java's own, `sasl.jaas.config` with a user and a password is understood.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BrokerError(f"the properties file {path} can't be read: {why}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line[0] in "#!":
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise BrokerError(f"line {number} of the properties file {path} is not key=value")
        found[key.strip()] = value.strip()
    return _read_jaas_login(found)


def _read_jaas_login(settings: dict[str, str]) -> dict[str, str]:
    jaas = settings.pop("sasl.jaas.config", "")
    for name, *values in _LOGIN.findall(jaas):
        value = re.sub(r"\\(.)", r"\1", "".join(values))
        settings.setdefault(f"sasl.{name}", value)
    return settings


class KafkaBroker:
    """One cluster. Made without a connection; all methods wait, each for 30 seconds at most.

    One thread at a time.
    """

    def __init__(self, bootstrap: str | None, properties: str | None) -> None:
        self._admin_module, self._kafka = _import()
        settings: dict[str, Any] = read_properties(properties) if properties else {}
        if bootstrap:
            settings["bootstrap.servers"] = bootstrap
        if not settings.get("bootstrap.servers"):
            raise BrokerError("there are no bootstrap servers: name HOST:PORT")
        self._settings = settings | _QUIET_CLIENT
        self._last_error = ""  # name of the client's last error
        self._admin = self._make(self._admin_module.AdminClient, error_cb=self._keep_last_error)

    def read_offsets(self, topics: Iterable[str]) -> BrokerOffsets:
        """Both ends of every partition of these topics, and how long they keep rows.

        A topic of which a part can't be read now is left out; raises `BrokerError` when all are.
        """
        topics = sorted(topics)
        keys, refused = self._partitions(topics)
        specs = self._admin_module.OffsetSpec
        asked = [self._ask_offsets(keys, spec) for spec in (specs.earliest(), specs.latest())]
        configs = self._ask_configs({topic for topic, _ in keys})
        earliest, latest = (self._collect_offsets(answers, refused) for answers in asked)
        if refused and refused.keys() >= set(topics):
            raise BrokerError("; ".join(sorted(set(refused.values()))))
        return BrokerOffsets(
            kind="kafka",
            topics=frozenset(topics) - refused.keys(),
            earliest={key: offset for key, offset in earliest.items() if key[0] not in refused},
            latest={key: offset for key, offset in latest.items() if key[0] not in refused},
            retention=self._read_retention(configs),
            at=time.time(),
        )

    def read_past_offsets(self, now: BrokerOffsets, at: float) -> BrokerOffsets:
        """The same topics as they ended at an earlier time, by the times of their rows."""
        spec = self._admin_module.OffsetSpec.for_timestamp(int(at * 1000))
        keys = [(topic, int(partition)) for topic, partition in now.latest]
        refused: dict[str, str] = {}
        found = self._collect_offsets(self._ask_offsets(keys, spec), refused)
        if refused:
            raise BrokerError("; ".join(sorted(set(refused.values()))))
        # No row so young: its end was then where it is now.
        latest = {key: now.latest[key] if then < 0 else then for key, then in found.items()}
        return structs.replace(now, latest=latest, at=at)

    def row_times(self, positions: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], float]:
        """When the row at each position was written, as Kafka has it; what can't be read is absent."""
        if not positions:
            return {}
        consumer = self._make(
            self._kafka.Consumer,
            **{"group.id": "streamgauge", "enable.auto.commit": False},
            **{"auto.offset.reset": "error", "max.partition.fetch.bytes": 1024},
        )
        found: dict[tuple[str, str], float] = {}
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        try:
            place = self._kafka.TopicPartition
            consumer.assign([place(t, int(p), offset) for (t, p), offset in positions.items()])
            while len(found) < len(positions) and time.monotonic() < deadline:
                message = consumer.poll(0.2)
                if message is None or message.error():
                    continue
                kind, stamp = message.timestamp()
                key = (message.topic(), str(message.partition()))
                if key not in found and kind != self._kafka.TIMESTAMP_NOT_AVAILABLE:
                    found[key] = stamp / 1000
                    consumer.pause([place(key[0], int(key[1]))])
        except self._kafka.KafkaException:
            return found
        finally:
            consumer.close()
        return found

    # ---- asking ----------------------------------------------------------------------------

    def _partitions(self, topics: list[str]) -> tuple[list[tuple[str, int]], dict[str, str]]:
        """Every partition of the topics that are there; and why a topic can't be described."""
        names = self._kafka.TopicCollection(topics)
        found: list[tuple[str, int]] = []
        refused: dict[str, str] = {}
        for topic, answer in self._admin.describe_topics(
            names, request_timeout=_TIMEOUT_SECONDS
        ).items():
            try:
                found += [
                    (topic, each.id) for each in answer.result(_RESULT_WAIT_SECONDS).partitions
                ]
            except Exception as error:  # noqa: BLE001 - a future raises what it likes
                if _name(error) != _GONE:
                    refused[topic] = self._explain(error)
        return found, refused

    def _ask_offsets(self, keys: Iterable[tuple[str, int]], spec: Any) -> Mapping[Any, Any]:
        wanted = {self._kafka.TopicPartition(*key): spec for key in keys}
        return self._admin.list_offsets(wanted, request_timeout=_TIMEOUT_SECONDS) if wanted else {}

    def _collect_offsets(self, answers: Mapping[Any, Any], refused: dict[str, str]) -> Positions:
        found: Positions = {}
        for key, answer in answers.items():
            try:
                found[key.topic, str(key.partition)] = int(
                    answer.result(_RESULT_WAIT_SECONDS).offset
                )
            except Exception as error:  # noqa: BLE001 - a future raises what it likes
                refused.setdefault(key.topic, self._explain(error))
        return found

    def _ask_configs(self, topics: Iterable[str]) -> dict[str, Any]:
        module = self._admin_module
        wanted = [module.ConfigResource(module.ConfigResource.Type.TOPIC, t) for t in topics]
        if not wanted:
            return {}
        answers = self._admin.describe_configs(wanted, request_timeout=_TIMEOUT_SECONDS)
        return {resource.name: answer for resource, answer in answers.items()}

    @staticmethod
    def _read_retention(answers: Mapping[str, Any]) -> dict[str, float]:
        """Seconds by topic; a user who may not ask for it does without."""
        found = {}
        for topic, answer in answers.items():
            try:
                config = answer.result(_RESULT_WAIT_SECONDS)
                kept = int(config["retention.ms"].value)
                if kept >= 0 and "delete" in config["cleanup.policy"].value:
                    found[topic] = kept / 1000
            except Exception:  # noqa: BLE001, S112 - a future raises what it likes; unknown is absent
                continue
        return found

    # ---- the client ------------------------------------------------------------------------

    def _make(self, kind: Any, **more: Any) -> Any:
        try:
            return kind(self._settings | more)
        except Exception as error:  # noqa: BLE001 - KafkaException, and what its C code likes
            inner = error.args[0] if error.args else error
            words = str(inner.str() if hasattr(inner, "str") else inner)
            for value in self._settings.values():  # a password may stand in the wrong place
                words = words.replace(str(value), MASK) if len(str(value)) > 2 else words
            raise BrokerError(f"Kafka's client refused a setting: {words}") from None

    def _keep_last_error(self, error: Any) -> None:
        self._last_error = error.name()

    def _explain(self, error: BaseException) -> str:
        """Why it failed: the client's own last error says more than that time ran out."""
        self._admin.poll(0)
        name = _name(error)
        if name in {"_TIMED_OUT", "TimeoutError"}:
            name = self._last_error or "_TIMED_OUT"
        return _WORDS.get(name, name)


def _name(error: BaseException) -> str:
    inner = error.args[0] if error.args else None
    name = getattr(inner, "name", None)
    return str(name()) if callable(name) else type(error).__name__


def _import() -> tuple[Any, Any]:
    try:
        import confluent_kafka  # noqa: PLC0415 - an extra
        from confluent_kafka import admin  # noqa: PLC0415
    except ImportError:
        raise BrokerError(
            "asking Kafka needs its client: pip install 'streamgauge[kafka]'"
        ) from None
    return admin, confluent_kafka
