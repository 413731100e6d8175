"""What docs/deploy says can be applied, loaded and typed."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import urllib.request
from collections import Counter
from contextlib import suppress

import pytest
import yaml
from resource_schemas import validate
from stage import ROOT, Life, feed, free_port, page, program, recorded, wait_for

from streamgauge.cli import main
from streamgauge.config import FIELDS
from streamgauge.grafana.alerts.prometheus import Export, needed_series, rule_groups

GUIDES = sorted((ROOT / "docs" / "deploy").glob("*.md"))


def blocks(language):
    """Every block of a language in the guides, with its file."""
    for path in GUIDES:
        for text in re.findall(
            rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL
        ):
            yield path.name, text


def test_guides_resources_fit_their_schemas():
    """What can be applied to a cluster is valid, and has no field too many."""
    kinds = set()
    for _, text in blocks("yaml"):
        for one in yaml.safe_load_all(text):
            if "kind" not in one:
                continue
            kinds.add(one["kind"])
            validate(one)
    assert "SparkApplication" in kinds


def test_guides_prometheus_configurations_are_valid(tmp_path):
    """By promtool, as they stand there."""
    seen = Counter()
    for name, text in blocks("yaml"):
        if "scrape_configs:" in text:
            file = tmp_path / "prometheus.yml"
            file.write_text(text)
            command = [program("promtool"), "check", "config", "--syntax-only", str(file)]
            command += ["--agent"] if "remote_write:" in text else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (name, done.stdout + done.stderr)
            seen[name] += 1
    assert set(seen) == {path.name for path in GUIDES} - {"README.md", "kubernetes.md"}


def test_guides_scripts_and_json_can_be_read():
    """Every script is one that bash understands, every JSON is one."""
    scripts = list(blocks("bash"))
    assert {name for name, _ in scripts} == {"databricks.md", "emr-dataproc.md"}
    for name, text in scripts:
        done = subprocess.run(
            ["bash", "-n"], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (name, done.stderr)
    for _, text in blocks("json"):
        assert json.loads(text)


def test_guides_exports_write_what_they_name(tmp_path, monkeypatch, capsys):
    """The Kubernetes guide's commands run as they stand there; the closed one has a policy too."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/deploy/kubernetes.md").read_text().replace("\\\n", "")
    commands = re.findall(r"^\$ streamgauge (export .+)", text, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)) == 0
    assert all(name in text for name in capsys.readouterr().out.split()[:3])
    (file,) = (tmp_path / "manifests").glob("*networkpolicy.yml")
    assert file.name in text


def databricks(name, **places):
    """A block of the Databricks guide, with other things in the place of what it names."""
    ((_, text),) = (one for one in blocks(name) if one[0] == "databricks.md")
    for old, new in places.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def receiver(tmp_path):
    """The port of a Prometheus that takes what others write to it."""
    port = free_port()
    (tmp_path / "receiver.yml").write_text("{}")
    process = subprocess.Popen(
        [
            *(program("prometheus"), f"--config.file={tmp_path}/receiver.yml"),
            *(f"--storage.tsdb.path={tmp_path}/tsdb", f"--web.listen-address=127.0.0.1:{port}"),
            "--web.enable-remote-write-receiver",
        ],
        stderr=subprocess.DEVNULL,
    )
    yield port
    process.terminate()
    process.wait(20)


