"""Access control: TLS and basic authentication."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.config import Config, ConfigError

from .wsgi import App

if TYPE_CHECKING:
    import ssl


def make_tls(config: Config) -> ssl.SSLContext | None:
    """The server's side of TLS; None when it is not set. Raises `ConfigError`."""
    if not config.metrics_tls_cert:
        return None
    import ssl  # noqa: PLC0415 - only where it is wanted

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(config.metrics_tls_cert, config.metrics_tls_key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"metrics_tls_cert {config.metrics_tls_cert!r} can't be used: {error}"
        ) from None
    return context


def read_password(path: str) -> bytes:
    """The `user:password` of the file, as a client would send it. Raises `ConfigError`."""
    try:
        line = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"metrics_auth_file {path!r} can't be read: {error.strerror}") from None
    user, colon, password = line.partition(":")
    if not (user and colon and password) or "\n" in line:
        raise ConfigError(f"metrics_auth_file {path!r} must hold one line user:password")
    return base64.b64encode(line.encode())


def require_password(app: App, expected: bytes) -> App:
    """Answer only who sends what `read_password` returned."""

    def guard(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        token = given[2].strip().encode("latin-1", "replace")
        if given[0].lower() == "basic" and hmac.compare_digest(token, expected):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="streamgauge"')])
        body = b"streamgauge: user and password, please\n"
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    return guard
