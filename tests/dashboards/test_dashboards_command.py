"""`streamgauge dashboards export`: what a user gets, without the library that wrote it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import yaml
from stage import ROOT

from streamgauge.cli import main
from streamgauge.grafana.alerts.catalogue import DASHBOARDS
from streamgauge.grafana.dashboards.commands import panels_of

FILES = ROOT / "grafana" / "dashboards" / "files"


def variables(board):
    """The variables of a dashboard by name."""
    return {variable["name"]: variable for variable in board["templating"]["list"]}


def test_exports_the_committed_files(tmp_path, capsys):
    """Without options, byte for byte; each is named."""
    assert main(["dashboards", "export", str(tmp_path / "new")]) == 0
    named = capsys.readouterr().out.split()
    assert {path.stem for path in (tmp_path / "new").iterdir()} == DASHBOARDS
    for name in named:
        committed = FILES / "dashboards" / name.rpartition("/")[2]
        assert (tmp_path / "new" / committed.name).read_bytes() == committed.read_bytes()


def test_export_without_runbooks_is_warned_of(tmp_path, capsys):
    """Their links are relative paths, which Grafana can't open; with an address there is no warning."""
    assert main(["dashboards", "export", str(tmp_path)]) == 0
    assert "--runbooks URL" in capsys.readouterr().err
    assert main(["dashboards", "export", str(tmp_path), "--runbooks", "https://wiki/rb"]) == 0
    assert capsys.readouterr().err == ""


def test_export_fills_in_the_choices(tmp_path):
    """Data source, trace store and runbooks, in every board."""
    choices = ["--datasource", "Thanos", "--traces", "jaeger-1", "--runbooks", "https://wiki/rb/"]
    assert main(["dashboards", "export", str(tmp_path), *choices]) == 0
    for path in tmp_path.glob("*.json"):
        found = variables(json.loads(path.read_text()))
        assert found["datasource"]["current"] == {"text": "Thanos", "value": "Thanos"}
        traces = found["traces"]
        assert "jaeger-1" in (traces["query"], traces.get("current", {}).get("value"))
        assert found["runbooks"]["query"] == "https://wiki/rb"


def test_export_for_jaeger_asks_as_jaeger_is_asked(tmp_path):
    """Panel, variables and links: a service and its tags, and nothing of Tempo is left."""
    assert main(["dashboards", "export", str(tmp_path), "--trace-store", "jaeger"]) == 0
    for path in tmp_path.glob("*.json"):
        text = path.read_text()
        assert "traceql" not in text
        assert '"type": "tempo"' not in text
    board = json.loads((tmp_path / "streamgauge-query.json").read_text())
    assert variables(board)["traces"]["query"] == "jaeger"
    assert variables(board)["app"]["includeAll"] is False  # there is no service that means all
    (panel,) = [one for one in panels_of(board) if one["title"].startswith("Traces of")]
    (search,) = panel["targets"]
    assert (search["queryType"], search["service"]) == ("search", "$app")
    links = {
        one for one in re.findall(r'"/explore[^\n]+"', path_text(board)) if "labels.app" in one
    }
    (link,) = links
    sought = json.loads(json.loads(link).partition("left=")[2])["queries"]
    tags = 'spark.streaming.query.label="${__field.labels.query:percentencode}"'
    service = "${__field.labels.app:percentencode}"
    assert sought == [{"refId": "A", "queryType": "search", "service": service, "tags": tags}]


def path_text(board):
    """A board as its file has it."""
    return json.dumps(board, indent=2)


def test_export_for_provisioning(tmp_path):
    """The folder's layout is Grafana's; exemplars lead to a data source that is there."""
    assert main(["dashboards", "export", str(tmp_path), "--format", "provisioning"]) == 0
    assert {path.stem for path in (tmp_path / "dashboards").glob("*.json")} == DASHBOARDS
    provider = yaml.safe_load((tmp_path / "provisioning/dashboards/streamgauge.yml").read_text())
    assert provider["apiVersion"] == 1
    assert provider["providers"][0]["type"] == "file"
    for kind in ("tempo", "jaeger"):
        file = tmp_path / f"provisioning/datasources/streamgauge-{kind}.yml"
        prometheus, traces = yaml.safe_load(file.read_text())["datasources"]
        (destination,) = prometheus["jsonData"]["exemplarTraceIdDestinations"]
        assert destination == {"name": "trace_id", "datasourceUid": traces["uid"]}
        assert traces["type"] == kind


def test_export_for_kubernetes(tmp_path):
    """One ConfigMap a board, small enough for kubectl, with the sidecar's label, and the same JSON in it."""
    assert main(["dashboards", "export", str(tmp_path), "--format", "kubernetes"]) == 0
    maps = list(yaml.safe_load_all((tmp_path / "streamgauge-dashboards.yml").read_text()))
    assert {one["metadata"]["name"] for one in maps} == DASHBOARDS
    for one in maps:
        assert one["kind"] == "ConfigMap"
        assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((name, text),) = one["data"].items()
        assert json.loads(text) == json.loads((FILES / "dashboards" / name).read_text())
        assert len(text) < 200_000  # kubectl keeps a copy in an annotation of 256 KiB at most


def test_export_that_can_not_write_says_so(tmp_path, capsys):
    """Exit status 2, and the path."""
    taken = tmp_path / "taken"
    taken.write_text("")
    assert main(["dashboards", "export", str(taken)]) == 2
    assert "taken" in capsys.readouterr().err


def test_export_needs_no_build_time_library(tmp_path):
    """A user has neither Grafana's builders nor a PromQL parser."""
    code = (
        "import sys; sys.modules['grafana_foundation_sdk'] = None;"
        "from streamgauge.cli import main;"
        f"sys.exit(main(['dashboards', 'export', {str(tmp_path)!r}]))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert len(list(tmp_path.glob("*.json"))) == len(DASHBOARDS)
