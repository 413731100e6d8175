"""The table itself: every alert has what a page needs, and every written file is up to date."""

from __future__ import annotations

import json
import re
import subprocess
from urllib.parse import unquote

import pytest
from promql_parser import MatrixSelector
from promql_tree import labels_of, selectors
from promtool import ROOT, RULES, program, promtool
from rule_scenarios import SCENARIOS
from theatre import Stage

from streamgauge.exporters.metrics.table import METRICS
from streamgauge.grafana.alerts import documents
from streamgauge.grafana.alerts.catalogue import DASHBOARDS, GROUPS, alert_names, alerts, recordings
from streamgauge.grafana.alerts.check import CONDITIONAL
from streamgauge.grafana.alerts.prometheus import Export, needed_series, rule_groups
from streamgauge.grafana.alerts.rule import expand
from streamgauge.grafana.alerts.settings import Settings
from streamgauge.model.thresholds import BY_NAME, PARAMETERS, PER_QUERY

# Promtool is quick, but not on a machine that does something else.
pytestmark = pytest.mark.timeout(600)

RUNBOOKS = ROOT / "docs" / "runbooks"
HEADINGS = ["## Meaning", "## Impact", "## Diagnosis", "## Remedy", "## What not to do"]
GOALS = ("resume", "replay", "backfill", "reset")
FIRED = {scenario.alert for scenario in SCENARIOS}


def test_written_files_are_up_to_date():
    """What is committed is what the table says; `make rules` writes it anew."""
    for path, text in documents.expected_files(ROOT).items():
        assert path.read_text() == text, f"{path} differs from the table; run `make rules`"


def test_promtool_finds_nothing_to_say():
    """`promtool check rules` is clean, its lints included."""
    done = subprocess.run(
        [promtool(), "check", "rules", "--lint=all", "--lint-fatal", str(RULES)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alerts()) + len(recordings())} rules found" in done.stdout


def test_alertmanager_accepts_its_example():
    """`amtool check-config` is clean."""
    config = ROOT / "docker" / "alertmanager.yml"
    subprocess.run(
        [program("amtool"), "check-config", str(config)], check=True, capture_output=True
    )


@pytest.mark.parametrize("alert", alerts(), ids=lambda a: a.key)
def test_alert_has_a_firing_test(alert):
    """No alert without a scenario in which it fires; the watchdog has its own test."""
    assert alert.key.removeprefix("SparkStream") in FIRED | {"Watchdog"}


def test_every_scenario_is_of_an_alert():
    """No scenario of an alert that is not in the table any more."""
    assert {f"SparkStream{name}" for name in FIRED} <= {alert.key for alert in alerts()}


@pytest.mark.parametrize("alert", alerts(), ids=lambda a: a.key)
def test_alert_links_to_a_dashboard_of_the_contract(alert):
    """The link opens one of the contract's dashboards."""
    assert alert.dashboard in DASHBOARDS


@pytest.mark.parametrize(
    "rule",
    [rule for group in rule_groups(Export()) for rule in group["rules"] if "alert" in rule],
    ids=lambda rule: rule["alert"].removeprefix("SparkStream"),
)
def test_page_says_what_since_when_what_it_costs_and_what_to_do(rule):
    """No page without these; what happened is told in the query's own numbers, and since is a time."""
    said = rule["annotations"]
    words = {"summary", "description", "since", "impact", "action", "dashboard_url", "runbook_url"}
    assert all(said.get(name) for name in words), words - set(said)
    assert "humanizeTimestamp" in said["since"]
    if "$labels.query" in said["dashboard_url"]:
        assert "reason" in said
    if rule["alert"] != "SparkStreamWatchdog":
        assert "trace_url" in said
        assert re.search(r"\$value|\| query \}\}", said["description"]), "no number of its own"


def test_trace_link_finds_a_query_that_has_no_name():
    """It asks for what the query's batches and starts say of it: the label; their names do not."""
    stage = Stage(name=None)
    stage.start()
    stage.batch()
    label = f"unnamed-{stage.life.query_id[:8]}"
    roots = [span for span in stage.spans() if span.parent is None]
    for rule in (rule for group in rule_groups(Export()) for rule in group["rules"]):
        url = rule.get("annotations", {}).get("trace_url")
        if url is None or "$labels.query" not in url:
            continue
        filled = url.replace("{{ $labels.query | urlquery }}", label)
        left = json.loads(unquote(filled).partition("left=")[2])
        (key, value) = re.findall(r' && span\.([\w.]+)="(.+?)"', left["queries"][0]["query"])[0]
        assert {span.attributes.get(key) for span in roots} == {value}, rule["alert"]


