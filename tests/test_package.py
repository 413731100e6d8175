"""What a user who installs the wheel gets, and what the docs say of it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from stage import ROOT

UV = Path(sys.executable).with_name("uv")
SHIPPED = (
    "cli.py",
    "exporters/http/live.html",
    "exporters/metrics/collector.py",
    "grafana/alerts/rules/streamgauge.prometheusrule.yml",
    "grafana/alerts/rules/streamgauge.rules.yml",
    "grafana/dashboards/files/provisioning/datasources/streamgauge-tempo.yml",
    "listener/classic/bridge.py",
    "py.typed",
    "runbooks/SparkStreamQueryStalled.md",
)
GENERIC = ("listener", "exporters", "checkpoint", "grafana", "tests", "bench", "docker", "scripts")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel as `make wheel` builds it, from the sdist as an index would, and checks it."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        ["make", "--silent", "wheel", f"DIST={out}", f"PYTHON={sys.executable}"],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2, "twine looks at the sdist and at the wheel"
    (found,) = out.glob("*.whl")
    return found


def test_building_needs_neither_spark_nor_prometheus():
    """What `make wheel` and `make sbom` would run sets up the tools of a release alone."""
    for target in ("wheel", "sbom"):
        done = subprocess.run(
            ["make", "--dry-run", target], check=True, cwd=ROOT, capture_output=True, text=True
        )
        assert [line for line in done.stdout.splitlines() if "setup.py" in line] == [
            "python3 scripts/setup.py tools"
        ]
        assert " .venv/bin" not in done.stdout


def test_wheel_holds_one_top_level_module(wheel):
    """Code, types, rules, dashboards and the live page, all inside `streamgauge`."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"streamgauge"}
    assert not {f"streamgauge/{part}" for part in SHIPPED} - set(names)
    assert len(names) == len(set(names))


def test_wheel_holds_the_dashboards_and_not_their_preview(wheel):
    """What `streamgauge dashboards export` writes is shipped; what draws pictures is for development."""
    names = zipfile.ZipFile(wheel).namelist()
    boards = [name for name in names if name.startswith("streamgauge/grafana/dashboards/files/")]
    assert sum(name.endswith(".json") for name in boards) == 8
    assert not any("preview" in name or "node_modules" in name for name in names)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment that holds the wheel, what it needs, and nothing else."""
    home = tmp_path_factory.mktemp("installed")
    for command in (
        ["venv", "--quiet", "--clear", "--python", sys.executable, str(home)],
        ["pip", "install", "--quiet", "--python", str(home), str(wheel)],
    ):
        subprocess.run([str(UV), *command], check=True, capture_output=True, timeout=110)
    return home / "bin"


def test_installed_wheel_needs_no_spark_and_says_how_to_get_one(installed):
    """One module and the command; importing what needs PySpark gives the command that brings it."""
    code = (
        "import streamgauge, sys; from streamgauge.cli import main; main(['version']);"
        "assert 'pyspark' not in sys.modules; assert 'opentelemetry' not in sys.modules;"
        "from streamgauge import TelemetryListener"
    )
    done = run(installed / "python", "-c", code)
    assert done.stdout == "streamgauge 0.1.0\n"
    assert "pip install 'streamgauge[spark]'" in done.stderr
    assert run(installed / "streamgauge", "version").stdout == "streamgauge 0.1.0\n"


def test_installed_wheel_makes_nothing_generic_importable(installed):
    """A user's own `listener` or `exporters` on the cluster stays theirs."""
    code = f"import importlib.util as u; print([n for n in {GENERIC!r} if u.find_spec(n)])"
    assert run(installed / "python", "-c", code).stdout == "[]\n"


def test_installed_wheel_exports_rules_and_dashboards(installed, tmp_path):
    """The files are where the commands look for them outside a checkout too."""
    run(installed / "streamgauge", "rules", "export", tmp_path, check=True)
    run(installed / "streamgauge", "dashboards", "export", tmp_path, check=True)
    assert (tmp_path / "streamgauge.rules.yml").stat().st_size > 10_000
    assert len(list(tmp_path.glob("*.json"))) == 8


def run(*command, check=False):
    """Run a command away from the checkout."""
    return subprocess.run(
        [str(word) for word in command],
        cwd="/", capture_output=True, text=True, check=check, timeout=60,
    )  # fmt: skip


def test_generated_docs_have_not_drifted():
    """docs/ says what the tables say."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "write_docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_import_leaves_logging_and_signals_alone():
    """Importing the package changes nothing for the process."""
    code = (
        "import logging, signal; before = (list(logging.root.handlers), signal.getsignal(15));"
        "import streamgauge.agent;"
        "assert (list(logging.root.handlers), signal.getsignal(15)) == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
