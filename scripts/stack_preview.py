"""The dashboards' preview as a web page, in Grafana's place: http://localhost:3000, at Grafana's paths.

Each load asks the running Prometheus anew, for the last half hour. The links in alerts lead here too.
"""

from __future__ import annotations

import html
import json
import sys
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "grafana" / "preview"))
from preview import Preview, PreviewError, read_boards

PORT = 3000
PROMETHEUS = "http://127.0.0.1:9090"
JAEGER = "http://127.0.0.1:16686"
RANGE = 1800  # seconds
RATE_INTERVAL = 60  # as Grafana has it: four times the interval of scrapes
_STYLE = "font:13px sans-serif;padding:8px 12px;background:#181b1f;color:#ccccdc"


def draw(uid: str, given: dict[str, str]) -> str:
    """The page of one board, as of now."""
    boards = read_boards()
    variables = {
        name.removeprefix("var-"): value
        for name, value in given.items()
        if name.startswith("var-") and value and value != "$__all"
    }
    now = time.time()
    preview = Preview(PROMETHEUS, now - RANGE, now, rate_interval=RATE_INTERVAL)
    preview.spans = read_spans(variables.get("app", "shop"))
    page = preview.page(boards[uid], variables)
    return page.replace("<body>", f"<body>{_links(boards, given)}", 1)


def read_spans(service: str) -> list[dict[str, Any]]:
    """The root spans of a service that Jaeger has of the last half hour; none if it does not answer."""
    asked = urllib.parse.urlencode({"service": service, "limit": 200, "lookback": f"{RANGE}s"})
    try:
        with urllib.request.urlopen(f"{JAEGER}/api/traces?{asked}", timeout=10) as answer:  # noqa: S310 - loopback
            found = json.load(answer)["data"]
    except OSError:
        return []
    return [
        {
            "service": trace["processes"][span["processID"]]["serviceName"],
            "query": next(
                tag["value"] for tag in span["tags"] if tag["key"] == "spark.streaming.query.label"
            ),
            "name": span["operationName"],
            "trace": span["traceID"],
            "start": span["startTime"] / 1e6,
            "seconds": span["duration"] / 1e6,
        }
        for trace in found
        for span in trace["spans"]
        if not any(one["refType"] == "CHILD_OF" for one in span["references"])
    ]


def _links(boards: dict[str, Any], given: dict[str, str]) -> str:
    """A line that leads from board to board with the same choice."""
    choice = html.escape(urllib.parse.urlencode(given))
    rows = (
        f'<a style="color:#6e9fff" href="/d/{uid}?{choice}">{html.escape(board["title"])}</a>'
        for uid, board in boards.items()
    )
    return f'<nav style="{_STYLE}">A preview, not Grafana: {" · ".join(rows)}</nav>'


class Page(BaseHTTPRequestHandler):
    """Answers at Grafana's paths: `/dashboards` and `/d/<uid>`."""

    def do_GET(self) -> None:
        """A list, or a board drawn anew."""
        asked = urllib.parse.urlsplit(self.path)
        given = dict(urllib.parse.parse_qsl(asked.query))
        match asked.path.strip("/").split("/"):
            case [""] | ["dashboards"]:
                self._tell(200, "Dashboards")
            case ["d", uid, *_] if uid in read_boards():
                self._draw(uid, given)
            case _:
                self._tell(404, "There is no such page here.")

    def _draw(self, uid: str, given: dict[str, str]) -> None:
        try:
            page = draw(uid, given)
        except (PreviewError, OSError) as error:
            self._tell(502, f"It could not be drawn: {error}")
        else:
            self._answer(200, page)

    def _tell(self, status: int, words: str) -> None:
        head = "<!doctype html><meta charset=utf-8><title>Dashboards</title>"
        self._answer(status, f"{head}{_links(read_boards(), {})}<p>{html.escape(words)}")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Requests are not news."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Page).serve_forever()
