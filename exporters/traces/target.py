"""Where traces go: decided from the setting and from OpenTelemetry's own variables.

Nothing set means nowhere, without a word and without importing an exporter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from streamgauge.config import is_trace_file
from streamgauge.errors import StreamgaugeError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

AUTO, OFF, OTLP, NONE = "auto", "off", "otlp", "none"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP = {  # protocol → module of its exporter, extra that brings it
    "http/protobuf": ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "otlp"),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "otlp-grpc"),
}
_GROUP = "opentelemetry_traces_exporter"


class TargetError(StreamgaugeError, ValueError):
    """Traces were asked for and can't be sent; says what to install or to set."""


def choose_targets(setting: str, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Name what traces go to: `otlp`, a file, or what OTEL_TRACES_EXPORTER says; () is nowhere."""
    environ = os.environ if environ is None else environ
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or setting == OFF:
        return ()
    if setting != AUTO:
        return (setting,)
    named = environ.get("OTEL_TRACES_EXPORTER", "").split(",")
    names = tuple(dict.fromkeys(name.strip() for name in named if name.strip()))
    if names:
        return tuple(name for name in names if name != NONE)
    return (OTLP,) if any(environ.get(variable) for variable in ENDPOINTS) else ()


def find_exporter(
    target: str, environ: Mapping[str, str] | None = None
) -> Callable[[], SpanExporter]:
    """Return what makes the exporter of a target; importing it is left to the call.

    Raises `TargetError` when its package is missing or its protocol is unknown.
    """
    environ = os.environ if environ is None else environ
    if target == OTLP:
        return _find_otlp(environ)
    if is_trace_file(target):
        from .otlp_file import OtlpFileExporter  # noqa: PLC0415 - only where it is wanted

        return lambda: OtlpFileExporter(target)
    if target == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415

        return ConsoleSpanExporter
    from importlib.metadata import entry_points  # noqa: PLC0415 - only for a named exporter

    found = tuple(entry_points(group=_GROUP, name=target))
    if not found:
        raise TargetError(
            f"OTEL_TRACES_EXPORTER names {target!r}, and no installed package brings it; "
            "allowed: otlp, console, none, and what packages add"
        )
    return lambda: _made(found[0].load()())


def _find_otlp(environ: Mapping[str, str]) -> Callable[[], SpanExporter]:
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), None)
    if protocol is not None and protocol not in _OTLP:
        raise TargetError(
            f"the OTLP protocol {protocol!r} is not known; allowed: {', '.join(_OTLP)}"
        )
    wanted = [protocol] if protocol else list(_OTLP)
    for name in wanted:
        module, _ = _OTLP[name]
        if _is_installed(module):
            return lambda: _import_otlp(module)
    _, extra = _OTLP[wanted[0]]
    raise TargetError(
        f"traces by OTLP need a package that is not here: pip install 'streamgauge[{extra}]'"
    )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module.rpartition(".")[0]) is not None
    except ModuleNotFoundError:
        return False


def _import_otlp(module: str) -> SpanExporter:
    return _made(import_module(module).OTLPSpanExporter())


def _made(exporter: object) -> SpanExporter:
    from opentelemetry.sdk.trace.export import SpanExporter  # noqa: PLC0415 - not where it is off

    if not isinstance(exporter, SpanExporter):
        raise TargetError(f"{type(exporter).__name__} is not a span exporter")
    return exporter
