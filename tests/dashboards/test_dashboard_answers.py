"""What panels answer on series that are made up: the committed expressions, through the real promtool."""

from __future__ import annotations

import json
import subprocess

import pytest
from promql_tree import fill
from promtool import promtool
from stage import ROOT

FILES = ROOT / "grafana" / "dashboards" / "files" / "dashboards"
HALF_AN_HOUR = 30  # of samples, one a minute
ORDERS = 'job="spark", app="shop", query="orders"'
VISITS = 'job="spark", app="shop", query="visits"'


def expression(board: str, title: str, ref: str = "A", **values: str) -> str:
    """The committed expression as Grafana sends it."""
    panels = json.loads((FILES / f"streamgauge-{board}.json").read_text())["panels"]
    (panel,) = [one for one in panels if one["title"] == title]
    (expr,) = [one["expr"] for one in panel["targets"] if one["refId"] == ref]
    return fill(expr, __rate_interval="5m", __range="20m", __interval="1m", **values)


def mark(board: str, name: str) -> str:
    """The committed expression of a mark as Grafana sends it, a step every minute."""
    marks = json.loads((FILES / f"streamgauge-{board}.json").read_text())["annotations"]["list"]
    (expr,) = [one["expr"] for one in marks if one["name"] == name]
    return fill(expr, __rate_interval="5m", __interval="1m")


@pytest.fixture
def answers(tmp_path):
    """Checks that an expression has these answers after half an hour, one sample a minute."""

    def check(expr: str, series: dict[str, str], expected: dict[str, float]) -> None:
        samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {"eval_time": f"{HALF_AN_HOUR}m", "expr": expr, "exp_samples": samples}
            ],
        }
        path = tmp_path / "answers.json"
        path.write_text(json.dumps({"rule_files": [], "tests": [test]}))
        command = [promtool(), "test", "rules", str(path)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr

    return check


def firing(severity: str, name: str, labels: str) -> str:
    """A firing alert's series."""
    return f'ALERTS{{alertname="SparkStream{name}", alertstate="firing", severity="{severity}", {labels}}}'


def test_worst_alert_of_a_query_is_a_number_that_sorts(answers):
    """2 for a critical one, 1 for a warning; an application's own alert is no query's."""
    series = {
        firing("critical", "AllRowsLate", VISITS): "1x30",
        firing("warning", "LateRowsDropped", VISITS): "1x30",
        firing("warning", "BatchOverrun", ORDERS): "1x30",
        firing("critical", "AgentDown", 'job="spark", app="shop"'): "1x30",
    }
    expected = {f"{{{VISITS}}}": 2, f"{{{ORDERS}}}": 1}
    answers(expression("fleet", "Queries, worst first", "B"), series, expected)


def test_freshness_is_a_share_of_the_query_s_own_target(answers):
    """80 seconds are fresh where 100 are allowed, and stale where 40 are."""
    series = {
        f"streamgauge_freshness_lag_seconds{{{ORDERS}}}": "80x30",
        f"streamgauge_freshness_lag_seconds{{{VISITS}}}": "80x30",
        f"query:streamgauge_freshness_target:seconds{{{ORDERS}}}": "100x30",
        f"query:streamgauge_freshness_target:seconds{{{VISITS}}}": "40x30",
    }
    expected = {f"{{{VISITS}}}": 2, f"{{{ORDERS}}}": 0.8}
    answers(expression("fleet", "Queries, worst first", "D"), series, expected)
    answers(expression("fleet", "Freshness vs. target"), series, {"{}": 2})


def info(instance: str, app: str) -> str:
    """The series that says which application an agent serves."""
    labels = f'job="spark", instance="{instance}", app="{app}", version="1", spark_version="4"'
    return f"streamgauge_build_info{{{labels}}}"


AGENTS = {
    info("alive", "shop"): "1x30",
    info("dead", "shop"): "1x10 _x20",
    info("other", "bank"): "1x30",
    'up{job="spark", instance="alive"}': "1x30",
    'up{job="spark", instance="dead"}': "1x10 0x19",
    'up{job="spark", instance="other"}': "1x30",
    'up{job="node", instance="stranger"}': "1x30",
}


def test_agents_that_answer_are_agents(answers):
    """Neither another program's target nor another application's agent; a dead one stays."""
    answers(expression("agent", "Agents that answer", app="shop"), AGENTS, {"{}": 0.5})


@pytest.mark.parametrize(
    ("title", "name", "expected"),
    [
        ("Lost events 10m", "events_dropped_total", 10),
        ("Errors in 1h", "errors_total", 30),
        ("Fallback in 1h", "fallback_events_total", 30),
    ],
)
def test_counts_of_agents_are_those_of_the_application(title, name, expected, answers):
    """One a minute of the chosen one; a hundred of another are not in it."""
    series = dict(AGENTS)
    silent = ("missed_batches_total", "bus_dropped_events_total") if "Lost" in title else ()
    for each in (name, *silent):
        ours, theirs = ("0x30", "0x30") if each != name else ("0+1x30", "0+100x30")
        where = f'streamgauge_agent_{each}{{job="spark", instance='
        series |= {f'{where}"alive"}}': ours, f'{where}"other"}}': theirs}
    answers(expression("agent", title, app="shop"), series, {"{}": expected})


def test_fullest_agent_is_one_of_the_application(answers):
    """Another's agent may be full."""
    series = dict(AGENTS)
    for instance, used in (("alive", 20), ("other", 90)):
        where = f'{{job="spark", instance="{instance}"}}'
        series[f"streamgauge_agent_series{where}"] = f"{used}x30"
        series[f"streamgauge_agent_series_limit{where}"] = "100x30"
    answers(expression("agent", "Series used", app="shop"), series, {"{}": 0.2})


def test_rows_read_are_drawn_beside_rows_written_alone(answers):
    """Where the sink does not tell, the panel has no line, so that its text can say so."""
    read = {f"streamgauge_input_rows_total{{{query}}}": "0+60x30" for query in (ORDERS, VISITS)}
    written = {f"streamgauge_output_rows_total{{{ORDERS}}}": "0+60x30"}
    expr = expression("sources", "Rows written", "B")
    answers(expr, {**read, **written}, {f"{{{ORDERS}}}": 1})


def ends(error_class: str) -> str:
    """The counter of failures of one class."""
    labels = f'{ORDERS}, outcome="failed", error_class="{error_class}"'
    return f"streamgauge_query_terminations_total{{{labels}}}"


def test_first_failure_of_a_class_counts(answers):
    """Its counter begins at 1 and never rises; the class that nothing failed with is not shown."""
    series = {ends("DIVIDE_BY_ZERO"): "_x25 1x5", ends("OLD"): "7x20 8x9", ends("other"): "0x30"}
    expr = expression("query", "Failures by error class")
    answers(expr, series, {'{error_class="DIVIDE_BY_ZERO"}': 1, '{error_class="OLD"}': 1})


@pytest.mark.parametrize("missing", [24, 25, 26, 28, 29])
def test_failed_scrape_invents_no_failure(missing, answers):
    """Whenever it was: in the panels of the interval and of the range, and in the marks."""
    series = {ends("OLD"): f"7x{missing - 1} stale 7x{HALF_AN_HOUR - missing}"}
    by_query = f"{{{ORDERS}}}"
    answers(expression("query", "Starts and ends", "C"), series, {by_query: 0})
    answers(expression("query", "Failures by error class"), series, {})
    answers(mark("query", "Failures"), series, {})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("7x29 8", 1),  # a failure
        ("7x28 8x1", None),  # was marked a step ago
        ("_x30 2", 2),  # the first of its class
        ("7x29 1", 1),  # after the driver was replaced
        ("7x28 stale 8", 1),  # while a scrape failed
        ("0x30", None),
    ],
)
def test_failure_is_marked_at_one_step(values, expected, answers):
    """Two neighbouring steps would be a region over the graph."""
    labels = f'{{{ORDERS}, error_class="OLD"}}'
    answers(
        mark("query", "Failures"), {ends("OLD"): values}, {labels: expected} if expected else {}
    )


