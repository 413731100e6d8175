"""A collector that counts: OTLP over HTTP, in a process of its own so that it can be killed.

    python bench/otlp_sink.py PORT FILE

Adds the number of spans of each request to FILE before it answers, so what was answered is counted.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def serve(port: int, file: Path) -> None:
    """Serve until killed."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            groups = ExportTraceServiceRequest.FromString(body).resource_spans
            spans = sum(len(scope.spans) for group in groups for scope in group.scope_spans)
            with file.open("a") as out:
                out.write(f"{spans}\n")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
