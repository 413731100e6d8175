"""Boards as Grafana's classic JSON, through Grafana's own builders. Needed to build, never to run.

The JSON says schema version 38, which is Grafana 10.0's; newer ones migrate what they load.
"""

from __future__ import annotations

import json
from typing import Any

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders import prometheus, tempo
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.tempo import SearchTableType

from streamgauge.grafana.alerts.settings import Settings

from .board import Board, Link, Override, Panel, Step, Target, places
from .catalogue import BOARDS
from .colours import GREY, NO_DATA
from .commands import text_of
from .links import menu_url
from .promql import ALERTS, FAILED, QUERY, best, moments, series
from .shapes import shape, start

SCHEMA = 38
# Of the panels' options. Without it Grafana takes them for ancient, and ends every bar in percent at 100 %.
PLUGIN_VERSION = "10.0.0"
TAG = "streamgauge"
DATASOURCE = common_model.DataSourceRef(type_val="prometheus", uid="${datasource}")
TRACES = common_model.DataSourceRef(type_val="tempo", uid="${traces}")


def render(board: Board) -> str:
    """The text of a board's JSON file; the same board gives the same text."""
    return text_of(tree(board))


def tree(board: Board) -> dict[str, Any]:
    """The board as plain data."""
    builder = (
        sdk.Dashboard(f"Streamgauge / {board.title}")
        .uid(board.uid)
        .description(board.about)
        .tags([TAG])
        .readonly()
        .refresh("30s")
        .time(board.since, "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .variables(_variables(board))
        .annotations(_annotations(board))
    )
    for link in _menu(board):
        builder = builder.link(link)
    builder = _add_all(builder, board)
    built = json.loads(json.dumps(builder.build(), cls=JSONEncoder))
    built["schemaVersion"] = SCHEMA
    _mend(built)
    return dict(built)


def _mend(built: dict[str, Any]) -> None:
    """What the builders can't say, or say without being asked."""
    for shown in (*built["annotations"]["list"], *built["links"]):
        del shown["placement"]  # Grafana 12.3 would hide them in a menu
    for variable in built["templating"]["list"]:
        for name in ("auto", "auto_count", "auto_min"):  # of interval variables
            del variable[name]
        if variable["type"] == "constant":
            variable["hide"] = 2
    for panel in panels_of(built):
        if panel["type"] != "row":
            panel["pluginVersion"] = PLUGIN_VERSION
        panel.get("options", {}).pop("footer", None)  # of older tables; newer ones don't know it
        defaults = panel.get("fieldConfig", {}).get("defaults", {})
        if panel["type"] == "table":
            defaults.setdefault("custom", {})["wrapHeaderText"] = True
        if "links" in defaults:  # the builder makes dashboard links of them
            defaults["links"] = [
                {name: link[name] for name in ("title", "url", "targetBlank")}
                for link in defaults["links"]
            ]


def panels_of(built: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows and panels of a board's tree, those of collapsed rows too."""
    return [one for panel in built["panels"] for one in (panel, *panel.get("panels", ()))]


def _add_all(builder: Any, board: Board) -> Any:
    """Rows and panels at their places; the panels of a collapsed row are inside it."""
    row: Any = None
    for number, (item, place) in enumerate(places(board), start=1):
        grid = model.GridPos(h=place.h, w=place.w, x=place.x, y=place.y)
        if isinstance(item, Panel):
            panel = _panel(item).id(number).grid_pos(grid)
            builder = builder.with_panel(panel) if row is None else builder
            if row is not None:
                row.with_panel(panel)
            continue
        builder = builder if row is None else builder.with_row(row)
        row = sdk.Row(item.title).id(number).grid_pos(grid)
        if not item.collapsed:
            builder, row = builder.with_row(row), None
    return builder if row is None else builder.with_row(row)


# ---- around the panels ----------------------------------------------------------------------


def _menu(board: Board) -> list[Any]:
    """Ways to the other boards, with all that was chosen where the other board can show it."""
    if not board.many:
        link = sdk.DashboardLink("Streamgauge").type(model.DashboardLinkType.DASHBOARDS)
        return [link.tags([TAG]).as_dropdown(True).include_vars(True).keep_time(True)]
    return [
        sdk.DashboardLink(other.title)
        .type(model.DashboardLinkType.LINK)
        .url(menu_url(other.uid, everything=other.many))
        .icon("dashboard")
        .keep_time(True)
        for other in BOARDS
        if other.uid != board.uid
    ]


def _variables(board: Board) -> list[Any]:
    settings = Settings()
    build_info, query_info = "streamgauge_build_info", "streamgauge_query_info"
    return [
        sdk.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        _labels("job", f"label_values({build_info}, job)"),
        _labels("app", f'label_values({build_info}{{job=~"$job"}}, app)'),
        _labels(
            "query",
            f'label_values({query_info}{{job=~"$job", app=~"$app"}}, query)',
            everything=board.many,
        ),
        _traces(board, str(settings.value("tempo_uid"))),
        _constant("runbooks", str(settings.value("runbook_url"))),
    ]


def _labels(name: str, query: str, *, everything: bool = True) -> Any:
    # Several may be chosen everywhere: only then does Grafana escape a name for its regular expression.
    variable = (
        sdk.QueryVariable(name)
        .label({"app": "Application"}.get(name, name.capitalize()))
        .datasource(DATASOURCE)
        .query({"query": query, "refId": name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(everything)
    )
    return variable.all_value(".+") if everything else variable


def _traces(board: Board, uid: str) -> Any:
    """The trace store: a choice where traces are shown, else a name for the links to it."""
    if not any(panel.kind == "traces" for panel in board.panels):
        return _constant("traces", uid)
    variable = sdk.DatasourceVariable("traces").label("Traces").type("tempo")
    return variable.current(model.VariableOption(text=uid, value=uid))


def _constant(name: str, value: str) -> Any:
    return sdk.ConstantVariable(name).value(value)


def _annotations(board: Board) -> list[Any]:
    # Of many queries at once, starts and replays would be a fence before the graphs.
    shown = {"Failures"} if board.many else {"Starts", "Failures", "Replays"}
    started = f"1000 * {best('max', 'query_started_timestamp_seconds')}"
    failed = moments(series("query_terminations_total", FAILED), f"{QUERY}, error_class")
    replayed = moments(series("batches_replayed_total"), QUERY)
    marks = [
        _annotation("Starts", "blue", started, "{{query}} started", "{{app}}").use_value_for_time(
            True
        ),
        _annotation("Failures", "red", failed, "{{query}} failed", "{{error_class}}"),
        _annotation(
            "Replays",
            "orange",
            replayed,
            "{{query}} replayed a batch",
            "{{app}}",
        ),
        _annotation("Alerts", "purple", ALERTS, "{{alertname}}", "{{severity}}: {{query}}"),
    ]
    return [mark.enable(mark.build().name in shown) for mark in marks]


def _annotation(name: str, colour: str, expr: str, title: str, text: str) -> Any:
    return (
        sdk.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .icon_color(colour)
        .expr(expr)
        .title_format(title)
        .text_format(text)
        .step("10s")
    )


# ---- panels ---------------------------------------------------------------------------------


def describe(panel: Panel) -> str:
    """What bad looks like, and the alerts that watch it."""
    names = ", ".join(f"SparkStream{name}" for name in panel.alerts)
    watched = f"Watched by {names}." if names else "No alert watches it."
    condition = f" Has data only when {panel.condition}." if panel.condition else ""
    absent = f" “No data” means: {panel.empty}" if panel.is_value or panel.is_timeline else ""
    return f"{panel.bad} {watched}{condition}{absent}"


def _panel(panel: Panel) -> Any:
    builder = (
        start(panel)
        .title(panel.title)
        .description(describe(panel))
        .datasource(TRACES if panel.kind == "traces" else DATASOURCE)
        .unit(panel.unit)
        .targets([_target(panel, number, target) for number, target in enumerate(panel.targets)])
    )
    if panel.is_timeline:  # its legend lists the mappings, and the text for what is missing
        fixed = sdk.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color(GREY)
        builder = builder.no_value(NO_DATA).color_scheme(fixed)
    elif not panel.is_value:
        builder = builder.no_value(panel.empty)
    if panel.name:
        builder = builder.display_name(panel.name)
    if panel.minimum is not None:
        builder = builder.min(panel.minimum)
    if panel.maximum is not None:
        builder = builder.max(panel.maximum)
    if panel.decimals is not None:
        builder = builder.decimals(panel.decimals)
    if panel.steps:
        builder = builder.thresholds(_thresholds(panel.steps))
    if panel.mappings or panel.is_value:
        builder = builder.mappings(_mappings(panel.mappings, absent=panel.is_value))
    if panel.links:
        builder = builder.data_links([_link(link) for link in panel.links])
    builder = shape(builder, panel)
    if panel.kind in {
        "table",
        "traces",
    }:  # Grafana would write the panel's text into every empty cell
        blank = model.DynamicConfigValue(id_val="noValue", value="")
        builder = builder.override_by_regexp(".*", [blank])
    for override in panel.overrides:
        builder = builder.override_by_regexp(override.pattern, _properties(override))
    return builder


def _target(panel: Panel, number: int, target: Target) -> Any:
    if panel.kind == "traces":
        search = tempo.Dataquery().ref_id("A").datasource(TRACES).query_type("traceql")
        return search.query(target.expr).limit(20).table_type(SearchTableType.TRACES)
    query = (
        prometheus.Dataquery()
        .ref_id(chr(ord("A") + number))
        .datasource(DATASOURCE)
        .expr(target.expr)
        .legend_format(target.legend or "__auto")
        .exemplar(target.exemplar)
    )
    query = query.instant() if target.instant else query.range()
    if panel.kind == "table":
        return query.format(PromQueryFormat.TABLE)
    if panel.kind == "heatmap":
        return query.format(PromQueryFormat.HEATMAP)
    return query.format(PromQueryFormat.TIME_SERIES)


def _thresholds(steps: tuple[Step, ...]) -> Any:
    return (
        sdk.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=colour) for value, colour in steps])
    )


def _mappings(texts: dict[str, tuple[str, str]], *, absent: bool = False) -> list[Any]:
    """Words for values; with `absent`, grey for none at all, which else has the colour of the best."""
    options = {
        value: model.ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(texts.items())
    }
    found: list[Any] = [model.ValueMap(options=options)] if options else []
    if absent:
        nothing = model.ValueMappingResult(text=NO_DATA, color=GREY, index=len(options))
        match = model.SpecialValueMatch.NULL_AND_NAN
        special = model.DashboardSpecialValueMapOptions(match=match, result=nothing)
        found.append(model.SpecialValueMap(options=special))
    return found


_CELLS = {
    "color-background": {"type": "color-background", "mode": "basic"},
    "color-text": {"type": "color-text"},
    "wrapped": {"type": "auto", "wrapText": True},
}


def _link(link: Link) -> Any:
    return sdk.DashboardLink(link.title).url(link.url).target_blank(False)


def _data_link(link: Link) -> dict[str, Any]:
    return {"title": link.title, "url": link.url, "targetBlank": False}


def _properties(override: Override) -> list[Any]:
    return [_property(name, value) for name, value in override.properties]


def _property(name: str, value: Any) -> Any:
    if name == "thresholds":
        value = _thresholds(value).build()
    elif name == "mappings":
        value = _mappings(value)
    elif name == "links":
        value = [_data_link(link) for link in value]
    elif name == "color":
        value = {"mode": "fixed", "fixedColor": value}
    elif name == "cell":
        name, value = "custom.cellOptions", _CELLS[value]
    return model.DynamicConfigValue(id_val=name, value=value)
