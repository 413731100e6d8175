"""A tiny S3-compatible server for loopback: lists with a delimiter, HEAD and GET. Read-only."""

from __future__ import annotations

import http.server
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_DATE = "Mon, 16 Nov 2026 00:00:00 GMT"


class S3Handler(http.server.BaseHTTPRequestHandler):
    """One bucket of any name; `objects` maps keys to bytes."""

    protocol_version = "HTTP/1.1"

    def __init__(self, objects: dict[str, bytes], *args: Any) -> None:
        self.objects = objects
        super().__init__(*args)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Whether an object is there, and its size."""
        self._object(body=False)

    def do_GET(self) -> None:
        """An object, or a listing."""
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._list(query)
        else:
            self._object(body=True)

    def _object(self, *, body: bool) -> None:
        _, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        data = self.objects.get(key)
        if data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", body=body)
        else:
            self._answer(200, data, body=body)

    def _list(self, query: dict[str, list[str]]) -> None:
        prefix = query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [""])[0]
        files, folders = [], set()
        for key, data in sorted(self.objects.items()):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                files.append((key, len(data)))
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
            "<LastModified>2026-11-16T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for key, size in files
        )
        shared = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in sorted(folders)
        )
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{shared}</ListBucketResult>"
        self._answer(200, text.encode())

    def _answer(self, status: int, data: bytes, *, body: bool = True) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", _DATE)
        self.send_header("ETag", '"x"')
        self.end_headers()
        if body:
            self.wfile.write(data)
