"""`streamgauge export kubernetes`: the schemas, Spark's own names, and a real Prometheus agree with it."""

import json
import re
import subprocess
import urllib.request
import zipfile
from contextlib import suppress
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml
from resource_schemas import validate
from stage import free_port, program, wait_for

from streamgauge.cli import main
from streamgauge.grafana.kubernetes import pod_monitor


def export(folder, *words):
    """The resources that the command writes."""
    assert main(["export", "kubernetes", str(folder), *words]) == 0
    files = sorted(folder.glob("*.yml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def test_every_resource_fits_its_schema(tmp_path):
    """The operator's own schemas for its kinds, Kubernetes' for the others, none with a field too many."""
    resources = export(tmp_path, "--namespace", "monitoring", "--label", "release=prometheus")
    kinds = [one["kind"] for one in resources]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "ConfigMap": 8,
        "PodMonitor": 1,
        "PrometheusRule": 1,
    }
    for one in resources:
        validate(one)
        assert one["metadata"]["namespace"] == "monitoring"
        assert one["metadata"]["labels"]["release"] == "prometheus"


def test_schema_refuses_what_it_does_not_know():
    """The check above could fail."""
    wrong = pod_monitor(9465, [])
    wrong["spec"]["podMetricsEndpoints"][0]["relabeling"] = []
    with pytest.raises(jsonschema.ValidationError, match="relabeling"):
        validate(wrong)
    with pytest.raises(kubernetes_validate.ValidationError):
        validate({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "dates": {}})


def test_choices_reach_the_files(tmp_path):
    """Namespaces, port, rule parameters and data source are those of the command line."""
    words = ["--watch", "streams", "--watch", "batch", "--metrics-port", "9500"]
    words += ["--set", "stalled_seconds=600", "--disable", "Watchdog", "--datasource", "Mimir"]
    resources = {one["kind"]: one for one in export(tmp_path, *words)}
    spec = resources["PodMonitor"]["spec"]
    assert spec["namespaceSelector"] == {"matchNames": ["streams", "batch"]}
    assert "$1:9500" in json.dumps(spec)
    assert "SparkStreamWatchdog" not in json.dumps(resources["PrometheusRule"])
    assert "Mimir" in json.dumps(resources["ConfigMap"])
    assert "namespace" not in resources["PodMonitor"]["metadata"]


def test_closed_drivers_are_scraped_with_their_credentials(tmp_path):
    """TLS with a name that a pod's certificate can have, and a password, both from secrets; none unless asked for."""
    words = ["--tls-secret", "streams-ca", "--basic-auth-secret", "streams-login"]
    (monitor,) = (one for one in export(tmp_path, *words) if one["kind"] == "PodMonitor")
    validate(monitor)
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "streams-ca", "key": "ca.crt"}},
        "serverName": "streamgauge",
    }
    assert endpoint["basicAuth"] == {
        "username": {"name": "streams-login", "key": "username"},
        "password": {"name": "streams-login", "key": "password"},
    }
    (plain,) = pod_monitor(9465, [])["spec"]["podMetricsEndpoints"]
    assert not {"scheme", "tlsConfig", "basicAuth"} & set(plain)


def test_policies_let_executors_and_prometheus_in(tmp_path):
    """One for each namespace with drivers, in that namespace; the port is the one that is scraped."""
    words = ["--namespace", "monitoring", "--allow-from", "monitoring", "--metrics-port", "9500"]
    resources = export(tmp_path, *words, "--watch", "streams", "--watch", "batch")
    policies = [one for one in resources if one["kind"] == "NetworkPolicy"]
    assert [one["metadata"]["namespace"] for one in policies] == ["streams", "batch"]
    for one in policies:
        validate(one)
        assert one["spec"]["podSelector"] == {"matchLabels": {"spark-role": "driver"}}
        executors, prometheus = one["spec"]["ingress"]
        assert executors == {"from": [{"podSelector": {"matchLabels": {"spark-role": "executor"}}}]}
        (source,) = prometheus["from"]
        assert source["namespaceSelector"]["matchLabels"] == {
            "kubernetes.io/metadata.name": "monitoring"
        }
        assert prometheus["ports"] == [{"port": 9500, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--label", "release"], "release"),
        (["--set", "nonsense=1"], "nonsense"),
        (["--basic-auth-secret", "login"], "--tls-secret"),
        (["--allow-from", "monitoring"], "--watch"),
    ],
)
def test_wrong_choice_is_said(tmp_path, capsys, words, said):
    """Status 2, and what was wrong."""
    assert main(["export", "kubernetes", str(tmp_path), *words]) == 2
    assert said in capsys.readouterr().err


def test_names_are_those_that_spark_gives_its_pods():
    """The label and the port by which a driver is found stand in Spark's own constants."""
    import pyspark

    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-kubernetes_*.jar")
    constants = zipfile.ZipFile(jar).read("org/apache/spark/deploy/k8s/Constants$.class")
    monitor = pod_monitor(9465, [])["spec"]
    assert monitor["podMetricsEndpoints"][0]["port"].encode() in constants
    for word in ("spark-role", "driver"):
        assert word.encode() in constants
    assert monitor["selector"]["matchLabels"] == {"spark-role": "driver"}


def test_real_prometheus_finds_the_port_on_ipv4_and_ipv6(tmp_path):
    """The relabelling, with the labels that discovery gives."""
    endpoint = pod_monitor(9465, [])["spec"]["podMetricsEndpoints"][0]
    pods = {"driver-4": "10.1.2.3", "driver-6": "fd00::7"}
    config = {
        "scrape_configs": [
            {
                "job_name": "pods",
                "static_configs": [
                    {
                        "targets": [f"10.9.9.9:{7078 + n}"],
                        "labels": {
                            "__meta_kubernetes_pod_ip": ip,
                            "__meta_kubernetes_pod_name": name,
                        },
                    }
                    for n, (name, ip) in enumerate(pods.items())
                ],
                "relabel_configs": [
                    {re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", k): v for k, v in step.items()}
                    for step in endpoint["relabelings"]
                ],
            }
        ]
    }
    file, port = tmp_path / "prometheus.yml", free_port()
    file.write_text(yaml.safe_dump(config))
    process = subprocess.Popen(
        [
            *(program("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={tmp_path}/d"),
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}/api/v1/targets"
        found = wait_for(lambda: targets(url), 30, "Prometheus")
    finally:
        process.terminate()
        process.wait(20)
    assert found == {
        "driver-4": "http://10.1.2.3:9465/metrics",
        "driver-6": "http://[fd00::7]:9465/metrics",
    }


def targets(url):
    """What Prometheus would scrape, by instance."""
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        active = json.load(answer)["data"]["activeTargets"]
        return {one["labels"]["instance"]: one["scrapeUrl"] for one in active}
    return None
