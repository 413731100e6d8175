"""What each kind of panel adds to what all of them have, through Grafana's own builders."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    heatmap,
    stat,
    statetimeline,
    statushistory,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model

from .board import Panel

_ROOM_ABOVE_LINE = 1.1  # a line that must not be crossed is in sight, however far below it all is
# The least that an axis from 0 reaches up to: Grafana draws zeros alone on an axis up to 100.
_LEAST = {"percentunit": 0.01, "s": 0.001}
_TEXT_PIXELS = 14  # of bars: Grafana makes the text of a few bars huge
_NARROWEST = 70  # pixels of a column; Grafana's own 150 push half of a wide table out of sight


def start(panel: Panel) -> Any:
    """A builder of the panel's kind."""
    return _KINDS[panel.kind][0]()


def shape(builder: Any, panel: Panel) -> Any:
    """The builder with what its kind needs."""
    return _KINDS[panel.kind][1](builder, panel)


def _legend(shown: bool) -> Any:
    legend = common.VizLegendOptions().placement(common_model.LegendPlacement.BOTTOM)
    return legend.display_mode(common_model.LegendDisplayMode.LIST).show_legend(shown)


def _tooltip() -> Any:
    return (
        common.VizTooltipOptions()
        .mode(common_model.TooltipDisplayMode.MULTI)
        .sort(common_model.SortOrder.DESCENDING)
    )


def _reduce() -> Any:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False)


def _timeseries(builder: Any, panel: Panel) -> Any:
    builder = (
        builder.legend(_legend(panel.legend != "none"))
        .tooltip(_tooltip())
        .draw_style(common_model.GraphDrawStyle.LINE)
        .line_interpolation(common_model.LineInterpolation.LINEAR)
        .line_width(1)
        .fill_opacity(panel.fill)
        .show_points(common_model.VisibilityMode.NEVER)
        .axis_label(panel.axis)
        .span_nulls(False)
    )
    if panel.stack:
        builder = builder.stacking(
            common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A")
        )
    if panel.log:
        scale = common.ScaleDistributionConfig().type(common_model.ScaleDistribution.LOG)
        builder = builder.scale_distribution(scale.log(panel.log))
    if panel.line:
        style = common.GraphThresholdsStyleConfig()
        builder = builder.thresholds_style(style.mode(common_model.GraphThresholdsStyleMode.DASHED))
        highest = max(value for value, _ in panel.steps if value is not None)
        builder = builder.axis_soft_max(round(_ROOM_ABOVE_LINE * highest, 6))
    elif panel.minimum == 0 and panel.maximum is None:
        builder = builder.axis_soft_max(_LEAST.get(panel.unit, 1))
    return builder


def _stat(builder: Any, panel: Panel) -> Any:
    return (
        builder.reduce_options(_reduce())
        .graph_mode(common_model.BigValueGraphMode.NONE)
        .color_mode(common_model.BigValueColorMode.BACKGROUND)
        .justify_mode(common_model.BigValueJustifyMode.CENTER)
        .orientation(common_model.VizOrientation.VERTICAL)
        .text_mode(
            common_model.BigValueTextMode.VALUE
            if len(panel.targets) == 1 and "{{" not in panel.targets[0].legend
            else common_model.BigValueTextMode.VALUE_AND_NAME
        )
    )


def _bargauge(builder: Any, _: Panel) -> Any:
    return (
        builder.reduce_options(_reduce())
        .orientation(common_model.VizOrientation.HORIZONTAL)
        .display_mode(common_model.BarGaugeDisplayMode.BASIC)
        .text(common.VizTextDisplayOptions().title_size(_TEXT_PIXELS).value_size(_TEXT_PIXELS))
        .show_unfilled(True)
    )


def _history(builder: Any, _: Panel) -> Any:
    return (
        builder.legend(_legend(shown=True))
        .tooltip(common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.SINGLE))
        .show_value(common_model.VisibilityMode.NEVER)
        .row_height(0.85)
        .fill_opacity(85)
    )


def _timeline(builder: Any, panel: Panel) -> Any:
    return _history(builder, panel).line_width(0).merge_values(True).per_page(25)


def _heatmap(builder: Any, panel: Panel) -> Any:
    return (
        builder.calculate(False)
        .cell_gap(1)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_model.HeatmapColorMode.SCHEME)
            .scheme("Blues")
            .reverse(False)
            .steps(64)
        )
        .exemplars_color("#ff9830")
        .cell_values(heatmap.CellValues().unit("short").decimals(0))  # batches, not seconds
        .y_axis(
            heatmap.YAxisConfig().unit(panel.unit).axis_placement(common_model.AxisPlacement.LEFT)
        )
        .tooltip(heatmap.HeatmapTooltip().mode(common_model.TooltipDisplayMode.SINGLE))
        .show_legend()
    )


def _table(builder: Any, panel: Panel) -> Any:
    names = dict(zip(_fields(panel), panel.columns, strict=True))
    hidden = dict.fromkeys(("Time",), True)
    hidden |= {field: True for field, title in names.items() if not title}
    builder = (
        builder.show_header(True)
        .cell_height(common_model.TableCellHeight.SM)
        .min_width(_NARROWEST)
        .with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            model.DataTransformerConfig(
                id_val="organize",
                options={
                    "excludeByName": hidden,
                    "indexByName": {field: index for index, field in enumerate(names)},
                    "renameByName": {field: title for field, title in names.items() if title},
                },
            )
        )
    )
    return builder.sort_by([_order(column) for column in panel.sort])


def _order(column: str) -> Any:
    order = common.TableSortByFieldState().display_name(column.lstrip("-"))
    return order.desc(not column.startswith("-"))


def _traces(builder: Any, _: Panel) -> Any:
    return builder.show_header(True).cell_height(common_model.TableCellHeight.SM)


def _fields(panel: Panel) -> list[str]:
    """Names of a table's fields as Grafana makes them: the labels, then one value a target."""
    exprs = " ".join(target.expr for target in panel.targets)
    labels = panel.columns[: len(panel.columns) - len(panel.targets)]
    known = {
        "Job": "job", "Application": "app", "Query": "query", "Alert": "alertname",
        "Severity": "severity", "Instance": "instance", "Agent": "version",
        "Spark": "spark_version", "Trigger": "trigger", "Sink": "sink", "Mode": "output_mode",
        "State store": "state_provider", "Code": "code_version", "Team": "team", "Env": "env",
        "Tier": "tier", "Run": "run_id", "Checkpoint": "checkpoint", "Rule": "rule",
        "Phase": "phase", "State": "state", "Reason": "reason", "Error class": "error_class",
        "Cause": "cause_class", "Message": "message",
    }  # fmt: skip
    for label in labels:
        if known[label] not in exprs:
            raise KeyError(f"{panel.title}: no label {known[label]} in {exprs}")
    values = (
        ["Value"]
        if len(panel.targets) == 1
        else [f"Value #{chr(ord('A') + number)}" for number in range(len(panel.targets))]
    )
    return [known[label] for label in labels] + values


_KINDS: dict[str, tuple[Any, Any]] = {
    "bargauge": (bargauge.Panel, _bargauge),
    "heatmap": (heatmap.Panel, _heatmap),
    "stat": (stat.Panel, _stat),
    "state-timeline": (statetimeline.Panel, _timeline),
    "status-history": (statushistory.Panel, _history),
    "table": (table.Panel, _table),
    "timeseries": (timeseries.Panel, _timeseries),
    "traces": (table.Panel, _traces),
}
