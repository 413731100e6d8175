"""Ids that anybody can compute: a log line, an exemplar and a trace agree without any state.

trace id = first 16 bytes of sha256("<run id>|<batch id>"), span id = first 8 bytes of
sha256("<run id>|<batch id>|<part>"). Hashes are evenly spread, so ratio samplers work. Pure.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

BATCH = "batch"  # the part that is a batch's root span; the others are called as their phase
START = "start"  # stands for the batch id, and for the part, of a run's start
RUNNING = "running"


class Ids(NamedTuple):
    """A trace and a span of it, in hexadecimal as logs and exemplars have them."""

    trace_id: str
    span_id: str


def trace_id(run_id: str, batch_id: int | str) -> int:
    """Id of the trace of a batch; of a run's start with `START` for the batch id."""
    return int.from_bytes(sha256(f"{run_id}|{batch_id}".encode()).digest()[:16], "big")


def span_id(run_id: str, batch_id: int | str, part: str) -> int:
    """Id of one span: `BATCH` is the root, a phase's name its child, `START` a run's start."""
    return int.from_bytes(sha256(f"{run_id}|{batch_id}|{part}".encode()).digest()[:8], "big")


def to_hex(trace: int, span: int) -> Ids:
    """Write ids as OpenTelemetry does."""
    return Ids(f"{trace:032x}", f"{span:016x}")
