"""One server with the pages of many drivers: copies of the pages of a few real agents.

    python bench/fleet_copies.py DRIVERS FOLDER

A thousand agents need more processors than the Prometheus that is measured. So the pages of the real agents, which
`FOLDER/agents` names, are fetched every few seconds and served under as many names as are wanted. A copy differs from
its original by application, instance, query ids and run ids. Runs until it is ended; `FOLDER/fetched.json` has
how long the real agents took to answer.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import figures  # noqa: F401 - finds the stage
from stage import free_port

AGENTS = 10  # real ones
REFRESH = 5.0  # seconds
_APP = re.compile(r"app-\d{4}")
_UUID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{4}(?=-[0-9a-f]{4}-[0-9a-f]{4}-)")


def app(number: int) -> str:
    """The name of a driver's application."""
    return f"app-{number:04d}"


def make_template(text: str) -> str:
    """The text with a mark in each place where copies differ: 1 for the application, 0 in ids."""
    marked = _UUID.sub(r"\1\0", text.replace("\0", ""))
    return _APP.sub("\1", marked)


def fill(template: str, number: int) -> str:
    """The text as the driver of this number has it."""
    return template.replace("\1", app(number)).replace("\0", f"{number:04d}")


class Pages:
    """The newest pages of the real agents, as templates."""

    def __init__(self, folder: Path) -> None:
        files = sorted((folder / "agents").glob("*.json"))
        self._addresses = [json.loads(file.read_text())[0]["targets"][0] for file in files]
        self._place = folder / "fetched.json"
        self._took: list[float] = []
        self.refresh()

    def refresh(self) -> None:
        """Fetch every page once."""
        self._templates = [
            make_template(self._fetch(address)).encode() for address in self._addresses
        ]
        self._place.write_text(json.dumps(self._took))

    def page(self, number: int) -> bytes:
        """The page of a driver."""
        template = self._templates[number % len(self._templates)]
        return template.replace(b"\1", app(number).encode()).replace(b"\0", b"%04d" % number)

    def _fetch(self, address: str) -> str:
        began = time.monotonic()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        self._took.append(time.monotonic() - began)
        return text


def main(drivers: int, folder: Path) -> None:
    pages = Pages(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.page(int(self.path.rpartition("-")[2]))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True

    server = Server(("127.0.0.1", free_port()), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    targets = [
        {
            "targets": [address],
            "labels": {"__metrics_path__": f"/{app(n)}", "instance": f"{app(n)}:9465"},
        }
        for n in range(drivers)
    ]
    place = folder / "targets"
    place.mkdir(exist_ok=True)
    (place / "copies.tmp").write_text(json.dumps(targets))
    (place / "copies.tmp").rename(place / "copies.json")
    pace = threading.Event()
    while True:
        pace.wait(REFRESH)
        pages.refresh()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