def test_guides_init_script_sends_the_page_on(tmp_path, receiver):
    """Databricks' script and configuration with a real Prometheus: a node's page is at the receiver, under the cluster's name."""
    volume, home = tmp_path / "volume", tmp_path / "opt"
    volume.mkdir()
    shutil.copy(program("prometheus"), volume / "prometheus")
    places = {"127.0.0.1:9465": f"127.0.0.1:{receiver}", "/opt/streamgauge": str(home)}
    places |= {"https://metrics.internal": f"http://127.0.0.1:{receiver}", "15s": "1s"}
    (volume / "agent.yml").write_text(databricks("yaml", **places))
    places = {"/Volumes/main/ops/streamgauge": str(volume), "/opt/streamgauge": str(home)}
    places |= {"/var/log": str(tmp_path), "127.0.0.1:9095": f"127.0.0.1:{free_port()}"}
    script = databricks("bash", **places, **{" --agent ": " --enable-feature=agent "})
    given = {**os.environ, "DB_CLUSTER_ID": "1116-orders", "REMOTE_WRITE_PASSWORD": "pass word"}

    def run(driver):
        command = ["bash", "-c", script]
        process = subprocess.Popen(command, env={**given, "DB_IS_DRIVER": driver}, process_group=0)
        assert process.wait(30) == 0
        return process.pid

    def arrived():
        asked = f"http://127.0.0.1:{receiver}/api/v1/query?query=up%7Bjob%3D%22spark-streams%22%7D"
        with suppress(OSError), urllib.request.urlopen(asked, timeout=5) as answer:
            return [one["metric"]["instance"] for one in json.load(answer)["data"]["result"]]
        return []

    run("FALSE")
    assert not home.exists()
    group = run("TRUE")
    try:
        assert wait_for(arrived, 60, "the page") == [f"1116-orders:{receiver}"]
    finally:
        os.killpg(group, signal.SIGKILL)  # else it tries for a minute to send the rest
    assert (home / "password").read_text() == "pass word"
    assert (home / "password").stat().st_mode & 0o077 == 0


def test_guides_name_settings_and_commands_that_exist():
    """Every `STREAMGAUGE_` variable is a setting, and every command is understood."""
    text = "\n".join(path.read_text() for path in GUIDES)
    for variable in re.findall(r"STREAMGAUGE_([A-Z_]+)", text):
        assert variable.lower() in FIELDS, variable
    for command in re.findall(r"^\$ streamgauge (\w+(?: \w+)?)", text, re.MULTILINE):
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), "--help"])
        assert ended.value.code == 0


def test_guides_links_lead_somewhere():
    """Every relative link is a file of the repository."""
    for path in GUIDES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), (path.name, target)


FAMILIES = (
    ("agent", ("agent_", "build_")),
    ("store", ("state_rocksdb_", "state_hdfs_", "state_custom")),
    ("state", ("state_",)),
    ("query", ("",)),
)


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("progress-file-source", {"agent": 50}),
        ("progress-agg-append-rocksdb", {"agent": 50, "state": 10, "store": 35}),
        ("progress-dedup-rocksdb", {"agent": 50, "state": 13, "store": 35}),
        ("progress-agg-append-hdfs", {"agent": 50, "state": 9, "store": 5}),
    ],
)
def test_series_are_as_many_as_the_guide_says(agent, kind, counts):
    """The arithmetic of docs/deploy/prometheus.md, from real events."""
    batch = json.loads(recorded("4.3.0", kind))["progress"]
    own = ("id", "runId", "name", "timestamp", "batchId")
    made, life = agent(), Life("orders")
    changes = {key: value for key, value in batch.items() if key not in own}
    feed(made, life.started(), life.progress(**changes))
    names = [name.removeprefix("streamgauge_") for name, _ in page(made)]
    found = Counter(
        next(family for family, heads in FAMILIES if name.startswith(heads)) for name in names
    )
    assert found.pop("query") <= 75
    assert found == counts


def test_kafka_source_is_as_many_series_as_the_guide_says(agent):
    """Twelve with its first partition, one for each other, 32 at the most."""

    def series(partitions):
        offsets = {str(number): 10 for number in range(partitions)}
        places = {key: {"orders": offsets} for key in ("startOffset", "endOffset", "latestOffset")}
        source = {"description": "KafkaV2[Subscribe[orders]]", "numInputRows": 0, **places}
        made, life = agent(), Life("orders")
        feed(made, life.started(), life.progress(sources=[source]))
        return sum("_source_" in name for name, _ in page(made))

    first = series(1)
    assert first <= 13  # with source_input_rows_total, which every source has
    assert series(5) == first + 4
    assert series(100) == first + 31


def test_rules_need_nothing_of_what_may_be_dropped():
    """The relabelling that the guide gives takes nothing from any rule."""
    (drop,) = re.findall(
        r"regex: (streamgauge_state_\S+)", (ROOT / "docs/deploy/prometheus.md").read_text()
    )
    assert not [name for name in needed_series(Export()) if re.fullmatch(drop, name)]
    recorded_names = {
        rule["record"]
        for group in rule_groups(Export())
        for rule in group["rules"]
        if "record" in rule
    }
    assert all(re.fullmatch(r"[a-z_]+:streamgauge_.+", name) for name in recorded_names)
