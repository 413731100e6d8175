"""Stands for the pager: shows what Alertmanager sends, in its log and on a page.

python pager.py [HOST:PORT]      127.0.0.1:9099 unless named; PATHs are the receivers' (/page, /ticket, /deadman)
"""

from __future__ import annotations

import html
import json
import sys
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEPT = 200
_PAGE = """<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=5><title>Pager</title>
<style>body{{font:16px system-ui;margin:2rem}}td{{padding:.2rem 1rem .2rem 0}}</style>
<h1>Pager</h1><table>{rows}</table>"""


class Pager(ThreadingHTTPServer):
    """Keeps the last lines, the newest first."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__((host, port), Handler)
        self.lines: deque[tuple[str, str, str, str, str]] = deque(maxlen=KEPT)

    def take(self, receiver: str, sent: dict) -> None:
        """Note each alert of a notification; the watchdog's beat is not worth a line."""
        for alert in sent.get("alerts", ()):
            labels = alert.get("labels", {})
            line = (
                time.strftime("%H:%M:%S"), receiver, alert.get("status", "?"), labels.get("alertname", "?"),
                f"{labels.get('app', '')} {labels.get('query', '')}: {alert.get('annotations', {}).get('summary', '')}",
            )  # fmt: skip
            if receiver != "deadman":
                self.lines.appendleft(line)
                sys.stdout.write("  ".join(line) + "\n")
                sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    """Takes notifications, shows a page."""

    server: Pager

    def do_POST(self) -> None:
        """A notification of Alertmanager."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self.server.take(self.path.strip("/"), json.loads(body))
        except (ValueError, AttributeError):
            self.send_error(400)
            return
        self._answer(b"", "text/plain")

    def do_GET(self) -> None:
        """The last lines; `/lines.json` for programs."""
        if self.path == "/lines.json":
            self._answer(json.dumps(list(self.server.lines)).encode(), "application/json")
            return
        cells = ("".join(f"<td>{html.escape(word)}" for word in line) for line in self.server.lines)
        rows = "".join(f"<tr>{row}" for row in cells) or "<tr><td>Nobody has been paged."
        self._answer(_PAGE.format(rows=rows).encode(), "text/html; charset=utf-8")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are not news."""


def main(address: str) -> None:
    """Serve until it is ended."""
    host, _, port = address.rpartition(":")
    with Pager(host, int(port)) as pager:
        pager.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9099")
