"""What the agent of a running query says of its sink: one GET of its metrics page."""

from __future__ import annotations

import urllib.request
from http.client import HTTPException

from streamgauge.checkpoint.errors import CannotLookError

from .metrics_page import PREFIX, parse_metrics

_LARGEST_PAGE_BYTES = 64 * 1024 * 1024
_TIMEOUT_SECONDS = 10.0
_INFO = f"{PREFIX}query_info"


def fetch(url: str) -> str:
    """The text of a metrics page; raises `CannotLookError` when it can't be had."""
    if not url.startswith(("http://", "https://")):
        raise CannotLookError(f"{url!r} must begin with http:// or https://")
    if "@" in url.split("/")[2]:  # what urllib says of one shows pieces of the password
        raise CannotLookError(
            "an address with a user or password is not understood; leave them out"
        )
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - checked above
            return str(answer.read(_LARGEST_PAGE_BYTES).decode("utf-8", "replace"))
    except (OSError, ValueError, HTTPException) as error:
        raise CannotLookError(f"{url} does not answer: {error}") from None


def sink_of(text: str, query_id: str | None) -> tuple[str | None, str | None]:
    """Sink and output mode of the query with this id on a metrics page; raises when it has none."""
    for sample in parse_metrics(text):
        labels = sample.labels
        if sample.name == _INFO and query_id == labels.get("query_id"):
            return labels.get("sink") or None, (labels.get("output_mode") or "").lower() or None
    raise CannotLookError(f"no query there has the id of this checkpoint ({query_id})")
