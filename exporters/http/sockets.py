"""The sockets below the page: bounded in number and in time, each client on a thread of its own."""

from __future__ import annotations

import contextlib
import errno
import math
import socket
import threading
import time
from collections.abc import Callable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

from .wsgi import App

if TYPE_CHECKING:
    import ssl

MOST_PORTS = 17  # the one that was asked for and the next 16, as Spark's UI does
MOST_CONNECTIONS = 32
CONNECTION_SECONDS = 15.0  # for all of a connection: handshake, request and answer
_LONGEST_LINE_BYTES = 65_536


class PageServer(ThreadingMixIn, WSGIServer):
    """A WSGI server that no client can hold up; what goes wrong in an answer is passed to `failed`."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = False
    request_queue_size = 64

    def __init__(
        self,
        address: tuple[str, int],
        *,
        tls: ssl.SSLContext | None,
        failed: Callable[[BaseException], None],
    ) -> None:
        self.failed = failed
        self._tls = tls
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._deadlines: dict[socket.socket, float] = {}
        self._leaving = False
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind as the base class does, without its look-up of the host's name, which may take seconds."""
        # SO_REUSEADDR lets a restart take its port back at once; Linux still refuses a port in use.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread, if there is a place for one more client."""
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
            request.settimeout(CONNECTION_SECONDS)
            if self._tls:
                request = self._tls.wrap_socket(
                    request, server_side=True, do_handshake_on_connect=False
                )
            self._deadlines[request] = time.monotonic() + CONNECTION_SECONDS
            if self._tls:
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


class _PageServer6(PageServer):
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
        self.raw_requestline = self.rfile.readline(_LONGEST_LINE_BYTES + 1)
        if len(self.raw_requestline) > _LONGEST_LINE_BYTES or not self.parse_request():
            return
        answer = _Answer(self.rfile, self.wfile, self.get_stderr(), self.get_environ())
        answer.request_handler = self
        answer.run(self.server.get_app())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Scrapes are not news."""

    def address_string(self) -> str:
        return str(self.client_address[0])


def bind(
    host: str,
    port: int,
    app: App,
    *,
    tls: ssl.SSLContext | None,
    failed: Callable[[BaseException], None],
) -> PageServer:
    """Bind to the port, or to one of the next 16 when it is taken; port 0 takes any."""
    kind = _PageServer6 if ":" in host else PageServer
    last: OSError | None = None
    for candidate in range(port, min(port + MOST_PORTS, 65_536)) if port else (0,):
        try:
            server = kind((host, candidate), tls=tls, failed=failed)
        except OSError as error:
            last = error
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                break
        else:
            server.set_app(app)
            return server
    raise OSError(
        f"metrics_address {host}:{port} and the next {MOST_PORTS - 1} can't be served: {last}"
    )
