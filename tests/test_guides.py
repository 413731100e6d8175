"""What docs/deploy says can be applied, loaded and typed."""

import json
import re
import subprocess
from collections import Counter

import pytest
import yaml
from resource_schemas import validate
from stage import ROOT, Life, feed, page, program, recorded

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
    assert {"NetworkPolicy", "SparkApplication"} <= kinds


def test_guides_prometheus_configurations_are_valid(tmp_path):
    """By promtool, as they stand there."""
    seen = 0
    for name, text in blocks("yaml"):
        if "scrape_configs:" in text:
            file = tmp_path / "prometheus.yml"
            file.write_text(text)
            command = [program("promtool"), "check", "config", "--syntax-only", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (name, done.stdout + done.stderr)
            seen += 1
    assert seen >= 3


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
        ("progress-file-source", {"agent": 62}),
        ("progress-agg-append-rocksdb", {"agent": 62, "state": 10, "store": 35}),
        ("progress-dedup-rocksdb", {"agent": 62, "state": 10, "store": 38}),
        ("progress-agg-append-hdfs", {"agent": 62, "state": 9, "store": 5}),
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
    assert found.pop("query") <= 70
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
