"""The services of `make stack`: what docker/compose.yaml runs, as programs of this machine.

Commands, settings and configuration files are compose's own; only the places are others.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from setup import PROGRAMS, ROOT, environment

DOCKER = ROOT / "docker"
SCRIPTS = ROOT / "scripts"
STACK = ROOT / "artifacts" / "stack"
LOGS = STACK / "logs"
WORK = STACK / "work"
FAULTS = STACK / "faults"
TEMPORARY = STACK / "tmp"
HOME = STACK / "home"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"]
# Where things lie in the containers, and here.
_PLACES = {
    "/opt/demo/spark-defaults.conf": DOCKER / "spark-defaults.conf",
    "/opt/demo": DOCKER / "demo",
    "/stack": ROOT,
    "/tmp/work": WORK,  # noqa: S108 - a container's
    "/prometheus": STACK / "prometheus" / "data",
    "/alertmanager": STACK / "alertmanager" / "data",
    "/data": STACK / "checkpoints",
    "0.0.0.0": "127.0.0.1",  # noqa: S104 - loopback alone
}
_PLACE = re.compile(rf"(?<![\w.:/])({'|'.join(map(re.escape, _PLACES))})(?!\w)")
_JAVA = (
    *(f"-Djava.io.tmpdir={TEMPORARY}", "-XX:-UsePerfData"),  # else /tmp has its files
    f"-Duser.home={HOME}",  # else the one in the machine's list of users
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
)


@dataclass(frozen=True)
class Service:
    """One program: how it is started, and how it tells that it is ready."""

    name: str
    command: list[str]
    ports: tuple[int, ...]  # all that it listens on; the first is asked
    path: str = ""  # what is asked of it; none: a connection is enough
    says: str = ""  # what must be in its answer
    first: list[str] = field(default_factory=list)  # what is run before it
    settings: dict[str, str] = field(default_factory=dict)
    seconds: float = 60  # until it must be ready


def here(word: str) -> str:
    """A word of a container's command or settings, with the place that it has here."""
    return _PLACE.sub(lambda found: str(_PLACES[found[0]]), word)


def words(name: str) -> list[str]:
    """The command of a service in compose."""
    return [here(word) for word in COMPOSE[name]["command"]]


def settings(name: str) -> dict[str, str]:
    """The environment of a service in compose."""
    return {key: here(str(value)) for key, value in COMPOSE[name].get("environment", {}).items()}


def base_environment() -> dict[str, str]:
    """What every service gets: our programs, our folders for what it writes, nothing of a person's settings."""
    kept = ("LANG", "LC_ALL", "TZ", "USER")
    path = (environment("4.3") / "bin", PROGRAMS / "bin", os.environ["PATH"])
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PATH": os.pathsep.join(map(str, path)),
        "HOME": str(HOME),
        "TMPDIR": str(TEMPORARY),
        "JAVA_TOOL_OPTIONS": shlex.join(_JAVA),
        "SPARK_LOCAL_DIRS": str(TEMPORARY),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "DEMO_FAULTS": str(FAULTS),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def jars(name: str) -> list[Path]:
    """The jars of a set that set-up brought."""
    return sorted((PROGRAMS / "jars" / name).glob("*.jar"))


def _of_debian(name: str, port: int) -> Service:
    return Service(
        name,
        [f"./{name}", *words(name), f"--web.listen-address=127.0.0.1:{port}"],
        (port,),
        "/-/ready",
        first=["python", str(SCRIPTS / "stack_debian.py"), name],
    )


def services() -> list[Service]:
    """All of them, in the order in which they are started."""
    kafka = ["java", *settings("kafka")["KAFKA_HEAP_OPTS"].split()]
    kafka += ["-cp", os.pathsep.join(map(str, jars("broker")))]
    properties = str(DOCKER / "kafka.properties")
    storage = ["kafka.tools.StorageTool", "format", "-t", "c3RyZWFtZ2F1Z2UtZGVtbw", "-c"]
    submit, *job = words("driver")
    connector = ",".join(map(str, jars("kafka-4")))  # the image has it among Spark's own jars
    return [
        Service(
            "kafka",
            [*kafka, "kafka.Kafka", properties],
            (9092, 19093),
            first=[*kafka, *storage, properties],
        ),
        Service("pager", words("pager"), (9099,), "/"),
        _of_debian("alertmanager", 9093),
        _of_debian("prometheus", 9090),
        Service(
            "jaeger",
            ["jaeger", *words("jaeger")],
            (16686, 16685, 14317, 8889),
            "/api/services",
            settings=settings("jaeger"),
        ),
        # Jaeger is a collector with parts of its own; the file is that of the plain collector.
        Service("collector", ["jaeger", *words("collector")], (4318, 4317, 8888)),
        Service(
            "master", words("master"), (8080, 7077), "/json/", "ALIVE", settings=settings("master")
        ),
        Service("worker-1", words("worker-1"), (8081,), "/json/", settings=settings("worker-1")),
        Service("worker-2", words("worker-2"), (8082,), "/json/", settings=settings("worker-2")),
        Service(
            "driver",
            [submit, "--jars", connector, *job],
            (9465, 4040),
            "/metrics",
            'query="revenue"',  # the last of the three to be started
            settings=settings("driver"),
            seconds=180,
        ),
        Service("dashboards", ["python", str(SCRIPTS / "stack_preview.py")], (3000,), "/"),
    ]
