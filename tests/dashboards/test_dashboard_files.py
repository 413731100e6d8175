"""The dashboards as files: what is committed parses, is complete, and is what the boards say."""

from __future__ import annotations

import itertools
import json
import math
import re

import promql_parser
import pytest
import yaml
from promql_tree import RATE_INTERVAL, labels_of, parse, selectors, walk
from stage import ROOT
from theatre import Stage

from streamgauge.exporters.metrics.table import METRICS
from streamgauge.grafana.alerts.catalogue import DASHBOARDS, alert_names, recordings
from streamgauge.grafana.dashboards import documents
from streamgauge.grafana.dashboards.catalogue import BOARDS
from streamgauge.grafana.dashboards.colours import ORANGE, RED
from streamgauge.grafana.dashboards.commands import panels_of
from streamgauge.grafana.dashboards.promql import VERDICTS
from streamgauge.grafana.dashboards.render import render
from streamgauge.model.thresholds import BY_NAME, PARAMETERS

FILES = ROOT / "grafana" / "dashboards" / "files" / "dashboards"
COMMITTED = {path.stem: json.loads(path.read_text()) for path in sorted(FILES.glob("*.json"))}
PANELS = [
    pytest.param(panel, id=f"{uid}: {panel['title']}")
    for uid, board in COMMITTED.items()
    for panel in panels_of(board)
    if panel["type"] != "row"
]
EXPRESSIONS = [
    pytest.param(target["expr"], id=f"{uid}: {panel['title']} {target['refId']}")
    for uid, board in COMMITTED.items()
    for panel in panels_of(board)
    for target in panel.get("targets", [])
    if "expr" in target
] + [
    pytest.param(annotation["expr"], id=f"{uid}: mark {annotation['name']}")
    for uid, board in COMMITTED.items()
    for annotation in board["annotations"]["list"]
]
# Prometheus' own series; all others are the agent's or recorded from them.
PROMETHEUS_OWN = {
    *("ALERTS", "ALERTS_FOR_STATE", "up", "scrape_duration_seconds"),
    "push_time_seconds",  # the Pushgateway's
}
# Units that the linter and Grafana 10 both know, of those that are used here.
UNITS = {"Bps", "bytes", "m", "none", "percentunit", "s", "short"}


def known_series() -> set[str]:
    """Names of all series that there can be."""
    found = {rule.record for rule in recordings()} | PROMETHEUS_OWN
    for metric in METRICS.values():
        if metric.kind == "histogram":
            found |= {f"{metric.full_name}{suffix}" for suffix in ("_bucket", "_sum", "_count")}
        else:
            found.add(metric.full_name)
    return found


# ---- the files -----------------------------------------------------------------------------


def test_committed_files_are_what_the_boards_say():
    """`make dashboards` writes them anew."""
    for path, text in documents.expected_files(ROOT).items():
        assert path.read_text() == text, f"{path} differs from the boards; run `make dashboards`"


def test_rendering_is_deterministic():
    """The same board gives the same bytes."""
    for board in BOARDS:
        assert render(board) == render(board)


def test_uids_are_the_contract_s():
    """All eight, each in the file of its name: alerts and people's own links hang on them."""
    assert {board["uid"] for board in COMMITTED.values()} == DASHBOARDS
    assert all(name == board["uid"] for name, board in COMMITTED.items())


def test_no_id_is_given():
    """Grafana gives a dashboard its own id; one in the file would overwrite a stranger's."""
    for board in COMMITTED.values():
        assert board.get("id") is None


def test_linter_exclusions_have_a_reason():
    """grafana/dashboard-linter reads this file beside a dashboard; some rules don't suit: it says why."""
    rules = yaml.safe_load((FILES / ".lint").read_text())
    assert set(rules) == {"exclusions"}
    assert all(len(rule["reason"]) > 40 for rule in rules["exclusions"].values())


# ---- expressions ---------------------------------------------------------------------------


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_expression_parses(expr):
    """Prometheus' grammar, with Grafana's variables filled in."""
    parse(expr)


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_expression_asks_for_series_that_there_are(expr):
    """A typo would be an empty panel for ever."""
    names = {selector.name for selector, _ in selectors(expr)}
    assert names
    assert names <= known_series()


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_labels_are_those_of_the_series(expr):
    """A matcher of a label that the agent's series does not have matches nothing, or too much."""
    for selector, _ in selectors(expr):
        family = re.sub(r"_(bucket|sum|count)$", "", selector.name.removeprefix("streamgauge_"))
        metric = METRICS.get(selector.name.removeprefix("streamgauge_")) or METRICS.get(family)
        if metric and selector.name.startswith("streamgauge_"):
            assert labels_of(selector) <= {*metric.labels, "job", "instance", "le"}, selector.name


def counters() -> set[str]:
    """Names of series that only ever rise."""
    found = {metric.full_name for metric in METRICS.values() if metric.kind == "counter"}
    return found | {name for name in known_series() if name.endswith(("_bucket", "_sum", "_count"))}


def is_step(expr: str, name: str) -> bool:
    """`x`, against `last_over_time(x[w] offset o)` of the same counter: how it rose, or that it is new."""
    now = rf"{name}\{{[^}}]*\}}"
    before = rf"last_over_time\({now}\[[^\]]+\] offset [^)]+\)"
    rest = re.sub(rf"{now} (-|<|unless) {before}", "", expr)
    rest = re.sub(rf"increase\({now}\[[^\]]+\]( offset [^)]+)?\)", "", rest)
    return name not in rest and rest != expr


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_counters_are_inside_rate_or_increase(expr):
    """And nothing but counters is: the rate of a gauge is no rate. Or compared with themselves before."""
    rising = counters()
    for selector, parents in selectors(expr):
        calls = [p for p in parents if isinstance(p, promql_parser.Call)]
        rated = bool(calls) and calls[-1].func.name in {"rate", "increase", "irate"}
        if selector.name in rising:
            assert rated or is_step(expr, selector.name), selector.name
        else:
            assert not rated, selector.name


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_rates_come_before_sums(expr):
    """`rate(sum())` loses every reset of a counter."""
    for node, parents in walk(parse(expr)):
        if isinstance(node, promql_parser.AggregateExpr):
            names = {p.func.name for p in parents if isinstance(p, promql_parser.Call)}
            assert not names & {"rate", "increase", "irate"}


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_rate_uses_the_rate_interval(expr):
    """Any other window is empty at some zoom or some scrape interval."""
    for node, parents in walk(parse(expr)):
        if isinstance(node, promql_parser.MatrixSelector):
            call = parents[-1]
            assert call.func.name not in {"rate", "irate"} or node.range == RATE_INTERVAL


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_every_selector_is_narrowed_to_the_job(expr):
    """The linter's target-job: nothing of another job gets in."""
    for selector, _ in selectors(expr):
        assert "job" in labels_of(selector)
        assert 'job=~"$job"' in expr


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_no_churning_label_is_kept(expr):
    """Ids of runs and batches would draw a new line with every restart; only the fact sheet has one."""
    by = " ".join(re.findall(r"by \(([^)]*)\)", expr))
    assert "batch_id" not in by
    assert "run_id" not in by or "query_info" in expr


# ---- panels --------------------------------------------------------------------------------


@pytest.mark.parametrize("panel", PANELS)
def test_panel_says_what_it_is(panel):
    """Title, what bad looks like, and the alert that watches it."""
    assert panel["title"]
    assert re.search(r"\b[Bb]ad is\b", panel["description"])
    named = set(re.findall(r"SparkStream\w+", panel["description"]))
    assert named <= set(alert_names())
    assert named or "No alert watches it." in panel["description"]


@pytest.mark.parametrize("panel", PANELS)
def test_panel_has_a_unit_and_a_text_for_nothing(panel):
    """The linter's panel-units; and whoever sees nothing learns why: there, or where values are, behind the title."""
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"] in UNITS
    if panel["type"] in {"stat", "bargauge", "state-timeline", "status-history"}:
        assert defaults.get("noValue") in {
            None,
            "no data",
        }  # a long text is a tiny or a wide one there
        text = panel["description"].partition("“No data” means: ")[2]
    else:
        text = defaults["noValue"]
    assert len(text) > 10
    assert text.endswith((".", "?"))
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            assert one["id"] != "unit" or one["value"] in UNITS


@pytest.mark.parametrize("panel", PANELS)
def test_panel_asks_the_chosen_data_source(panel):
    """The linter's panel-datasource and panel-no-targets; traces have a data source of their own."""
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    if panel["title"].startswith("Traces"):
        chosen = {"type": "tempo", "uid": "${traces}"}
    assert panel["datasource"] == chosen
    assert panel["targets"]
    assert all(target["datasource"] == chosen for target in panel["targets"])
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize("panel", PANELS)
def test_tables_and_stats_ask_for_now_alone(panel):
    """A table of every moment in the range would be a table of thousands of lines."""
    if panel["type"] == "table" and panel["datasource"]["type"] == "prometheus":
        assert all(target["instant"] and not target["range"] for target in panel["targets"])


@pytest.mark.parametrize("panel", PANELS)
def test_overrides_meet_a_name_that_there_is(panel):
    """An override whose pattern meets nothing is a colour or a unit that is missing.

    Grafana puts `^` and `$` around it; test_dashboard_grafana has Grafana's own code look at recorded names.
    """
    names = [target.get("legendFormat", "") for target in panel["targets"]]
    names = [re.sub(r"\{\{\w+\}\}", "x", name) for name in names]
    if panel["type"] == "table":
        renamed = [
            one["options"] for one in panel.get("transformations", ()) if one["id"] == "organize"
        ]
        names = [name for options in renamed for name in options["renameByName"].values()]
    for override in panel["fieldConfig"]["overrides"]:
        pattern = override["matcher"]["options"]
        templated = any(
            re.search(r"\{\{(phase|state|kind|outcome)", t["legendFormat"])
            for t in panel["targets"]
            if "expr" in t
        )
        assert templated or any(re.fullmatch(pattern, name) for name in names) or pattern == ".*", (
            pattern
        )


def test_panels_stand_beside_each_other():
    """Unique ids; no two panels on one cell; nothing past the last column."""
    for board in COMMITTED.values():
        taken: set[tuple[int, int]] = set()
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not taken & cells, panel["title"]
            assert place["x"] + place["w"] <= 24
            taken |= cells


def test_titles_are_unique_in_a_board():
    """So that a person can say which panel is meant."""
    for board in BOARDS:
        titles = [panel.title for panel in board.panels]
        assert len(titles) == len(set(titles))


def test_thresholds_are_rule_parameters():
    """A line at a number that no rule has would tell another truth than the page."""
    shares = {0, 0.0001, 0.5, 0.8, 1, 2}  # shares of a whole, and "any at all"
    defaults = {each.default for each in PARAMETERS if not isinstance(each.default, str)}
    derived = {value - 1 for value in defaults}
    for board in BOARDS:
        for panel in board.panels:
            values = {value for value, _ in panel.steps if value is not None}
            assert values <= defaults | derived | shares, panel.title
            assert not panel.line or values & (defaults | {0}), panel.title


def test_tables_fit_a_screen():
    """At their narrowest, in the 1544 pixels that Grafana leaves of 1600; the wide ones also in 1224 of 1280."""
    for board in COMMITTED.values():
        for panel in board["panels"]:
            if panel["type"] != "table":
                continue
            columns = panel["transformations"][1]["options"]["renameByName"].values()
            least = panel["fieldConfig"]["defaults"]["custom"]["minWidth"]
            room = 1544 if panel["title"] == "Firing alerts" else 1224
            wide = sum(_width(panel, column, least) for column in columns)
            assert wide <= room * panel["gridPos"]["w"] / 24, panel["title"]
            assert panel["fieldConfig"]["defaults"]["custom"]["wrapHeaderText"] is True


def _width(panel, column: str, least: int) -> int:
    """What a column takes at least."""
    found = least
    for override in panel["fieldConfig"]["overrides"]:
        if re.fullmatch(override["matcher"]["options"], column):
            given = {one["id"]: one["value"] for one in override["properties"]}
            found = given.get("custom.width", given.get("custom.minWidth", found))
    return found


def test_titles_of_stats_fit():
    """Eight pixels a letter, beside the sign that opens the description."""
    for board in COMMITTED.values():
        for panel in board["panels"]:
            if panel["type"] == "stat":
                assert 8 * len(panel["title"]) + 60 <= 1544 * panel["gridPos"]["w"] / 24, panel[
                    "title"
                ]


def test_zeros_are_not_drawn_on_an_axis_to_a_hundred():
    """Which is what Grafana does to a line of zeros alone."""
    for board in COMMITTED.values():
        for panel in board["panels"]:
            defaults = panel.get("fieldConfig", {}).get("defaults", {})
            if panel["type"] == "timeseries" and defaults.get("min") == 0:
                assert "max" in defaults or defaults["custom"]["axisSoftMax"] > 0, panel["title"]


def test_line_is_in_sight():
    """Who is told that bad is above the line sees the line, however far below it all is."""
    for board in COMMITTED.values():
        for panel in board["panels"]:
            custom = panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {})
            if "thresholdsStyle" in custom:
                steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
                highest = max(step["value"] or 0 for step in steps)
                assert custom["axisSoftMax"] > highest or highest == 0


def test_log_axis_of_bytes_counts_in_twos():
    """Powers of ten read 954 KiB and 95.4 KiB where bytes are counted in powers of two."""
    for board in BOARDS:
        for panel in board.panels:
            if panel.log:
                assert panel.log == (2 if panel.unit == "bytes" else 10), panel.title


def lightness_and_hue(colour: str) -> tuple[float, float, float]:
    """A colour in CIELAB, where distance is what the eye sees."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    light = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    weights = ((0.4339, 0.3762, 0.1899), (0.2126, 0.7152, 0.0722), (0.0177, 0.1095, 0.8728))
    sums = [sum(w * p for w, p in zip(row, light, strict=True)) for row in weights]
    x, y, z = (s ** (1 / 3) if s > 0.008856 else 7.787 * s + 16 / 116 for s in sums)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_verdicts_can_be_told_apart_by_colour():
    """No two are neighbours: 10 apart is what a glance does not tell."""
    for one, other in itertools.combinations(VERDICTS, 2):
        colours = (lightness_and_hue(VERDICTS[name][1]) for name in (one, other))
        assert math.dist(*colours) > 18, (one, other)


def test_red_and_orange_lines_are_bad():
    """A line that is well wears neither: only limits, losses and what should not happen do."""
    bad = {
        *("trigger interval", "budget", "target", "warns (above|below)"),  # limits
        *("failed", "end not seen", "replayed", "replayed batches", "resets"),
        *("dropped by the inbox", "never seen", "dropped", "stalled", "gone", "writers stalled"),
        "fallback",
    }
    for board in BOARDS:
        for panel in board.panels:
            for override in panel.overrides:
                if dict(override.properties).get("color") in {RED, ORANGE}:
                    assert re.sub(r"^\^|^\.\* |\$$", "", override.pattern) in bad, panel.title


def test_lines_of_several_kinds_have_colours_of_their_own():
    """Grafana's palette gives red to the fifth line, be it never so well."""
    for board in BOARDS:
        for panel in board.panels:
            fixed = [o.pattern for o in panel.overrides if "color" in dict(o.properties)]
            names = [target.legend for target in panel.targets]
            if panel.kind == "timeseries" and len(names) > 1 and "in a day" not in names[1]:
                for name in names:
                    if "{{phase" not in name:
                        assert any(re.fullmatch(p, name) for p in fixed), (panel.title, name)


def test_red_is_never_good():
    """The first, good step of a threshold is red only where less is worse."""
    for board in BOARDS:
        for panel in board.panels:
            if panel.steps and panel.steps[0][1] == "#e02f44":
                assert panel.title in {"Budget left", "Agents that answer"}


def override_of(panel, column: str) -> dict[str, object]:
    """What is said of a column, by property."""
    (found,) = [
        one["properties"]
        for one in panel["fieldConfig"]["overrides"]
        if one["matcher"]["options"] == f"^{column}$"
    ]
    return {one["id"]: one["value"] for one in found}


def panel_of(board: str, title: str):
    """A committed panel."""
    (found,) = [one for one in COMMITTED[f"streamgauge-{board}"]["panels"] if one["title"] == title]
    return found


def test_fleet_is_sorted_by_alert_and_then_by_verdict():
    """An idle query that pages stands above one that is well and busy."""
    table = panel_of("fleet", "Queries, worst first")
    order = [(one["displayName"], one["desc"]) for one in table["options"]["sortBy"]]
    assert order == [("Alert", True), ("Verdict", True)]


def test_query_without_a_verdict_is_not_green():
    """One that is missing has a line by its alert alone; Grafana's first colour would call it well."""
    verdict = override_of(panel_of("fleet", "Queries, worst first"), "Verdict")
    assert [step["color"] for step in verdict["thresholds"]["steps"]] == ["transparent"]


def test_watermark_ahead_of_the_clock_is_red():
    """A lag below 0 is event time from the future."""
    table = panel_of("fleet", "Queries, worst first")
    steps = override_of(table, "Watermark lag")["thresholds"]["steps"]
    assert [(step["value"], step["color"]) for step in steps] == [(None, RED), (0, "text")]


def test_freshness_is_judged_by_the_query_s_own_target():
    """The plain rule parameter would call stale what the objective calls fresh."""
    plain = BY_NAME["freshness_seconds"].default
    for board in BOARDS:
        for panel in board.panels:
            steps = [*panel.steps]
            for override in panel.overrides:
                steps += dict(override.properties).get("thresholds", ())
            lag = any("freshness_lag" in target.expr for target in panel.targets)
            assert not lag or plain not in {value for value, _ in steps}, panel.title


def test_no_count_of_alerts_is_called_pages():
    """Alertmanager groups and inhibits: how many page is not Prometheus' to say."""
    for board in BOARDS:
        for panel in board.panels:
            counts = any("count(ALERTS" in target.expr for target in panel.targets)
            assert not counts or "age" not in panel.title, panel.title


def test_agent_board_shows_the_chosen_application_alone():
    """Every expression asks which application an agent serves."""
    for panel in COMMITTED["streamgauge-agent"]["panels"]:
        for target in panel.get("targets", ()):
            assert 'app=~"$app"' in target["expr"], panel["title"]


def test_empty_cell_of_a_table_stays_empty():
    """Grafana writes the text for an empty panel into each cell that has no value, unless told not to."""
    for board in COMMITTED.values():
        for panel in board["panels"]:
            if panel["type"] == "table" and panel["datasource"]["type"] == "prometheus":
                first = panel["fieldConfig"]["overrides"][0]
                assert first["matcher"] == {"id": "byRegexp", "options": ".*"}
                assert first["properties"] == [{"id": "noValue", "value": ""}]


# ---- dashboards ----------------------------------------------------------------------------


@pytest.mark.parametrize("board", COMMITTED.values(), ids=COMMITTED)
def test_variables_are_as_the_linter_wants_them(board):
    """Data source, job, application and query, in this order; reloaded with the time range."""
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    names = ["datasource", "job", "app", "query", "traces", "runbooks"]
    assert list(variables) == names
    source, job = variables["datasource"], variables["job"]
    assert (source["type"], source["query"], source["label"]) == (
        *("datasource", "prometheus", "Data source"),
    )
    assert (job["label"], job["multi"], job["allValue"]) == ("Job", True, ".+")
    for name in ("job", "app", "query"):
        variable = variables[name]
        assert variable["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert variable["refresh"] == 2
        # Only then does Grafana escape a value for the regular expression it stands in.
        assert variable["multi"] is True
        labels = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert labels[2] == name
        assert {s.name for s, _ in selectors(labels[1])} <= known_series()


def test_traces_are_asked_of_a_store_that_can_be_chosen():
    """Where traces are shown; elsewhere links need its name alone, and the linter wants one choice."""
    for uid, board in COMMITTED.items():
        (store,) = [one for one in board["templating"]["list"] if one["name"] == "traces"]
        shown = uid == "streamgauge-query"
        assert store["type"] == ("datasource" if shown else "constant")
        assert store["query"] == "tempo"
        searches = [t for p in panels_of(board) for t in p.get("targets", []) if "expr" not in t]
        assert [one["queryType"] for one in searches] == ["traceql"] * shown
        assert all(one["query"].endswith("} with (most_recent=true)") for one in searches)


def test_trace_store_is_asked_only_when_a_person_opens_its_row():
    """Without one, an open panel would have a red badge; and an unfinished batch has no name, not a long text."""
    board = COMMITTED["streamgauge-query"]
    (row,) = [one for one in board["panels"] if one.get("collapsed")]
    (panel,) = row["panels"]
    assert panel["datasource"]["type"] == "tempo"
    first = panel["fieldConfig"]["overrides"][0]
    assert first["properties"] == [{"id": "noValue", "value": ""}]


def test_traces_of_a_query_without_a_name_are_found():
    """Panel and links ask for what its batches and starts say of it: the label; their names do not."""
    stage = Stage(name=None)
    stage.start()
    stage.batch()
    roots = [span for span in stage.spans() if span.parent is None]
    assert {span.name for span in roots} == {"batch", "start"}
    text = json.dumps([COMMITTED["streamgauge-fleet"], COMMITTED["streamgauge-query"]])
    asked = re.findall(r"(?:&& |\| \{)(span\.\S+?) ?=", text)
    assert len(asked) >= 4
    for name in asked:
        key = name.removeprefix("span.")
        assert {span.attributes.get(key) for span in roots} == {
            f"unnamed-{stage.life.query_id[:8]}"
        }, name


@pytest.mark.parametrize("board", COMMITTED.values(), ids=COMMITTED)
def test_every_variable_is_used(board):
    """A choice that changes nothing misleads."""
    text = json.dumps({"panels": board["panels"], "links": board["links"]})
    for name in ("datasource", "job", "app", "query"):
        assert f"${name}" in text or f"${{{name}" in text


@pytest.mark.parametrize("board", COMMITTED.values(), ids=COMMITTED)
def test_board_leads_to_the_others_with_all_that_was_chosen(board):
    """A menu by tag that keeps variables and time; not editable; the same crosshair.

    From the boards of many queries a link to each other one: without the query, where one is wanted.
    """
    (query,) = [one for one in board["templating"]["list"] if one["name"] == "query"]
    assert all(link["keepTime"] for link in board["links"])
    if query["includeAll"]:
        assert len(board["links"]) == len(COMMITTED) - 1
        assert {link["type"] for link in board["links"]} == {"link"}
        carried = [link["title"] for link in board["links"] if "query:queryparam" in link["url"]]
        assert set(carried) <= {"Fleet", "Agent"}
    else:
        (menu,) = board["links"]
        assert (menu["type"], menu["includeVars"]) == ("dashboards", True)
        assert set(menu["tags"]) <= set(board["tags"])
    assert board["editable"] is False
    assert board["title"].startswith("Streamgauge / ")
    assert board["graphTooltip"] == 1


@pytest.mark.parametrize("board", COMMITTED.values(), ids=COMMITTED)
def test_marks_are_starts_failures_replays_and_alerts(board):
    """Failures carry their class, starts their exact time."""
    marks = {mark["name"]: mark for mark in board["annotations"]["list"]}
    assert list(marks) == ["Starts", "Failures", "Replays", "Alerts"]
    assert marks["Starts"]["useValueForTime"] is True
    assert "error_class" in marks["Failures"]["textFormat"]
    # Of one step: Grafana joins marks of neighbouring steps into a region over the graph.
    assert all("offset $__interval" in marks[name]["expr"] for name in ("Failures", "Replays"))


def test_links_lead_somewhere():
    """To boards that there are, and with the time; two clicks from a red cell to trace and runbook."""
    for board in COMMITTED.values():
        text = json.dumps(board)
        for uid in re.findall(r"/d/([\w-]+)", text):
            assert uid in DASHBOARDS
        for url in re.findall(r"\"(/d/[^\"]+)\"", text):
            menu = url in {link.get("url") for link in board["links"]}
            assert menu or "${__url_time_range}" in url
            assert "${datasource:queryparam}" in url
    (table,) = [
        p
        for p in COMMITTED["streamgauge-fleet"]["panels"]
        if p["title"].startswith("Quer") and p["type"] == "table"
    ]
    verdict = next(
        o for o in table["fieldConfig"]["overrides"] if o["matcher"]["options"] == "^Verdict$"
    )
    (links,) = [p["value"] for p in verdict["properties"] if p["id"] == "links"]
    assert [link["url"].partition("?")[0] for link in links] == [
        "/d/streamgauge-query",
        "/explore",
        "${runbooks}/README.md",
    ]


def test_links_name_columns_and_labels_that_there_are():
    """`__data.fields` knows a table's columns by their titles, `__field.labels` a line's labels."""
    for board in COMMITTED.values():
        for panel in panels_of(board):
            text = json.dumps(panel)
            if panel["type"] == "row":
                continue
            if panel["type"] == "table" and "transformations" in panel:
                columns = set(panel["transformations"][1]["options"]["renameByName"].values())
                assert set(re.findall(r"__data\.fields\.(\w+)", text)) <= columns, panel["title"]
            else:
                assert "__data.fields" not in text
            assert set(re.findall(r"__field\.labels\.(\w+)", text)) <= {
                *("app", "query", "error_class", "alertname"),
            }


def test_alerts_link_to_a_board_that_speaks_of_them():
    """Whoever follows a page's link finds a panel that names the alert, there or on the query's board."""
    from streamgauge.grafana.alerts.catalogue import alerts

    words = {uid: json.dumps(board["panels"]) for uid, board in COMMITTED.items()}
    for alert in alerts():
        if not alert.full_name.endswith("Watchdog"):
            assert alert.full_name in words[alert.dashboard], (
                f"{alert.full_name} on {alert.dashboard}"
            )