@pytest.mark.parametrize("name", alert_names())
def test_alert_has_a_runbook_with_all_headings(name):
    """Meaning, impact, diagnosis, remedy and what not to do, in this order, none of them empty."""
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    sections = re.split(r"^(## .+)$", text, flags=re.MULTILINE)
    assert sections[1::2] == HEADINGS
    assert all(len(body.strip()) > 40 for body in sections[2::2])


@pytest.mark.parametrize("name", [n for n in alert_names() if not n.endswith("Watchdog")])
def test_remedy_names_its_goal(name):
    """Every remedy says which it is: resume, replay, backfill or reset."""
    remedy = (RUNBOOKS / f"{name}.md").read_text().partition("## Remedy")[2]
    assert any(f"**{goal}" in remedy.lower() for goal in GOALS)


@pytest.mark.parametrize("name", [n for n in alert_names() if not n.endswith("Watchdog")])
def test_diagnosis_has_promql_and_a_checkpoint_command(name):
    """The exact PromQL, the command for the checkpoint, and where to look in Spark."""
    diagnosis = (RUNBOOKS / f"{name}.md").read_text().partition("## Diagnosis")[2]
    diagnosis = diagnosis.partition("## Remedy")[0]
    assert "```promql" in diagnosis
    assert "streamgauge checkpoint" in diagnosis
    assert "Spark" in diagnosis


def test_no_runbook_without_an_alert():
    """A runbook whose alert is gone would mislead."""
    assert {path.stem for path in RUNBOOKS.glob("SparkStream*.md")} == set(alert_names())


def test_runbooks_ask_for_batches_where_they_speak_of_them():
    """Without `--batches` the command tells of the last batch alone, and no watermark but its own."""
    seen = 0
    for path in RUNBOOKS.glob("*.md"):
        for options, comment in re.findall(
            r"^streamgauge checkpoint show \S+(.*?)# (.+)$", path.read_text(), re.MULTILINE
        ):
            told_apart = re.search(r"\b(each|first|last|the) (batch\w*|watermark)\b", comment)
            if told_apart and "last planned batch" not in comment:
                assert "--batches" in options, (path.name, comment)
                seen += 1
    assert seen > 8


def promql_of(path):
    """Every line of PromQL in a runbook."""
    for block in re.findall(r"```promql\n(.+?)```", path.read_text(), flags=re.DOTALL):
        yield from block.strip().splitlines()


PROMQL = [
    pytest.param(line, id=f"{path.stem.removeprefix('SparkStream')}: {line[:60]}")
    for path in sorted(RUNBOOKS.glob("*.md"))
    for line in promql_of(path)
]


@pytest.mark.parametrize("line", PROMQL)
def test_promql_in_runbooks_asks_for_labels_of_the_series(line):
    """A matcher of a label that a series does not have finds nothing, when it is needed most."""
    for selector, _ in selectors(line):
        for labels in labels_that_there_are(selector):
            assert labels_of(selector) <= labels | {"job", "instance", "le"}, selector.name


def labels_that_there_are(selector):
    """The labels of each series that the selector may mean; none of those that are not ours."""
    named = [one.value for one in selector.matchers.matchers if one.name == "__name__"]
    if named:
        found = [one for one in METRICS.values() if re.fullmatch(named[0], one.full_name)]
        return [{"__name__", *one.labels} for one in found]
    level, colon, _ = selector.name.partition(":")
    if colon:
        return [{"app", "query", "operator"} if level == "query_operator" else {"app", "query"}]
    family = re.sub(r"_(bucket|sum|count)$", "", selector.name)
    return [set(one.labels) for one in METRICS.values() if one.full_name in (family, selector.name)]


@pytest.mark.parametrize(
    "name", ["QueryFailed", "QueryVanished", "QueryMissing", "RestartLoop", "AgentDown"]
)
def test_runbook_of_what_may_be_gone_asks_for_what_was_last_said(name):
    """Where the driver is dead there is no series of now; its checkpoint is found all the same."""
    path = RUNBOOKS / f"SparkStream{name}.md"
    asked = [one for line in promql_of(path) for one in selectors(line)]
    for selector, parents in asked:
        if selector.name.startswith("streamgauge_"):
            assert any(isinstance(one, MatrixSelector) for one in parents), selector.name
    assert "streamgauge_query_info" in {selector.name for selector, _ in asked}


