"""What is at which path: `/metrics`, `/-/healthy`, `/docs`, `/runbooks/<alert>`, and the live page at `/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import make_wsgi_app

from .live import page as live_page
from .next_step import read_runbook
from .wsgi import App

# prometheus-client compares any other as text with numbers, and raises.
_ODD_VERSION = re.compile(r"version=(?!\d{1,4}(?:\.\d{1,4})*\s*(?:[;,]|$))")

# The page needs its own script and style and its own data, and nothing else from anywhere.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def make_routes(registry: CollectorRegistry, live: Callable[[], bytes]) -> App:
    """The whole site; `live` makes the live page's data."""
    metrics: Any = make_wsgi_app(registry)
    pages: dict[str, tuple[str, Callable[[], bytes]]] = {
        "/": ("text/html", live_page),
        "/live.json": ("application/json", live),
        "/docs": ("text/plain", _write_docs),
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
        if (runbook := read_runbook(path)) is not None:
            return _answer(start_response, "200 OK", runbook)
        return _answer(start_response, "404 Not Found", b"not here; try / or /metrics\n")

    return _send_whole(serve)


def _send_whole(app: App) -> App:
    """Say how long each answer is: half a page must not pass for a whole one. HEAD gets no body."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        begun: list[Any] = []
        body = b"".join(app(environ, lambda *given: begun.extend(given)))
        status, headers = begun
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    return serve


def _write_docs() -> bytes:
    from streamgauge.exporters.metrics.reference import write_markdown  # noqa: PLC0415 - seldom read

    return write_markdown().encode()


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
