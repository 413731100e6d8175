"""`streamgauge rules …`: what it writes, what it says of a wrong rule parameter, and when it can't look."""

from __future__ import annotations

import argparse
import json
import subprocess

import pytest
from promtool import RULES, promtool

from streamgauge.grafana.alerts.catalogue import alert_names
from streamgauge.grafana.alerts.commands import add_parser
from streamgauge.grafana.alerts.settings import Settings, duration_text
from streamgauge.grafana.alerts.yamltext import dump
from streamgauge.model.thresholds import PARAMETERS


def rules(*words: str) -> int:
    """Run the command; its exit status."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["rules", *words])
    status: int = args.run(args)
    return status


def test_export_writes_the_committed_file(tmp_path, capsys):
    """Without choices, what users get is what is committed and tested."""
    assert rules("export", str(tmp_path)) == 0
    assert (tmp_path / RULES.name).read_text() == RULES.read_text()
    assert str(tmp_path / RULES.name) in capsys.readouterr().out


def test_export_says_when_links_lead_nowhere(tmp_path, capsys):
    """One line for runbooks, one for Grafana, until an address is set; Alertmanager's file has no links."""
    runbooks, grafana = "runbook_url=https://wiki/rb", "grafana_url=https://grafana"
    assert rules("export", str(tmp_path)) == 0
    one, other = capsys.readouterr().err.splitlines()
    assert "--set runbook_url=" in one
    assert "--set grafana_url=" in other
    for given, missing in ((runbooks, "grafana_url"), (grafana, "runbook_url")):
        assert rules("export", str(tmp_path), "--set", given) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert f"--set {missing}=" in line
    for words in (("--set", runbooks, "--set", grafana), ("--format", "alertmanager")):
        assert rules("export", str(tmp_path), *words) == 0
        assert capsys.readouterr().err == ""


def test_grafana_that_is_at_its_default_address_can_be_said(tmp_path, capsys):
    """Who sets it to localhost means it."""
    words = ("--set", "grafana_url=http://localhost:3000", "--set", "runbook_url=https://wiki/rb")
    assert rules("export", str(tmp_path), *words) == 0
    assert capsys.readouterr().err == ""


def test_export_sets_a_rule_parameter(tmp_path):
    """`--set stalled_seconds=600` is in the budget of every query."""
    rules("export", str(tmp_path), "--set", "stalled_seconds=600")
    assert "streamgauge_silence_budget_seconds), 600)" in (tmp_path / RULES.name).read_text()


def test_export_leaves_an_alert_out(tmp_path):
    """`--disable` takes the name with or without its prefix."""
    rules(
        "export", str(tmp_path), "--disable", "BatchOverrun", "--disable", "SparkStreamBatchStuck"
    )
    text = (tmp_path / RULES.name).read_text()
    assert "alert: SparkStreamBatchOverrun" not in text
    assert "alert: SparkStreamBatchStuck" not in text
    assert "alert: SparkStreamQueryFailed" in text


def test_export_selects_a_part_of_the_fleet(tmp_path):
    """The selector is in the matchers."""
    rules("export", str(tmp_path), "--selector", 'cluster="eu"')
    text = (tmp_path / RULES.name).read_text()
    assert 'streamgauge_query_active{cluster=\\"eu\\"}' in text
    assert '{cluster="eu",__name__=~"streamgauge_batch_duration_max' in text


@pytest.mark.parametrize(
    "selector",
    [
        'cluster="eu"',
        ' cluster = "eu" , env !~ "dev|test" ',
        '{cluster="eu",}',
        "cluster='eu',region=~`eu-.+`",
        r'cluster=~"eu-\\d+"',
        'cluster="it\'s, \\"quoted\\""',
        'cluster=~"\\\\pL+"',
    ],
)
@pytest.mark.parametrize("form", ["prometheus", "kubernetes"])
def test_selector_that_is_taken_is_one_that_prometheus_takes(selector, form, tmp_path):
    """Every form of a matcher that PromQL has; promtool reads the file."""
    assert rules("export", str(tmp_path), "--selector", selector, "--format", form) == 0
    if form == "prometheus":
        command = [promtool(), "check", "rules", str(tmp_path / RULES.name)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("cluster=eu", 'did you mean cluster="eu"?'),
        ("cluster=~eu.*", 'did you mean cluster=~"eu.*"?'),
        ("eu", 'such as cluster="eu"'),
        ('cluster=="eu"', 'such as cluster="eu"'),
        ('cluster="eu" env="prod"', "separated by commas"),
        ('cluster="eu",,env="prod"', "separated by commas"),
        ('clu-ster="eu"', 'such as cluster="eu"'),
        ('cluster="eu', 'such as cluster="eu"'),
        ('cluster="eu"}', "separated by commas"),
        ('__name__="up"', "__name__"),
        ('cluster=~"["', "no regular expression"),
        (r'cluster=~"eu-\d+"', "backslash twice"),
    ],
)
@pytest.mark.parametrize("command", ["export", "check"])
def test_selector_that_is_none_is_refused(command, selector, said, tmp_path, capsys):
    """Exit status 2, the right form in the message, and nothing is written."""
    place = str(tmp_path / "out") if command == "export" else "http://127.0.0.1:9"
    assert rules(command, place, "--selector", selector) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_refused_selectors_are_those_that_promtool_refuses(tmp_path):
    """What is refused here would make a file that nobody can load."""
    for number, selector in enumerate(("cluster=eu", 'cluster=~"["', r'cluster=~"eu-\d+"')):
        document = {
            "groups": [{"name": "x", "rules": [{"record": "x", "expr": f"up{{{selector}}}"}]}]
        }
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(document))
        done = subprocess.run([promtool(), "check", "rules", str(file)], check=False)
        assert done.returncode != 0, selector


