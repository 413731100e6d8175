"""The stack in containers, as far as it can be seen without an engine."""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from stage import ROOT, program

from streamgauge.config import FIELDS
from streamgauge.grafana.alerts.catalogue import alerts

sys.path.insert(0, str(ROOT / "docker" / "demo"))
import faults

sys.path.insert(0, str(ROOT / "scripts"))
from setup import SPARKS
from setup_jars import SETS

DOCKER = ROOT / "docker"

TOOLS = Path(sys.executable).parent
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
WITHOUT_CHECK = {"collector", "boards"}  # one without a shell, one that ends


def run(*command):
    """Run a command; its status and what it said."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_compose_file_fits_the_specification():
    """The compose specification's own schema, as check-jsonschema carries it."""
    check = (TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec")
    assert run(*check, DOCKER / "compose.yaml")[0] == 0
    assert run(*check, DOCKER / "alertmanager.yml")[0] == 1, "it says yes to anything"


def test_dockerfile_is_clean():
    """No finding at any level."""
    status, said = run(TOOLS / "hadolint", "--no-color", DOCKER / "Dockerfile")
    assert (status, said) == (0, "")


def test_image_is_small_in_rights():
    """The last stage has no build tools and no root."""
    last = (DOCKER / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert re.search(r"^USER \d+$", last, re.MULTILINE)
    assert "pip uninstall -y" in last
    assert not re.search(r"gcc|build-essential|maven|jdk-headless", last)


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_pinned_limited_and_closed(name):
    """A version, a limit of everything, no rights, a health check where one can run."""
    service = SERVICES[name]
    assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", service["image"])
    assert service["mem_limit"]
    assert service["cpus"]
    assert service["pids_limit"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert ("healthcheck" in service) is (name not in WITHOUT_CHECK)
    assert "privileged" not in service


def test_only_loopback_is_published_and_env_has_every_port():
    """What `.env` names is what is published, and nothing is published anywhere else."""
    env = dict(re.findall(r"^(\w+)=(\d+)$", (DOCKER / ".env").read_text(), re.MULTILINE))
    ports = [re.fullmatch(r"127\.0\.0\.1:\$\{(\w+)\}:(\d+)", p) for p in SERVICES["net"]["ports"]]
    assert {found[1]: found[2] for found in ports} == env
    assert not [name for name, service in SERVICES.items() if name != "net" and "ports" in service]
    readme = (DOCKER / "README.md").read_text()
    assert all(f"localhost:{port}" in readme for port in env.values())


def test_limits_add_up_to_what_the_readme_says():
    """Less than 10 GB, whatever happens."""
    sizes = {"m": 1, "g": 1024}
    limits = [service["mem_limit"] for service in SERVICES.values()]
    assert sum(int(limit[:-1]) * sizes[limit[-1]] for limit in limits) < 10 * 1000


def test_drivers_variables_are_settings():
    """A mistyped one would be a log line that nobody reads."""
    variables = SERVICES["driver"]["environment"]
    ours = {name.removeprefix("STREAMGAUGE_").lower() for name in variables if "GAUGE" in name}
    assert ours
    assert ours <= set(FIELDS)


def test_no_secret_in_any_file():
    """There is nothing to steal: no password, key or token is set anywhere."""
    for path in [
        DOCKER / ".env",
        *DOCKER.glob("*.y*ml"),
        *DOCKER.glob("*.conf"),
        *DOCKER.glob("*.properties"),
    ]:
        found = re.findall(
            r"(?i)\b\w*(?:passw|secret|token|api_?key)\w*\s*[:=].*", path.read_text()
        )
        assert not found, path


def test_everything_mounted_is_there():
    """A bind mount of a file that isn't there makes an empty folder instead."""
    for name, service in SERVICES.items():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            found = source in COMPOSE["volumes"] or (DOCKER / source).exists()
            assert found, (name, volume)


def test_builder_gets_all_that_the_wheel_and_the_image_need():
    """.dockerignore lets through what pyproject.toml and the Dockerfile name."""
    let_through = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    project = (ROOT / "pyproject.toml").read_text()
    folders = re.search(r"only-include = \[(.*?)\]", project)[1]
    needed = {word.strip(' "').partition("/")[0] for word in folders.split(",")}
    needed |= {"pyproject.toml", "README.md", "LICENSE", "requirements.lock", "docker"}
    assert needed <= let_through


def test_image_has_the_kafka_connector_that_is_tested():
    """The jars of the image are those that the tests run on this line of Spark."""
    text = (DOCKER / "kafka-connector.xml").read_text()
    parts = r"<groupId>(.*?)</groupId><artifactId>(.*?)</artifactId><version>(.*?)</version>"
    assert {":".join(found) for found in re.findall(parts, text)} == set(SETS["kafka-4"])
    pinned = re.search(r"pyspark==(\S+)", (DOCKER / "Dockerfile").read_text())[1]
    assert pinned == SPARKS["4.3"]


def test_prometheus_takes_its_file_with_the_rules():
    """The rules are found where the file says they are, by promtool."""
    status, said = run(program("promtool"), "check", "config", DOCKER / "prometheus.yml")
    assert status == 0, said
    assert "rules found" in said
    mounted = [volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]]
    place = Path("/stack/docker") / "../grafana/alerts/rules"
    assert {"/stack/docker/prometheus.yml", "/stack/grafana/alerts/rules"} <= set(mounted)
    assert place.resolve() == Path("/stack/grafana/alerts/rules")


def test_collector_and_jaeger_meet():
    """What one sends to, the other listens on; Prometheus scrapes both; Grafana asks the right one."""
    collector, jaeger, prometheus = (
        yaml.safe_load((DOCKER / f"{name}.yml").read_text())
        for name in ("collector", "jaeger", "prometheus")
    )
    listens = jaeger["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"]
    assert collector["exporters"]["otlp"]["endpoint"] == listens
    agent = SERVICES["driver"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
    assert agent == f"http://{collector['receivers']['otlp']['protocols']['http']['endpoint']}"
    targets = {
        job["job_name"]: job["static_configs"][0]["targets"][0]
        for job in prometheus["scrape_configs"]
    }
    for name, config in (("collector", collector), ("jaeger", jaeger)):
        (reader,) = config["service"]["telemetry"]["metrics"]["readers"]
        own = reader["pull"]["exporter"]["prometheus"]
        assert targets[name] == f"{own['host']}:{own['port']}"
    source = ROOT / "grafana/dashboards/files/provisioning/datasources/streamgauge-jaeger.yml"
    asked = {s["type"]: s["url"] for s in yaml.safe_load(source.read_text())["datasources"]}
    assert asked["jaeger"].endswith(jaeger["extensions"]["jaeger_query"]["http"]["endpoint"][-5:])
    assert asked["prometheus"].endswith(targets["prometheus"][-4:])


def test_switch_holds_a_batch_until_all_is_well(tmp_path, monkeypatch, capsys):
    """`hang` holds it, `well` lets it go, `fail` raises."""
    monkeypatch.setattr(faults, "FOLDER", tmp_path / "faults")
    faults.suffer()
    assert faults.main(["hang"]) == 0
    held = threading.Thread(target=faults.suffer, daemon=True)
    held.start()
    time.sleep(0.2)
    assert held.is_alive()
    assert faults.main(["well"]) == 0
    held.join(5)
    assert not held.is_alive()
    faults.switch("fail")
    with pytest.raises(ConnectionError):
        faults.suffer()
    assert faults.main(["nonsense"]) == 2
    assert "hang" in capsys.readouterr().err


def test_switch_promises_alerts_that_exist():
    """What it says will be seen is in the catalogue, and the README has every fault."""
    promised = set(re.findall(r"SparkStream\w+", " ".join(faults.FAULTS.values())))
    assert promised
    assert promised <= {alert.full_name for alert in alerts()}
    readme = (DOCKER / "README.md").read_text()
    assert all(f"streamgauge-demo {fault}" in readme for fault in faults.FAULTS)
