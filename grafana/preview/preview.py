"""A preview of the dashboards where there is no Grafana: their own JSON, a real Prometheus' answers.

    python grafana/preview/preview.py URL BEGIN END FOLDER [VARIABLE=VALUE …]

writes a page for each dashboard. It fills in Grafana's variables, asks what each panel asks, and draws the
panels at their places with uPlot, which Grafana draws with too. Texts, colours, names and columns are made by
Grafana's own library, from npm; where things stand and how they are drawn is ours. Traces are drawn from a file of spans, if one is given. A development tool:
it is no part of the wheel.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BOARDS = HERE.parent / "dashboards" / "files" / "dashboards"
PACKAGES = HERE / "node_modules"
POINTS = 120
MINUTE = 60
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?::\w+)?\}")


class PreviewError(Exception):
    """A panel's query failed, or something is not here; says which and what to do."""


class Preview:
    """One look at a Prometheus: where it is, and from when to when."""

    def __init__(
        self,
        url: str,
        begin: float,
        end: float,
        *,
        rate_interval: float = 20,
        time_scale: float = 1,
        spans: Path | None = None,
    ) -> None:
        """With `time_scale`, limits in seconds are those of rules that ran so much faster."""
        self.url, self.begin, self.end, self.time_scale = url, begin, end, time_scale
        self.spans = list(read_spans(spans)) if spans else []
        self.step = max(1, round((end - begin) / POINTS))
        self._own = {
            "__rate_interval": f"{rate_interval:g}s",
            "__interval": f"{self.step}s",
            "__range": f"{end - begin:.0f}s",
        }

    def fill(self, expr: str, variables: dict[str, str]) -> str:
        """The expression as Grafana sends it; a variable that is not given matches everything."""
        known = {**self._own, **variables}
        return _VARIABLE.sub(lambda match: known.get(match[1] or match[2], ".+"), expr)

    def get(self, path: str, **parameters: object) -> Any:
        """The data of an answer of Prometheus' API."""
        text = urllib.parse.urlencode({name: str(value) for name, value in parameters.items()})
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", text.encode())  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - a person's own URL
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            words = json.load(error).get("error", str(error))
            raise PreviewError(f"{parameters.get('query')}: {words}") from error

    def answer(self, target: dict[str, Any], variables: dict[str, str]) -> Any:
        """What Prometheus says to one query of a panel."""
        expr = self.fill(target["expr"], variables)
        if target["instant"]:
            return self.get("query", query=expr, time=self.end)
        times = {"start": self.begin, "end": self.end, "step": self.step}
        return self.get("query_range", query=expr, **times)

    def exemplars(self, target: dict[str, Any], variables: dict[str, str]) -> list[dict[str, Any]]:
        """Dots for a panel that wants them, at most one in a step."""
        if not target.get("exemplar"):
            return []
        expr = self.fill(target["expr"], variables)
        found = self.get("query_exemplars", query=expr, start=self.begin, end=self.end)
        dots: dict[int, dict[str, Any]] = {}
        for series in found:
            for one in series["exemplars"]:
                at = float(one["timestamp"])
                dots[int(at / self.step)] = {"time": at, "value": float(one["value"])}
        return list(dots.values())

    def traces(self, panel: dict[str, Any], variables: dict[str, str]) -> list[dict[str, Any]]:
        """The spans that a search of a trace store names by its two patterns, the newest first."""
        (search,) = panel["targets"]
        service, query = re.findall("`(.+?)`", self.fill(search["query"], variables))
        found = [
            span
            for span in self.spans
            if re.fullmatch(service, span["service"])
            and re.fullmatch(query, span["query"])
            and self.begin <= span["start"] <= self.end
        ]
        return sorted(found, key=lambda span: -span["start"])[: search["limit"]]

    def marks(self, board: dict[str, Any], variables: dict[str, str]) -> list[dict[str, Any]]:
        """Annotations that are on: when, and their colour."""
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for mark in board["annotations"]["list"]:
            if not mark["enable"]:
                continue
            for one in self.answer({**mark, "instant": False}, variables)["result"]:
                times = one["values"]
                if mark.get("useValueForTime"):
                    moments = {float(value) / 1000 for _, value in times}
                else:
                    moments = {float(times[0][0])}
                for at in moments:
                    if self.begin <= at <= self.end:
                        colour = {"blue": "#5794f2", "red": "#e02f44"}.get(
                            mark["iconColor"], "#ff9830"
                        )
                        found[mark["name"], int(at)] = {"time": at, "colour": colour}
        return list(found.values())

    def page(self, board: dict[str, Any], variables: dict[str, str]) -> str:
        """The whole page of a board: it needs no other file and no server."""
        board["panels"] = panels_of(board)  # what is closed is drawn as if it were open
        for panel in board["panels"]:
            _scale_limits(panel, self.time_scale)
        panels = [panel for panel in board["panels"] if _asks_prometheus(panel)]
        data = {
            "board": board,
            "begin": self.begin,
            "end": self.end,
            "step": self.step,
            "variables": {name: variables.get(name, "All") for name in ("job", "app", "query")},
            "answers": {
                panel["id"]: [self.answer(target, variables) for target in panel["targets"]]
                for panel in panels
            },
            "exemplars": {
                panel["id"]: [
                    dot for target in panel["targets"] for dot in self.exemplars(target, variables)
                ]
                for panel in panels
            },
            "traces": {
                panel["id"]: self.traces(panel, variables)
                for panel in board["panels"]
                if panel["type"] != "row" and not _asks_prometheus(panel)
            },
            "marks": self.marks(board, variables),
            "faults": [],
        }
        return _html(data)


