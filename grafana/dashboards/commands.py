"""`streamgauge dashboards export`: the committed files, as they are or with other data sources."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .provisioning import kubernetes_file, provisioning_files

if TYPE_CHECKING:
    import argparse

FINE, COULD_NOT_LOOK = 0, 2
_FILES = Path(__file__).with_name("files")
_TRACEQL_LINK = re.compile(
    r'"queryType":"traceql","query":"\{resource\.service\.name=\\"(.+?)\\"'
    r'\} \| \{span\.(spark\.streaming\.query\.label=\\".+?\\")\} with \(most_recent=true\)"'
)

_NO_RUNBOOKS = (
    "streamgauge dashboards: links to runbooks are relative paths, which Grafana can't open;"
    " --runbooks URL says where you serve docs/runbooks\n"
)
_JAEGER_TAGS = 'spark.streaming.query.label="$query"'  # of batches and starts alike


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `dashboards` to the command line; `run` of the parsed arguments gives the exit status."""
    parser = subparsers.add_parser("dashboards", help="the Grafana dashboards: export")
    actions = parser.add_subparsers(dest="action", required=True)
    exporter = actions.add_parser("export", help="write the dashboards into a folder")
    exporter.add_argument("directory", type=Path, metavar="DIR")
    add_choices(exporter)
    exporter.add_argument(
        "--format",
        choices=("json", "provisioning", "kubernetes"),
        default="json",
        help="the dashboards alone; with Grafana's provisioning files; or as ConfigMaps",
    )
    exporter.set_defaults(run=run_export)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Let the command line change what the dashboards point to."""
    parser.add_argument(
        "--datasource",
        metavar="NAME",
        help="name of the Prometheus data source that is chosen at first; else Grafana's default",
    )
    parser.add_argument("--traces", metavar="UID", help="uid of the trace data source")
    parser.add_argument(
        "--trace-store", choices=("tempo", "jaeger"), default="tempo", help="what that is"
    )
    parser.add_argument("--runbooks", metavar="URL", help="where the runbooks are served")


def chosen(args: argparse.Namespace) -> dict[str, str]:
    """Name and text of every dashboard, with what `add_choices` asked for."""
    return {path.name: _chosen(path, args) for path in sorted(_FILES.glob("dashboards/*.json"))}


def run_export(args: argparse.Namespace) -> int:
    """Write the files and name them."""
    boards = chosen(args)
    try:
        for path, text in _files(args.format, boards).items():
            place: Path = args.directory / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{place}\n")
        if not args.runbooks:
            sys.stderr.write(_NO_RUNBOOKS)
    except OSError as error:
        sys.stderr.write(f"streamgauge dashboards: {error}\n")
        return COULD_NOT_LOOK
    return FINE


def _files(form: str, boards: dict[str, str]) -> dict[str, str]:
    if form == "kubernetes":
        return {"streamgauge-dashboards.yml": kubernetes_file(boards)}
    if form == "provisioning":
        placed = {f"dashboards/{name}": text for name, text in boards.items()}
        return {**placed, **provisioning_files()}
    return boards


def _chosen(path: Path, args: argparse.Namespace) -> str:
    """A committed dashboard with the choices filled in."""
    board = json.loads(path.read_text("utf-8"))
    for variable in board["templating"]["list"]:
        if variable["name"] == "datasource" and args.datasource:
            _choose(variable, args.datasource)
        for name in ("traces", "runbooks"):
            if variable["name"] == name and getattr(args, name):
                _choose(variable, getattr(args, name).rstrip("/"))
    if args.trace_store == "jaeger":
        _ask_one_service(board)
        board = _for_jaeger(board)
    return text_of(board)


def _choose(variable: dict[str, Any], value: str) -> None:
    """A constant is its query; of a data source, the query is its type."""
    if variable["type"] == "constant":
        variable["query"] = value
    else:
        variable["current"] = {"text": value, "value": value}


def _ask_one_service(board: dict[str, Any]) -> None:
    """Jaeger knows no patterns: where a panel asks it, an application is chosen, and not all of them."""
    if any(panel.get("datasource", {}).get("type") == "tempo" for panel in board["panels"]):
        (app,) = (one for one in board["templating"]["list"] if one["name"] == "app")
        app["includeAll"] = False
        del app["allValue"]


def _for_jaeger(found: Any) -> Any:
    """The same tree with the searches of Jaeger, which knows services, operations and tags, no TraceQL."""
    if isinstance(found, list):
        return [_for_jaeger(one) for one in found]
    if isinstance(found, str):
        found = found.replace("&${app:queryparam}", "")  # it may be all, which a service can't be
        return _TRACEQL_LINK.sub(r'"queryType":"search","service":"\1","tags":"\2"', found)
    if not isinstance(found, dict):
        return found
    if found.get("queryType") == "traceql":
        search = {"queryType": "search", "service": "$app", "tags": _JAEGER_TAGS}
        found = {name: found[name] for name in ("refId", "datasource", "limit")} | search
    if found.get("type") == "tempo":
        found = {**found, "type": "jaeger"}
    if found.get("type") == "datasource" and found.get("query") == "tempo":
        found = {**found, "query": "jaeger"}
    return {name: _for_jaeger(one) for name, one in found.items()}


def text_of(board: dict[str, Any]) -> str:
    """The text of a dashboard's file."""
    return json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
