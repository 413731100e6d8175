"""Places that traces go to in tests: a real collector, a store behind it, and bad ones."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from stage import wait_for


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Store:
    """The end of the line: an OTLP/HTTP server that keeps what it gets, or refuses it."""

    def __init__(self, status: int = 200, hold: threading.Event | None = None) -> None:
        self.spans: list[dict] = []
        self.resources: list[dict] = []
        self.requests = 0
        store = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                store.requests += 1
                if hold is not None:
                    hold.wait(60)
                if status == 200:
                    store.keep(body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def keep(self, body: bytes) -> None:
        """Note every span of a request, as plain values."""
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(_attributes(group.resource.attributes))
            for scope in group.scope_spans:
                self.spans += [_span(span) for span in scope.spans]

    def named(self, name: str) -> list[dict]:
        """The spans of one name, in the order of their start."""
        return sorted((s for s in self.spans if s["name"] == name), key=lambda s: s["start"])

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def _span(span) -> dict:
    return {
        "name": span.name,
        "kind": span.kind,
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_id": span.parent_span_id.hex(),
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "attributes": _attributes(span.attributes),
        "status": span.status.code,
        "words": span.status.message,
        "events": [(event.name, _attributes(event.attributes)) for event in span.events],
        "links": [
            (
                _attributes(link.attributes).get("spark.streaming.link"),
                link.trace_id.hex(),
                link.span_id.hex(),
            )
            for link in span.links
        ],
    }


def _attributes(pairs) -> dict:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def store(status: int = 200, hold: threading.Event | None = None) -> Iterator[Store]:
    """An OTLP/HTTP server for as long as the block lasts."""
    made = Store(status, hold)
    try:
        yield made
    finally:
        if hold is not None:
            hold.set()
        made.close()


class Rotel:
    """A real OpenTelemetry collector, rotel from PyPI, in front of a store."""

    def __init__(self, behind: Store, folder: Path) -> None:
        package = importlib.util.find_spec("rotel")
        assert package, "rotel is not here; `make setup` brings it"
        self.program = Path(package.submodule_search_locations[0]) / "rotel-agent"
        self.http, self.grpc = free_port(), free_port()
        self._behind = behind
        self._folder = folder
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it and wait until both of its doors are open."""
        with (self._folder / "rotel.log").open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(str(self.program), "start", "--exporter", "otlp"),
                    *("--otlp-http-endpoint", f"127.0.0.1:{self.http}"),
                    *("--otlp-grpc-endpoint", f"127.0.0.1:{self.grpc}"),
                    *("--otlp-exporter-endpoint", f"http://127.0.0.1:{self._behind.port}"),
                    *("--otlp-exporter-protocol", "http"),
                    *("--pid-file", str(self._folder / "rotel.pid")),
                    *("--log-file", str(self._folder / "rotel-own.log")),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: answers(self.http) and answers(self.grpc), what="rotel")

    def stop(self) -> None:
        """End it, this very process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


@contextmanager
def rotel(folder: Path) -> Iterator[tuple[Rotel, Store]]:
    """A collector and the store behind it for as long as the block lasts."""
    with store() as behind:
        collector = Rotel(behind, folder)
        try:
            collector.start()
            yield collector, behind
        finally:
            collector.stop()


class Jaeger:
    """A real trace store: Jaeger v2, with its traces in memory."""

    def __init__(self, folder: Path) -> None:
        self.http, self.grpc, self.query = free_port(), free_port(), free_port()
        self._folder = folder
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        found = shutil.which("jaeger")
        assert found, "jaeger is not here; `make setup-integration` builds it"
        config = self._folder / "jaeger.json"
        config.write_text(json.dumps(self._config()))
        with (self._folder / "jaeger.log").open("a") as log:
            self._process = subprocess.Popen(
                [found, "--config", str(config)], stdout=log, stderr=subprocess.STDOUT
            )
        wait_for(lambda: answers(self.http) and answers(self.query), 60, what="jaeger")

    def _config(self) -> dict:
        otlp = {
            "http": {"endpoint": f"127.0.0.1:{self.http}"},
            "grpc": {"endpoint": f"127.0.0.1:{self.grpc}"},
        }
        pages = {
            "storage": {"traces": "here"},
            "http": {"endpoint": f"127.0.0.1:{self.query}"},
            "grpc": {"endpoint": f"127.0.0.1:{free_port()}"},
        }
        pipeline = {"receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"]}
        return {
            "service": {
                "extensions": ["jaeger_storage", "jaeger_query"],
                "pipelines": {"traces": pipeline},
                "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "warn"}},
            },
            "extensions": {
                "jaeger_query": pages,
                "jaeger_storage": {"backends": {"here": {"memory": {"max_traces": 10_000}}}},
            },
            "receivers": {"otlp": {"protocols": otlp}},
            "exporters": {"jaeger_storage_exporter": {"trace_storage": "here"}},
        }

    def trace(self, trace_id: str) -> list[dict]:
        """The spans of one trace, as the API gives them; none when it is not there."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.query}/api/traces/{trace_id}", timeout=10
            ) as answer:
                (found,) = json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return []
        for span in found["spans"]:
            span["tags"] = {tag["key"]: tag["value"] for tag in span["tags"]}
            span["process"] = found["processes"][span["processID"]]
        return found["spans"]

    def stop(self) -> None:
        """End it, this very process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)


@contextmanager
def jaeger(folder: Path) -> Iterator[Jaeger]:
    """A trace store for as long as the block lasts."""
    made = Jaeger(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