def test_promql_of_a_shared_checkpoint_is_that_of_the_alert():
    """Queries that ended, and those whose location is unknown, share nothing."""
    _, line, *_ = promql_of(RUNBOOKS / "SparkStreamCheckpointShared.md")
    (alert,) = (one for one in alerts() if one.name == "CheckpointShared")
    assert line in expand(alert.expr, Settings()), line


def test_promql_in_runbooks_parses_and_asks_for_known_series(tmp_path):
    """A tired person pastes these: they must parse, and ask for series that exist."""
    rules = [
        {"record": "x", "expr": line, "labels": {"n": str(number)}}
        for number, line in enumerate(one.values[0] for one in PROMQL)
    ]
    file = tmp_path / "runbooks.json"
    file.write_text(json.dumps({"groups": [{"name": "runbooks", "rules": rules}]}))
    done = subprocess.run(
        [promtool(), "check", "rules", str(file)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rules) >= len(alert_names())
    known = _agents_series() | {rule.record for rule in recordings()} | {"up"}
    for rule in rules:
        asked = set(re.findall(r"(?:\w+:)?streamgauge_\w+(?::\w+)?\b(?!\.)", rule["expr"]))
        assert asked <= known, f"{sorted(asked - known)} in {rule['expr']}"


def test_every_rule_parameter_is_used():
    """A parameter that changes nothing is a lie."""
    used = json.dumps([str(group) for group in GROUPS])
    elsewhere = {"evaluation_interval", "group_wait", "group_interval", "repeat_interval"}
    elsewhere |= {"watchdog_interval", "grafana_url", "runbook_url", "tempo_uid"}
    elsewhere |= {"pager_url", "ticket_url", "deadman_url"}
    for name in BY_NAME:
        assert f"${name}" in used or f"'{name}'" in used or name in elsewhere, name


def test_no_duration_is_written_as_a_number():
    """Every duration is a rule parameter, so that one time_scale reaches all of them."""
    for text in [rule.expr for rule in recordings()] + [alert.expr for alert in alerts()]:
        assert not re.search(r"\[\d|offset \d|\b\d+[smhd]\b", text), text


def test_per_query_parameters_are_those_that_say_so():
    """`$$name` in an expression and `per_query` in the table mean the same."""
    text = " ".join([alert.expr for alert in alerts()] + [rule.expr for rule in recordings()])
    used = set(re.findall(r"\$\$([a-z_]+)", text)) | set(re.findall(r'name="([a-z_]+)"', text))
    assert used == set(PER_QUERY)


def test_no_churning_label_in_an_alert():
    """Ids of runs and batches would start the alert's clock anew; runs may only be counted."""
    counted = re.compile(r"(count by \([^)]*\)) \(group by \([^)]*\)")
    for group in rule_groups(Export()):
        for rule in group["rules"]:
            expr = counted.sub(r"\1", rule["expr"])
            assert not re.search(r"by \([^)]*(run_id|batch_id)", expr)


def test_conditional_series_are_those_the_rules_use():
    """The check's list of series that may be absent holds none that no rule needs."""
    assert set(CONDITIONAL) <= set(needed_series(Export()))


def _agents_series() -> set[str]:
    """The names on the agent's page, a histogram's parts included."""
    have = {metric.full_name for metric in METRICS.values()}
    return have | {f"{name}{part}" for name in have for part in ("_sum", "_count", "_bucket")}


def test_rules_ask_only_for_series_that_the_agent_has():
    """Every series in a rule is in the agent's own table; a typo would be silence for ever."""
    assert not set(needed_series(Export())) - _agents_series()


def test_selector_reaches_every_series():
    """A selector is in each matcher of the agent's series, and in none of the recorded ones."""
    for alert in alerts():
        expr = expand(alert.expr, Settings(), 'cluster="eu"')
        for name, brace in re.findall(r"(?<![\w:\"|])(streamgauge_\w+)(\{cluster=\"eu\")?", expr):
            assert brace, f"{name} in {alert.key}"
        assert ":max{cluster" not in expr


def test_rule_parameter_names_are_unique():
    """Two rule parameters of one name would hide one another."""
    assert len(BY_NAME) == len(PARAMETERS)