def test_export_for_kubernetes_is_a_resource(tmp_path):
    """The operator's kind, with the same groups."""
    assert rules("export", str(tmp_path), "--format", "kubernetes") == 0
    text = (tmp_path / "streamgauge.prometheusrule.yml").read_text()
    assert "kind: PrometheusRule" in text
    assert "apiVersion: monitoring.coreos.com/v1" in text


def test_export_of_alertmanagers_example(tmp_path):
    """The same writer as the committed example."""
    assert (
        rules("export", str(tmp_path), "--format", "alertmanager", "--set", "pager_url=http://x/y")
        == 0
    )
    text = (tmp_path / "alertmanager.yml").read_text()
    assert "http://x/y" in text
    used = [line for line in text.splitlines() if not line.startswith("#")]
    assert not any("team" in line or "payments" in line for line in used)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "staled_seconds=1"), "stalled_seconds"),
        (("--set", "stalled_seconds"), "name=value"),
        (("--set", "stalled_seconds=soon"), "a number of seconds"),
        (("--set", "stalled_seconds=-1"), "0 or more"),
        (("--disable", "Nothing"), "SparkStreamQueryFailed"),
        (("--time-scale", "0"), "above 0"),
    ],
)
def test_wrong_choice_is_told_with_what_is_allowed(words, said, tmp_path, capsys):
    """Exit status 2, nothing written, and the way out in the message."""
    assert rules("export", str(tmp_path / "out"), *words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_list_names_every_alert(capsys):
    """For people, and for programs."""
    assert rules("list") == 0
    text = capsys.readouterr().out
    assert rules("list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["alert"].partition("/")[0] for row in rows} == set(alert_names())
    assert all(name in text for name in alert_names())


def test_list_names_every_rule_parameter(capsys):
    """With default, unit and meaning."""
    names = [parameter.name for parameter in PARAMETERS]
    for option in ("--parameters", "--knobs"):  # the latter is the older name
        assert rules("list", option, "--json") == 0
        assert [row["knob"] for row in json.loads(capsys.readouterr().out)] == names


@pytest.mark.parametrize(
    ("seconds", "text"), [(900, "15m"), (90, "90s"), (0.5, "500ms"), (93600, "26h"), (0, "1ms")]
)
def test_durations_are_written_in_the_largest_unit(seconds, text):
    """As Prometheus reads them; never 0, which a range can't be."""
    assert duration_text(seconds) == text


def test_seconds_are_scaled_and_nothing_else():
    """One number scales every duration; ratios and counts stay."""
    fast = Settings(time_scale=1 / 60)
    assert fast.duration("rate_window") == "15s"
    assert fast.number("restart_count") == "3"
    assert fast.number("late_ratio") == "0.01"


@pytest.mark.parametrize("value", ["yes", "1", "a: b", "- x", "", "{x}", 'say "x"', "a\nb", "#"])
def test_yaml_strings_stay_strings(value):
    """What YAML could misread is quoted; the check reads it back as JSON or as a block."""
    text = dump({"key": value})
    if "\n" in value:
        assert text == "key: |-\n  a\n  b\n"
    else:
        assert json.loads(text.removeprefix("key: ")) == value


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "prometheus:9090"])
def test_check_that_can_not_look_says_so(url, capsys):
    """Exit status 2 and the address."""
    assert rules("check", url) == 2
    assert url in capsys.readouterr().err
