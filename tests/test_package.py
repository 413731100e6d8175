"""What a user who installs the wheel gets, and what the docs say of it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from stage import ROOT

UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the sdist as an index would."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=110,
    )
    (found,) = out.glob("*.whl")
    return found


def test_wheel_holds_one_top_level_module(wheel):
    """Nothing generic such as `listener` becomes importable on a user's cluster."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"streamgauge"}
    for part in ("listener/bridge.py", "exporters/prometheus.py", "py.typed", "cli.py"):
        assert f"streamgauge/{part}" in names
    assert len(names) == len(set(names))


def test_wheel_holds_the_dashboards_and_not_their_preview(wheel):
    """What `streamgauge dashboards export` writes is shipped; what draws pictures is for development."""
    names = zipfile.ZipFile(wheel).namelist()
    boards = [name for name in names if name.startswith("streamgauge/grafana/dashboards/files/")]
    assert sum(name.endswith(".json") for name in boards) == 8
    assert not any("preview" in name or "node_modules" in name for name in names)


def test_wheel_installs_and_imports_alone(wheel, tmp_path):
    """In an environment of its own: one module, the command, and no need for Spark."""
    target = tmp_path / "site"
    subprocess.run(
        [
            str(UV),
            "pip",
            "install",
            "--python",
            sys.executable,
            "--target",
            str(target),
            str(wheel),
        ],
        check=True,
        capture_output=True,
        timeout=110,
    )
    files = [
        p for p in target.iterdir() if p.name.startswith(("streamgauge", "listener", "exporters"))
    ]
    assert sorted(p.name.partition("-")[0] for p in files) == ["streamgauge", "streamgauge"]
    code = (
        "import streamgauge, sys; from streamgauge.cli import main; main(['version']);"
        "assert 'pyspark' not in sys.modules; assert 'opentelemetry' not in sys.modules;"
        "from streamgauge import TelemetryListener"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(target)!r}); {code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "streamgauge 0.1.0\n"
    assert "pip install 'streamgauge[spark]'" in done.stderr


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
