"""Serves the page: `/metrics` in text and OpenMetrics, `/-/healthy`, and the live page at `/`.

Threads of its own, all daemons; nothing here can hold up the worker or Spark.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import math
import os
import re
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import make_wsgi_app

from streamgauge.config import Config, ConfigError
from streamgauge.exporters.metrics.reference import write_markdown

from .live import page as live_page

PORTS = 17  # the one that was asked for and the next 16, as Spark's UI does
_CONNECTIONS = 32
_PATIENCE = 15.0  # for all of a connection: handshake, request and answer
_POLL = 0.2  # how long the end of the server may take

App = Callable[[dict[str, Any], Any], Iterable[bytes]]


class MetricsServer:
    """An HTTP server for one registry. `address` is where it can be reached."""

    def __init__(
        self,
        config: Config,
        registry: CollectorRegistry,
        app_label: str = "",
        live: Callable[[], bytes] = lambda: b"{}",
        failed: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        """Bind and serve; raise OSError or ConfigError when that can't be done.

        What goes wrong later is told to `failed`, from any thread.
        """
        self._scraped = threading.Condition()
        self._last_scrape = 0.0  # when the last scrape that was answered whole had begun
        app = self._noting(_whole(_route(registry, live)))
        if config.metrics_auth_file:
            app = _with_password(app, _read_password(config.metrics_auth_file))
        tls = _tls(config)
        self._server = _bind(*config.metrics_endpoint(), app)
        self._server.tls, self._server.failed = tls, failed
        self._sd_file = Path(config.sd_file) if config.sd_file else None
        host, port = self._server.server_address[:2]
        self.host, self.port = str(host), int(port)
        self.address = f"{'https' if self._server.tls else 'http'}://{_bracket(self.host)}:{port}"
        threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL,),
            name="streamgauge-server",
            daemon=True,
        ).start()
        try:
            self.name(app_label)
        except ConfigError as error:
            failed(error)

    def name(self, app_label: str) -> None:
        """Announce the target as that of this application; raise `ConfigError` when that can't be done."""
        self._target = self._describe(app_label)
        try:
            self._announce()
        except (OSError, ValueError) as error:
            hint = "its folder must be there, and the driver's user must be allowed to write to it"
            path = str(self._sd_file)
            raise ConfigError(f"sd_file {path!r} can't be written: {error}; {hint}") from None

    def _describe(self, app_label: str) -> bytes:
        """The target, as Prometheus' file-based discovery reads it."""
        labels = {"__scheme__": "https"} if self._server.tls else {}
        if app_label:
            labels["spark_app"] = app_label
        target = {"targets": [f"{_bracket(self.host)}:{self.port}"], "labels": labels}
        return json.dumps([target]).encode() + b"\n"

    def _announce(self) -> None:
        """Write the target, whole or not at all, for all to read; it finds us on whichever port."""
        path = self._sd_file
        if path is None:
            return
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(handle, 0o644)
                file.write(self._target)
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink()
            raise

    def _withdraw(self) -> None:
        """Take the target back, unless another driver has put its own in its place."""
        path = self._sd_file
        with contextlib.suppress(FileNotFoundError):
            if path is not None and path.read_bytes() == self._target:
                path.unlink()

    def await_scrape(self, seconds: float) -> bool:
        """Wait until a scrape that begins after now was answered, for so long at most."""
        now = time.monotonic()
        with self._scraped:
            return self._scraped.wait_for(lambda: self._last_scrape > now, seconds)

    def _noting(self, app: App) -> App:
        """Note each scrape once its answer has been written."""

        def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            began = time.monotonic()
            body = app(environ, start_response)
            if environ.get("PATH_INFO") != "/metrics" or environ.get("REQUEST_METHOD") != "GET":
                return body
            return self._note(body, began)

        return serve

    def _note(self, body: Iterable[bytes], began: float) -> Iterator[bytes]:
        yield from body  # a WSGI server asks for more once it has written what it got
        with self._scraped:
            self._last_scrape = max(self._last_scrape, began)
            self._scraped.notify_all()

    def close(self) -> None:
        """Stop serving and take the target back."""
        self._server.shutdown()
        self._server.server_close()
        self._withdraw()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = False
    request_queue_size = 64
    tls: ssl.SSLContext | None = None
    failed: Callable[[BaseException], None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._places = threading.BoundedSemaphore(_CONNECTIONS)
        self._deadlines: dict[socket.socket, float] = {}
        self._leaving = False
        super().__init__(*args, **kwargs)

    def server_bind(self) -> None:
        # SO_REUSEADDR lets a restart take its port back at once; Linux still refuses a port in use.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        # WSGIServer would look the host's name up, which may take seconds.
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._leaving or not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # From Python 3.12 no thread can be started at exit; who lingers answers one by one.
            self.process_request_thread(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Shake hands here and not in the accept loop, where one slow client would stop all."""
        try:
            request.settimeout(_PATIENCE)
            if self.tls:
                request = self.tls.wrap_socket(
                    request, server_side=True, do_handshake_on_connect=False
                )
            self._deadlines[request] = time.monotonic() + _PATIENCE
            if self.tls:
                request.do_handshake()
            super().process_request_thread(request, client_address)
        except OSError:
            self.shutdown_request(request)
        finally:
            self._deadlines.pop(request, None)
            self._places.release()

    def service_actions(self) -> None:
        """Cut who is past the deadline; the accept loop asks several times a second.

        A timeout is one for each read and write: a byte now and then would hold a place for good.
        """
        self._cut(time.monotonic())

    def shutdown(self) -> None:
        """Stop, and wait for nobody: at exit it may be the accept loop itself that reads."""
        self._leaving = True
        self._cut(math.inf)
        super().shutdown()

    def _cut(self, now: float) -> None:
        for request, deadline in list(self._deadlines.items()):
            if now > deadline:
                with contextlib.suppress(OSError):  # TLS's own would go on in plain text first
                    socket.socket.shutdown(request, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is not news."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Answer(ServerHandler):
    request_handler: _Handler

    def log_exception(self, exc_info: Any) -> None:
        """Count it; a traceback for each request would let any client fill the driver's log."""
        self.request_handler.server.failed(exc_info[1])


class _Handler(WSGIRequestHandler):
    server: Any
    wfile: Any

    def handle(self) -> None:
        """As the base class does, but for the kind of answer."""
        self.raw_requestline = self.rfile.readline(65_537)
        if len(self.raw_requestline) > 65_536 or not self.parse_request():
            return
        answer = _Answer(self.rfile, self.wfile, self.get_stderr(), self.get_environ())
        answer.request_handler = self
        answer.run(self.server.get_app())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Scrapes are not news."""

    def address_string(self) -> str:
        return str(self.client_address[0])


def _bind(host: str, port: int, app: App) -> _Server:
    """Bind to the port, or to one of the next 16 when it is taken; port 0 takes any."""
    kind = _Server6 if ":" in host else _Server
    last: OSError | None = None
    for candidate in range(port, min(port + PORTS, 65_536)) if port else (0,):
        try:
            return make_server(host, candidate, app, kind, _Handler)
        except OSError as error:
            last = error
            if error.errno not in {98, 48, 13}:  # in use (Linux, macOS), not allowed
                break
    raise OSError(f"metrics_address {host}:{port} and the next {PORTS - 1} can't be served: {last}")


def _tls(config: Config) -> ssl.SSLContext | None:
    if not config.metrics_tls_cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(config.metrics_tls_cert, config.metrics_tls_key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"metrics_tls_cert {config.metrics_tls_cert!r} can't be used: {error}"
        ) from None
    return context


def _read_password(path: str) -> bytes:
    """The `user:password` of the file, as a client would send it."""
    try:
        line = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"metrics_auth_file {path!r} can't be read: {error.strerror}") from None
    user, colon, password = line.partition(":")
    if not (user and colon and password) or "\n" in line:
        raise ConfigError(f"metrics_auth_file {path!r} must hold one line user:password")
    return base64.b64encode(line.encode())


def _with_password(app: App, expected: bytes) -> App:
    def guard(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        token = given[2].strip().encode("latin-1", "replace")
        if given[0].lower() == "basic" and hmac.compare_digest(token, expected):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="streamgauge"')])
        body = b"streamgauge: user and password, please\n"
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    return guard


def _whole(app: App) -> App:
    """Say how long each answer is: half a page must not pass for a whole one. HEAD gets no body."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        begun: list[Any] = []
        body = b"".join(app(environ, lambda *given: begun.extend(given)))
        status, headers = begun
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    return serve


# prometheus-client compares any other as text with numbers, and raises.
_ODD_VERSION = re.compile(r"version=(?!\d{1,4}(?:\.\d{1,4})*\s*(?:[;,]|$))")


def _route(registry: CollectorRegistry, live: Callable[[], bytes]) -> App:
    metrics: Any = make_wsgi_app(registry)
    pages: dict[str, tuple[str, Callable[[], bytes]]] = {
        "/": ("text/html", live_page),
        "/live.json": ("application/json", live),
        "/docs": ("text/plain", lambda: write_markdown().encode()),
        "/-/healthy": ("text/plain", lambda: b"streamgauge is healthy\n"),
    }

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if environ.get("REQUEST_METHOD") not in {"GET", "HEAD"}:
            return _answer(start_response, "405 Method Not Allowed", b"only GET and HEAD\n")
        if path == "/metrics":
            asked = {**environ, "REQUEST_METHOD": "GET"}  # it answers nothing else
            if _ODD_VERSION.search(environ.get("HTTP_ACCEPT", "")):
                del asked["HTTP_ACCEPT"]  # what can't be understood gets the plain text form
            result: Iterable[bytes] = metrics(asked, start_response)
            return result
        if path in pages:
            kind, make = pages[path]
            return _answer(start_response, "200 OK", make(), kind)
        return _answer(start_response, "404 Not Found", b"not here; try / or /metrics\n")

    return serve


# The page needs its own script and style and its own data, and nothing else from anywhere.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def _answer(start: Any, status: str, body: bytes, kind: str = "text/plain") -> Iterable[bytes]:
    start(
        status,
        [
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Security-Policy", _POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ],
    )
    return [body]


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
