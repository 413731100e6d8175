"""Real programs on loopback: Alertmanager, and a webhook that stands for the pager.

Each is a context manager that ends what it started, by its own process id.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from promtool import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from stack_debian import place

from streamgauge.grafana.alerts.alertmanager import alertmanager_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from streamgauge.grafana.alerts.settings import Settings

DEADLINE = 30.0


def free_port() -> int:
    """A port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(
    condition: Callable[[], Any], what: str | Callable[[], str], deadline: float = DEADLINE
) -> Any:
    """The first true value of the condition; raises with `what` when the deadline passes."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    words = what if isinstance(what, str) else what()
    raise AssertionError(f"waited {deadline:.0f} s for {words}")


def get_json(url: str) -> Any:
    """The JSON at a URL on loopback."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def answers(url: str) -> bool:
    """Whether there is somebody at the URL."""
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False


class Pager:
    """A webhook on loopback; keeps what Alertmanager sent, with the time of arrival."""

    def __init__(self) -> None:
        self._received: list[tuple[str, float, dict[str, Any]]] = []
        pages = self._received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                pages.append((self.path, time.time(), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing on the test's output."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def received(self, path: str, status: str = "firing") -> list[dict[str, Any]]:
        """The notifications that came to a path, each with `at`, the time of arrival."""
        return [
            {**body, "at": at}
            for where, at, body in list(self._received)
            if where == path and body["status"] == status
        ]

    def wait_for(self, path: str, alertname: str, deadline: float = DEADLINE) -> dict[str, Any]:
        """The first notification of an alert at a path."""

        def look() -> list[dict[str, Any]]:
            return [p for p in self.received(path) if p["groupLabels"]["alertname"] == alertname]

        found: dict[str, Any] = wait_until(look, f"{alertname} at {path}", deadline)[0]
        return found

    def stay_quiet(self, seconds: float) -> None:
        """Wait so long that a further notification would have come."""
        time.sleep(seconds)


class Program:
    """A program that is started, waited for and ended."""

    def __init__(self, folder: Path, path: str, ready: str, *arguments: str) -> None:
        self._command = [path, *arguments]
        self._folder = folder
        self._log = folder / f"{Path(path).name}.log"
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log)
        self._process = process
        name = self._command[0]
        wait_until(lambda: answers(self._ready) or process.poll() is not None, name)
        if process.poll() is not None:
            raise AssertionError(self._log.read_text()[-2000:])

    def stop(self) -> None:
        """End it; by force when it does not go."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class Alertmanager:
    """The real Alertmanager with the shipped example, given the settings."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        file = folder / "alertmanager.yml"
        file.write_text(alertmanager_file(settings))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._program = Program(
            folder,
            str(place("alertmanager", folder)),
            f"{self.url}/-/ready",
            f"--config.file={file}",
            f"--storage.path={folder / 'alertmanager-data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
        )

    def __enter__(self) -> Self:
        self._program.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._program.stop()

    def send(self, labels: list[dict[str, str]]) -> None:
        """Fire alerts, all in one message as Prometheus does."""
        self._post([{"labels": one} for one in labels])

    def resolve(self, labels: list[dict[str, str]]) -> None:
        """Say that alerts are over."""
        now = datetime.now(timezone.utc).isoformat()
        self._post([{"labels": one, "endsAt": now} for one in labels])

    def _post(self, alerts: list[dict[str, Any]]) -> None:
        body = json.dumps(alerts).encode()
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10):
            pass

    def suppressed(self) -> set[str]:
        """Names of the alerts that are inhibited now."""
        return {
            one["labels"]["alertname"]
            for one in get_json(f"{self.url}/api/v2/alerts")
            if one["status"]["inhibitedBy"]
        }
