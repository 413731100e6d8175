"""Where traces go, and that nothing set means nowhere, at no cost."""

import json
import subprocess
import sys

import pytest
from stage import ROOT, Life, feed, page, value

from streamgauge.config import ConfigError, make_config
from streamgauge.exporters.traces.target import TargetError, choose_targets, find_exporter

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("setting", "environ", "targets"),
    [
        ("auto", {}, ()),
        ("auto", {ENDPOINT: "http://c:4318"}, ("otlp",)),
        ("auto", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, ("otlp",)),
        ("auto", {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}, ()),
        ("auto", {"OTEL_TRACES_EXPORTER": "otlp"}, ("otlp",)),
        ("auto", {"OTEL_TRACES_EXPORTER": "otlp, console"}, ("otlp", "console")),
        ("auto", {"OTEL_TRACES_EXPORTER": "none", ENDPOINT: "http://c:4318"}, ()),
        ("auto", {"OTEL_SDK_DISABLED": "true", ENDPOINT: "http://c:4318"}, ()),
        ("off", {ENDPOINT: "http://c:4318"}, ()),
        ("otlp", {}, ("otlp",)),
        ("otlp", {"OTEL_SDK_DISABLED": "true"}, ()),
        ("/var/log/traces.jsonl", {}, ("/var/log/traces.jsonl",)),
    ],
)
def test_targets(setting, environ, targets):
    """The setting first, then OpenTelemetry's own variables, with their own meaning."""
    assert choose_targets(setting, environ) == targets


def test_wrong_setting_names_the_allowed_ones():
    """A slip is not taken for a file."""
    with pytest.raises(ConfigError, match=r"traces is 'on'; allowed: auto, off, otlp, or the path"):
        make_config({"traces": "on"})


def test_missing_package_is_named_with_its_extra(monkeypatch):
    """The install command, not a traceback."""
    monkeypatch.setattr("streamgauge.exporters.traces.target.find_spec", lambda _: None)
    with pytest.raises(TargetError, match=r"pip install 'streamgauge\[otlp\]'"):
        find_exporter("otlp", {})
    with pytest.raises(TargetError, match=r"pip install 'streamgauge\[otlp-grpc\]'"):
        find_exporter("otlp", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})


def test_unknown_protocol_and_exporter_are_named():
    """With what is allowed."""
    with pytest.raises(
        TargetError, match=r"'http/json' is not known; allowed: http/protobuf, grpc"
    ):
        find_exporter("otlp", {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    with pytest.raises(TargetError, match=r"names 'zipkin'.*allowed: otlp, console, none"):
        find_exporter("zipkin", {})


def test_traces_that_can_not_be_sent_are_one_line_and_no_more(agent, monkeypatch):
    """Metrics go on; the error is counted once."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    made = agent()
    life = Life()
    feed(made, life.started(), life.progress())
    assert made.traces is None
    assert value(page(made), "agent_errors_total", None, part="traces") == 1
    assert value(page(made), "batches_total", data="true") == 1


def test_nothing_set_means_no_traces_no_words_no_imports():
    """A fresh process: no exporter, not even the SDK's tracing, and silence."""
    program = """
import sys, json
sys.path.insert(0, "tests")
from stage import Life, QuietDriver, feed
from streamgauge.listener.driver import ApplicationInfo
from streamgauge.agent import Agent
from streamgauge.config import make_config
agent = Agent(make_config({"metrics_address": "", "log_level": "warning"}), driver=QuietDriver())
agent.start(ApplicationInfo("shop"))
life = Life()
feed(agent, life.started(), life.progress())
agent.close()
heavy = ("opentelemetry.exporter", "opentelemetry.sdk.trace", "grpc", "requests", "google.protobuf")
print(json.dumps([name for name in sys.modules if name.startswith(heavy)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == []
