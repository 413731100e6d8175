"""The dashboards by Grafana's own code from npm, over the series of a real recording."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import parse_qs, urlsplit

import pytest
from grafana_code import faults, reads_as, report, wrong_text
from preview import Preview, panels_of, read_boards
from recorded_series import RATE_INTERVAL, serve
from stage import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BOARDS = read_boards()
ONE_QUERY = {
    uid
    for uid, board in BOARDS.items()
    for one in board["templating"]["list"]
    if one["name"] == "query" and not one["includeAll"]
}
ODD = "orders by day (ü)"  # a name that a URL has to escape
SHOP = {"job": "spark", "app": "shop", "instance": "127.0.0.1:1"}
# A query with an odd name, far slower than last week.
MORE = (
    ({"__name__": "query:streamgauge_batch_duration:mean15m", **SHOP, "query": ODD}, 9),
    ({"__name__": "query:streamgauge_batch_duration:avg1w", **SHOP, "query": ODD}, 1),
    ({"__name__": "streamgauge_query_state", **SHOP, "query": ODD, "state": "stalled"}, 1),
    ({"__name__": "streamgauge_query_info", **SHOP, "query": ODD, "run_id": "r"}, 1),
)


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """A Prometheus with the recorded series."""
    with serve(tmp_path_factory.mktemp("series"), MORE) as running:
        yield running


def made_of(series, tmp_path_factory, queries=None):
    """What Grafana's code makes of all boards."""
    assert shutil.which("node"), "node is not here; `apt-get install nodejs` brings it"
    times = (series.begin, series.end)
    preview = Preview(series.prometheus.url, *times, rate_interval=RATE_INTERVAL)
    return report(preview, tmp_path_factory.mktemp("report"), queries)


@pytest.fixture(scope="module")
def found(series, tmp_path_factory):
    """With everything chosen, also where one query is wanted, as a literal `$__all` does."""
    return made_of(series, tmp_path_factory)


@pytest.fixture(scope="module")
def found_for_one(series, tmp_path_factory):
    """With one query chosen on the boards that want one."""
    return made_of(series, tmp_path_factory, dict.fromkeys(ONE_QUERY, "clicks"))


def panel_of(found, board, title):
    """What was made of one panel."""
    (panel,) = [
        one
        for one in found["panels"]
        if (one["board"], one["title"]) == (f"streamgauge-{board}", title)
    ]
    return panel


# ---- panels --------------------------------------------------------------------------------


def test_every_panel_was_looked_at(found):
    """All that ask Prometheus."""
    asked = [
        panel["title"]
        for board in BOARDS.values()
        for panel in panels_of(board)
        if panel["type"] != "row" and panel["datasource"]["type"] == "prometheus"
    ]
    assert len(found["panels"]) == len(asked) > 95


def test_nothing_is_wrong_with_any_panel(found):
    """Overrides meet something; absent is grey; rows merge; texts are those of units and mappings."""
    assert faults(found) == []


def test_one_query_shows_nothing_wrong_either(found_for_one):
    """Overrides aside: one query has not all there is."""
    assert [one for one in faults(found_for_one) if " override " not in one] == []


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("3.24 mins", "s", 200.0),
        ("12%", "percentunit", 0.5),
        ("2 K", "short", 12.0),
        ("", "s", 1.0),
    ],
)
def test_wrong_text_is_seen(text, unit, value):
    """The check of the texts can fail."""
    assert not reads_as(text, unit, value)


def test_wrong_word_is_seen():
    """The check of the mappings can fail."""
    words = {"1": {"text": "stale", "color": "#e02f44"}}
    one = {"value": 1, "text": "1", "color": "#56a64b", "words": words, "unit": "short"}
    assert wrong_text(one)
    assert not wrong_text({**one, "text": "stale", "color": "#e02f44"})


def test_fleet_has_one_line_for_each_query(found):
    """Nineteen of the recording and the odd one; each with a verdict."""
    rows = panel_of(found, "fleet", "Queries, worst first")["rows"]
    names = [row["Query"]["value"] for row in rows]
    assert len(names) == len(set(names)) == 20
    verdicts = {row["Query"]["value"]: row["Verdict"]["text"] for row in rows}
    assert (verdicts["ledger"], verdicts["exports"]) == ("vanished", "failed")
    assert verdicts[ODD] == "stalled"


def test_vanished_query_is_called_so_on_its_board(series, tmp_path_factory):
    """The agent can't say it any more; Prometheus can. Everything else is grey."""
    found = made_of(series, tmp_path_factory, dict.fromkeys(ONE_QUERY, "ledger"))
    (verdict,) = panel_of(found, "query", "Verdict")["values"]
    assert (verdict["text"], verdict["title"]) == ("vanished", "ledger")
    (batch,) = panel_of(found, "query", "Current batch")["values"]
    assert (batch["text"], batch["color"]) == ("no data", "#6e7681")


def test_stats_of_several_queries_show_the_worst_and_its_name(found):
    """One value that can be read, and not twenty."""
    for title in ("Verdict", "Silence vs. budget", "Current batch", "Data available"):
        (value,) = panel_of(found, "query", title)["values"]
        assert value["title"]
    assert panel_of(found, "query", "Verdict")["values"][0]["text"] == "vanished"


def test_reason_and_failure_are_one_line(found):
    """The verdict's reason and the exception of the same query; a stalled one has no exception."""
    rows = panel_of(found, "query", "Reason")["rows"]
    shown = {row["Query"]["text"]: row for row in rows}
    assert set(shown) == {"clicks", "exports", "invoices", "refunds", "scans"}
    assert len(rows) == len(shown)
    assert shown["exports"]["Message"]["text"] == "the sink refuses"
    assert "caused by RuntimeError" in shown["exports"]["Reason"]["text"]
    assert shown["clicks"]["Reason"]["text"].endswith("tasks run, none finishes")
    assert shown["clicks"]["Message"]["text"] == ""


def test_single_failure_is_named_by_its_class(found):
    """Grafana leaves out the name of a single bar, unless it is a display name of its own."""
    bars = panel_of(found, "query", "Failures by error class")["values"]
    assert bars
    assert all(bar["title"] for bar in bars)
    (panel,) = [p for p in panels_of(BOARDS["streamgauge-query"]) if p["title"].startswith("Failu")]
    assert panel["fieldConfig"]["defaults"]["displayName"] == "${__field.labels.error_class}"


@pytest.mark.parametrize(
    "title", ["Freshness vs. target: the ten worst", "Slower than last week: the ten worst"]
)
def test_bars_reach_to_the_largest_value(found, title):
    """Grafana gives panels without a version a maximum of 100 % when it loads them."""
    bars = panel_of(found, "fleet", title)["values"]
    largest = max(bar["value"] for bar in bars)
    assert largest > 1
    assert {bar["max"] for bar in bars} == {largest}
    for board in BOARDS.values():
        for panel in panels_of(board):
            assert panel["type"] == "row" or int(panel["pluginVersion"].partition(".")[0]) >= 8


def test_variants_of_an_alert_are_counted_once(found):
    """As many as the list has lines."""
    rows = panel_of(found, "fleet", "Firing alerts")["rows"]
    critical = [row for row in rows if row["Severity"]["value"] == "critical"]
    (count,) = panel_of(found, "fleet", "Critical alerts now")["values"]
    assert count["value"] == len(critical)


# ---- links ---------------------------------------------------------------------------------


def links(*reports):
    """Every link of every panel, and the panel."""
    return [
        (panel, link) for found in reports for panel in found["panels"] for link in panel["links"]
    ]


def of_row(link, label, column):
    """What the line or the row of a link is about."""
    return link["labels"].get(label) or link["row"].get(column)


def test_links_to_a_board_lead_to_the_query_of_their_line(found, found_for_one):
    """With the application, the time, and nothing that was not filled in."""
    seen = set()
    for panel, link in links(found, found_for_one):
        url = urlsplit(link["href"])
        if not url.path.startswith("/d/") or not of_row(link, "query", "Query"):
            continue
        uid, asked = url.path.removeprefix("/d/"), parse_qs(url.query)
        assert uid in BOARDS
        assert asked["var-query"] == [of_row(link, "query", "Query")], panel["title"]
        assert asked["var-app"] == [of_row(link, "app", "Application")], panel["title"]
        assert asked["from"]
        assert asked["to"]
        assert asked["var-datasource"] == ["prometheus"]
        assert "$" not in link["href"].replace("%24", "$").replace("var-job=$__all", "")
        seen.add(asked["var-query"][0])
    assert {ODD, "ledger", "clicks"} <= seen


def test_links_to_traces_search_for_the_query_of_their_line(found, found_for_one):
    """One query by its name, the newest first, in the trace store and the time of the board."""
    seen = set()
    for panel, link in links(found, found_for_one):
        if not link["href"].startswith("/explore"):
            continue
        left = json.loads(parse_qs(urlsplit(link["href"]).query)["left"][0])
        ((search,),) = [left["queries"]]
        app, query = re.findall(r'="(.*?)"', search["query"])
        assert query == of_row(link, "query", "Query"), panel["title"]
        assert app == of_row(link, "app", "Application"), panel["title"]
        assert search["query"].endswith("} with (most_recent=true)")
        assert (left["datasource"], search["queryType"]) == ("tempo", "traceql")
        assert all(value.isdigit() for value in left["range"].values())
        seen.add((panel["board"], panel["title"]))
    assert {title for _, title in seen} >= {
        *("Queries, worst first", "Verdict", "Query details", "Reason"),
        "Batch time: typical, slow, longest",
    }


def test_links_to_runbooks_lead_to_pages_that_there_are(found):
    """Below the address that was given; each alert to its own."""
    urls = {link["href"] for _, link in links(found) if "runbooks" in link["href"]}
    pages = {url.removeprefix("https://wiki/runbooks/") for url in urls}
    assert "README.md" in pages
    assert len(pages) > 5
    for page in pages:
        assert (ROOT / "docs" / "runbooks" / page).exists(), page


def test_every_link_is_one_of_these(found):
    """No other kind goes unchecked."""
    starts = ("/d/", "/explore?left=", "https://wiki/runbooks/")
    assert all(link["href"].startswith(starts) for _, link in links(found))


def test_menu_leads_to_every_other_board(found, found_for_one):
    """With time and choices; `All` never goes to a board that wants one query."""
    for menus, one in ((found["menus"], None), (found_for_one["menus"], "clicks")):
        for uid, entries in menus.items():
            targets = {}
            for entry in entries:
                url = urlsplit(entry["href"])
                targets[url.path.removeprefix("/d/")] = parse_qs(url.query)
            assert set(targets) | {uid} == set(BOARDS)
            for target, asked in targets.items():
                assert asked["from"]
                assert asked["to"]
                assert asked["var-app"] == ["All"]
                if uid not in ONE_QUERY and target in ONE_QUERY:
                    assert "var-query" not in asked
                elif one and uid in ONE_QUERY:
                    assert asked["var-query"] == [one]