def test_class_that_failed_long_ago_is_not_shown(answers):
    """No bar of 0: the panel says that nothing failed."""
    expr = expression("query", "Failures by error class")
    answers(expr, {ends("OLD"): "7x30", ends("other"): "0x30"}, {})


def test_starts_are_whole(answers):
    """`increase` alone makes 1.25 of one start in five minutes."""
    series = {f"streamgauge_query_starts_total{{{ORDERS}}}": "1x27 2x2"}
    answers(expression("query", "Starts and ends"), series, {f"{{{ORDERS}}}": 1})


@pytest.mark.parametrize(("cost", "busy"), [(20, 0.6), (60, 1)])
def test_query_is_never_busier_than_all_the_time(cost, busy, answers):
    """A batch counts whole when it ends: one longer than the hour would make 180 %."""
    series = {
        f"query:streamgauge_row_cost:seconds_per_krow1h{{{ORDERS}}}": f"{cost}x30",
        f"query:streamgauge_input_rows:rate1h{{{ORDERS}}}": "30x30",
    }
    title = "Cost of 1,000 rows, the most expensive change first"
    answers(expression("regressions", title, "H"), series, {f"{{{ORDERS}}}": busy})


def heartbeats(age: str | None) -> dict[str, str]:
    """The series of an agent that says when its worker was last alive, and perhaps how long ago."""
    where = '{job="spark", instance="alive"}'
    told = {f"streamgauge_agent_heartbeat_age_seconds{where}": age} if age else {}
    return {**AGENTS, f"streamgauge_agent_heartbeat_timestamp_seconds{where}": "1000x30", **told}


@pytest.mark.parametrize(("age", "expected"), [("3x30", 3), (None, 800)])
def test_heartbeat_is_as_old_as_the_agent_says(age, expected, answers):
    """By its own clock; an older agent says only when it was, by the driver's."""
    answers(expression("agent", "Oldest heartbeat", app="shop"), heartbeats(age), {"{}": expected})


def test_clock_difference_is_that_of_the_worst_driver(answers):
    """Ahead or behind; what a Pushgateway keeps is an old clock, and counts for nothing."""
    clock = "streamgauge_agent_clock_timestamp_seconds"
    series = {
        **AGENTS,
        f'{clock}{{job="spark", instance="alive"}}': "-90+60x30",
        f'{clock}{{job="spark", instance="dead"}}': "0x30",
        'push_time_seconds{job="spark", instance="dead"}': "0x30",
    }
    answers(expression("agent", "Clock difference", app="shop"), series, {"{}": 90})
