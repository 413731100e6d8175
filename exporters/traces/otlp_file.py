"""Spans as OTLP JSON lines in a file, for places without a collector.

One line is one `TracesData`, as OpenTelemetry's file exporter specifies it; a collector's
`otlpjsonfile` receiver reads it, and each line can be posted to `/v1/traces` as it is. Needs no
package beyond the SDK. The file moves to `<name>.1` when it has grown to its limit, so the two
together are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext

MOST_FILE_BYTES = 64 * 1024 * 1024


class OtlpFileExporter(SpanExporter):
    """Appends to a file. One thread at a time; raises `OSError` when the file can't be written."""

    def __init__(self, path: str | Path, most_bytes: int = MOST_FILE_BYTES) -> None:
        self._path = Path(path)
        self._most_bytes = most_bytes

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write one line for these spans."""
        line = json.dumps(encode(spans), separators=(",", ":")) + "\n"
        if self._path.exists() and self._path.stat().st_size + len(line) > self._most_bytes:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing is held open."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back."""
        return True


def encode(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """Spans of one resource as OTLP JSON: hexadecimal ids, 64-bit numbers as text."""
    first = spans[0]
    scope = first.instrumentation_scope
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(first.resource.attributes)},
                "scopeSpans": [
                    {
                        "scope": {
                            "name": scope.name if scope else "",
                            "version": (scope.version or "") if scope else "",
                        },
                        "spans": [_span(span) for span in spans],
                    }
                ],
            }
        ]
    }


def _span(span: ReadableSpan) -> dict[str, Any]:
    found: dict[str, Any] = {
        **_ids(span.context),
        "name": span.name,
        "kind": span.kind.value + 1,  # OTLP counts from 1: INTERNAL
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": _attributes(span.attributes or {}),
        "status": {"code": span.status.status_code.value},
    }
    if span.parent is not None:
        found["parentSpanId"] = f"{span.parent.span_id:016x}"
    if span.status.description:
        found["status"]["message"] = span.status.description
    if span.events:
        found["events"] = [
            {
                "timeUnixNano": str(event.timestamp),
                "name": event.name,
                "attributes": _attributes(event.attributes or {}),
            }
            for event in span.events
        ]
    if span.links:
        found["links"] = [
            {**_ids(link.context), "attributes": _attributes(link.attributes or {})}
            for link in span.links
        ]
    return found


def _ids(context: SpanContext | None) -> dict[str, Any]:
    if context is None:
        return {}
    return {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "flags": int(context.trace_flags),
    }


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