def read_spans(path: Path) -> Iterator[dict[str, Any]]:
    """Service, query, name, trace, start and length of each root span in a file of OTLP JSON lines."""
    for line in path.read_text(encoding="utf-8").splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            service = _attribute(resource["resource"], "service.name")
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                if not span.get("parentSpanId"):
                    start, end = (
                        int(span[f"{side}TimeUnixNano"]) / 1e9 for side in ("start", "end")
                    )
                    yield {
                        "service": service,
                        "query": _attribute(span, "spark.streaming.query.label"),
                        "name": span["name"],
                        "trace": span["traceId"],
                        "start": start,
                        "seconds": end - start,
                    }


def _attribute(found: dict[str, Any], key: str) -> str:
    """A text among the attributes of a span or resource."""
    (value,) = (one["value"]["stringValue"] for one in found["attributes"] if one["key"] == key)
    return str(value)


def panels_of(board: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows and panels, those of collapsed rows too."""
    return [one for panel in board["panels"] for one in (panel, *panel.get("panels", ()))]


def _asks_prometheus(panel: dict[str, Any]) -> bool:
    """Rows ask nothing, and what asks a trace store is drawn from a file of spans."""
    return bool(panel["type"] != "row" and panel["datasource"]["type"] == "prometheus")


def _scale_limits(panel: dict[str, Any], by: float) -> None:
    """Multiply the limits of what takes a minute or more, those of a table's columns too.

    A commit takes as long as the disk needs, however fast the rules run.
    """
    config = panel.get("fieldConfig", {"defaults": {}, "overrides": []})
    fields = [config["defaults"]]
    fields += [{one["id"]: one["value"] for one in o["properties"]} for o in config["overrides"]]
    for field in fields:
        if field.get("unit") == "s":
            limits = [(step, "value") for step in field.get("thresholds", {}).get("steps", [])]
            for place, name in (*limits, (field.get("custom", {}), "axisSoftMax")):
                if (place.get(name) or 0) >= MINUTE:
                    place[name] *= by


@cache
def bundle(script: Path, *options: str) -> str:
    """A script and all that it imports, as one text."""
    program = PACKAGES / ".bin" / "esbuild"
    if not program.exists():
        raise PreviewError(
            "Grafana's library is not here; `npm ci --ignore-scripts` in grafana/preview brings it"
        )
    command = [str(program), str(script), "--bundle", "--log-level=error", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=HERE)
    if done.returncode:
        raise PreviewError(done.stderr)
    return done.stdout


def _html(data: dict[str, Any]) -> str:
    script = bundle(HERE / "page.js", "--format=iife", "--minify").replace("</", "<\\/")
    styles = [(PACKAGES / "uplot/dist/uPlot.min.css").read_text(), (HERE / "page.css").read_text()]
    held = json.dumps(data).replace("</", "<\\/")
    return "\n".join(
        [
            '<!doctype html><html><head><meta charset="utf-8">',
            *(f"<style>{style}</style>" for style in styles),
            "</head><body>",
            f"<script>const DATA = {held};</script>",
            f"<script>{script}</script>",
            "</body></html>",
        ]
    )


def read_boards() -> dict[str, dict[str, Any]]:
    """The committed dashboards by uid."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(BOARDS.glob("*.json"))}


def main(arguments: list[str]) -> int:
    """Write a page for each dashboard, with the variables that were given."""
    url, begin, end, folder, *given = arguments
    variables = dict(pair.split("=", 1) for pair in given)
    preview = Preview(url, float(begin), float(end))
    Path(folder).mkdir(parents=True, exist_ok=True)
    for uid, board in read_boards().items():
        place = Path(folder) / f"{uid}.html"
        place.write_text(preview.page(board, variables), encoding="utf-8")
        sys.stdout.write(f"{place}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
